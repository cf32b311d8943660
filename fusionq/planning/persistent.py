"""Stages that become one persistent kernel."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from math import prod

from fusionq.analysis.item_space import global_range, largest
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.stage_relations import StageItems, StageRelations, stage_items
from fusionq.analysis.submission import ArrayArgument, ScalarArgument
from fusionq.base.target import Target
from fusionq.codegen.interior import parted
from fusionq.ir.nodes import ArrayParam, Expr, Kernel, Persistent, TileWait
from fusionq.ir.walk import has_barrier
from fusionq.megakernel.bounds import tile_bounds
from fusionq.megakernel.evaluate import evaluate
from fusionq.megakernel.proof import check_plan
from fusionq.megakernel.schedule import is_pipelined
from fusionq.megakernel.tiles import extents_of
from fusionq.passes.fuse import FusedKernel
from fusionq.passes.persist import StageParts, WaitMaker, persist
from fusionq.passes.sources import ArgumentSource, ExtentSource, ParamSource, RangeSource
from fusionq.planning.cost import Estimate, StageWork, estimate
from fusionq.planning.plan import StagePlan
from fusionq.planning.stages import Stage
from fusionq.planning.work import Sizes, operations

MOST_CODES = 16
"""Distinct stage codes in one persistent kernel: each is compiled."""


def unfit(kernel: Kernel) -> str | None:
    """Why a stage's kernel cannot be part of a persistent kernel; None if it can."""
    if any(array.space == "local" for array in kernel.arrays):
        return f"{kernel.name} uses local memory, which belongs to a whole work-group"
    if has_barrier(kernel.body):
        return f"{kernel.name} has work-group barriers or group functions"
    return None


def segments(kernels: Sequence[FusedKernel]) -> list[range]:
    """The stages cut into runs: as long as can be of those that fit into a persistent kernel,
    and single ones of the others."""
    found: list[range] = []
    start = 0
    for k, fused in enumerate(kernels):
        if unfit(fused.kernel) is not None:
            if start < k:
                found.append(range(start, k))
            found.append(range(k, k + 1))
            start = k + 1
    if start < len(kernels):
        found.append(range(start, len(kernels)))
    return found


def persistent_stage(
    analysis: ListAnalysis,
    stages: Sequence[Stage],
    kernels: Sequence[FusedKernel],
    symbol_source: Callable[[str], ParamSource],
) -> StagePlan | str:
    """The launch that does ``stages``, whose kernels are ``kernels``; or why there is none."""
    items = [stage_items(analysis, stage.members, stage.space.mode) for stage in stages]
    relations = StageRelations(analysis, items)
    waits = relations.waits()
    parts = []
    for k, (stage, fused) in enumerate(zip(stages, kernels, strict=True)):
        makers = []
        for producer in waits[k]:
            makers.append((producer, partial(_wait, relations, producer, k, symbol_source)))
        parts.append(_parts(analysis, stage, items[k], fused, makers))
    name = f"megakernel{len(stages)}_" + _joined([f.kernel.name for f in kernels])
    fused = persist(parts, name, partial(_identity, analysis))
    body = fused.kernel.body[0]
    assert isinstance(body, Persistent)
    if len(body.codes) > MOST_CODES:
        return f"the stages have {len(body.codes)} different kernels; {MOST_CODES} are the limit"
    reason = check_plan(relations, fused, symbol_source, partial(_identity, analysis))
    if reason is not None:
        return reason
    return StagePlan(
        submissions=tuple(s for stage in stages for s in stage.members),
        kernel=fused.kernel,
        sources=tuple(fused.sources[p.name] for p in fused.kernel.params),
        geometry=stages[0].members[0],
        mode="linear",
        boundary=stages[0].boundary,
        inner=tuple(stage.members for stage in stages),
        inner_boundaries=tuple(stage.boundary for stage in stages),
    )


def estimate_of(
    analysis: ListAnalysis, plan: StagePlan, target: Target
) -> Estimate:
    """What the model says of a persistent kernel, against a launch for each of its stages."""
    body = plan.kernel.body[0]
    assert isinstance(body, Persistent)
    given = dict(zip((p.name for p in plan.kernel.params), plan.sources, strict=True))
    decided = [parted(code)[1] is not None for code in body.codes]
    work: list[StageWork] = []
    params: list[dict[str, int]] = []
    memory: dict[Hashable, int] = {}
    for stage in body.stages:
        code = body.codes[stage.code]
        values: dict[str, int] = {}
        shapes: dict[tuple[str, int], int] = {}
        touched: dict[Hashable, int] = {}
        for param, name in zip(code.kernel.params, stage.arguments, strict=True):
            source = given[name]
            if isinstance(param, ArrayParam):
                assert isinstance(source, ArgumentSource)
                argument = analysis.submissions[source.submission].arguments[source.argument]
                assert isinstance(argument, ArrayArgument)
                key = _identity(analysis, source)
                touched[key] = prod(argument.shape) * argument.dtype.nbytes
                shapes |= {(param.name, d): n for d, n in enumerate(argument.shape)}
            elif param.type.is_integer:
                values[param.name] = _value(analysis, source)
        memory |= touched
        params.append(values)
        items = prod(evaluate(e, values) for e in code.extents)
        each = operations(code.kernel, Sizes(values, shapes))
        work.append(
            StageWork(items, sum(touched.values()), items * each, decided[stage.code])
        )
    pipelined = is_pipelined(body, extents_of(body, params), params)
    return estimate(work, sum(memory.values()), pipelined, target)


def _value(analysis: ListAnalysis, source: ParamSource) -> int:
    match source:
        case RangeSource(s, dim):
            return global_range(analysis.submissions[s])[dim]
        case ExtentSource(s, k, dim):
            argument = analysis.submissions[s].arguments[k]
            assert isinstance(argument, ArrayArgument)
            return argument.shape[dim]
        case ArgumentSource(s, k):
            scalar = analysis.submissions[s].arguments[k]
            assert isinstance(scalar, ScalarArgument)
            return int(scalar.value)
        case _:
            return 0


def _joined(names: Sequence[str]) -> str:
    return "_".join(dict.fromkeys(names))[:40].rstrip("_")


def _wait(
    relations: StageRelations,
    producer: int,
    consumer: int,
    symbol_source: Callable[[str], ParamSource],
    value: Callable[[ParamSource], Expr],
) -> TileWait:
    relation = relations.between(producer, consumer)
    assert relation is not None
    context = relations.context(consumer)
    return TileWait(tile_bounds(relation, context, lambda name: value(symbol_source(name))))


def _parts(
    analysis: ListAnalysis,
    stage: Stage,
    items: StageItems,
    fused: FusedKernel,
    waits: Sequence[tuple[int, WaitMaker]],
) -> StageParts:
    whole = largest(analysis.submissions, stage.members)
    dims = range(len(global_range(analysis.submissions[whole])))
    sources = [RangeSource(whole, d) for d in dims]
    extents: tuple[tuple[ParamSource, ...], ...] = (
        (tuple(sources),) if items.mode == "linear" else tuple((s,) for s in sources)
    )
    label = ", ".join(f"{s}: {analysis.submissions[s].ir.name}" for s in stage.members)
    return StageParts(fused, label, extents, tuple(waits), stage.space.local_range)


def _identity(analysis: ListAnalysis, source: ParamSource) -> Hashable:
    """Equal for sources that have one value in every list that the plan serves."""
    match source:
        case RangeSource() | ExtentSource():
            return analysis.symbols.size(_value(analysis, source))
        case ArgumentSource(s, k):
            argument = analysis.submissions[s].arguments[k]
            if isinstance(argument, ScalarArgument):
                return ("scalar", s, k)
            place = analysis.place[s, k]
            return ("view", place.group, place.view)
        case _:
            return source
