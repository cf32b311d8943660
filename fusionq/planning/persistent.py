"""Stages that become one persistent kernel."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.item_space import global_range, largest
from fusionq.analysis.questions import Questions
from fusionq.analysis.stage_relations import stage_items, tile_context
from fusionq.analysis.stage_waits import StageRelations
from fusionq.analysis.submission import ArrayArgument, ScalarArgument, Submission
from fusionq.base.steps import Steps
from fusionq.base.target import Target
from fusionq.codegen.interior import parted
from fusionq.ir.nodes import ArrayParam, Kernel, Param, Persistent
from fusionq.ir.types import INT64
from fusionq.ir.walk import has_barrier
from fusionq.megakernel.bounds import tile_bounds
from fusionq.megakernel.evaluate import evaluate
from fusionq.megakernel.proof import check_plan
from fusionq.megakernel.schedule import is_pipelined
from fusionq.megakernel.tiles import extents_of
from fusionq.passes.fuse import FusedKernel
from fusionq.passes.labels import label
from fusionq.passes.persist import StageParts, StageWait, persist
from fusionq.passes.sources import (
    ArgumentSource,
    ExtentSource,
    ParamSource,
    QueueSource,
    RangeSource,
)
from fusionq.passes.symbol_sources import of_members, sources_of_symbols
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
    questions: Questions,
    dependences: Sequence[Sequence[PairScope]],
    stages: Sequence[Stage],
    kernels: Sequence[FusedKernel],
) -> Steps[StagePlan | str]:
    """The launch that does ``stages``, whose kernels are ``kernels``, of a list with the direct
    ``dependences``; or why there is none."""
    different = len({id(fused.kernel) for fused in kernels})
    if different > MOST_CODES:
        return _too_many(different)
    submissions = questions.submissions
    items = [stage_items(submissions, stage.members, stage.space.mode) for stage in stages]
    relations = StageRelations(questions, items, dependences)
    parts = []
    for k, (stage, fused) in enumerate(zip(stages, kernels, strict=True)):
        waits = [_wait(relations, p, k) for p in relations.waits(k)]
        parts.append(_parts(submissions, stage, fused, waits))
        yield "analysis"
    name = f"megakernel{len(stages)}_" + _joined([f.kernel.name for f in kernels])
    identity = _Identity(questions)
    fused = persist(parts, name, identity)
    yield "passes"
    body = fused.kernel.body[0]
    assert isinstance(body, Persistent)
    if len(body.codes) > MOST_CODES:
        return _too_many(len(body.codes))
    reason = yield from check_plan(relations, fused, identity)
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


def _too_many(codes: int) -> str:
    return f"the stages have {codes} different kernels; {MOST_CODES} are the limit"


def estimate_of(questions: Questions, plan: StagePlan, target: Target) -> Estimate:
    """What the model says of a persistent kernel, against a launch for each of its stages."""
    body = plan.kernel.body[0]
    assert isinstance(body, Persistent)
    identity = _Identity(questions)
    arrays: dict[str, tuple[Hashable, ArrayArgument]] = {}
    integers: dict[str, int] = {}
    for param, source in zip(plan.kernel.params, plan.sources, strict=True):
        if isinstance(source, QueueSource):
            continue
        if isinstance(param, ArrayParam):
            assert isinstance(source, ArgumentSource)
            argument = questions.submissions[source.submission].arguments[source.argument]
            assert isinstance(argument, ArrayArgument)
            arrays[param.name] = identity(source), argument
        elif param.type.is_integer:
            integers[param.name] = _value(questions.submissions, source)
    decided = [parted(code)[1] is not None for code in body.codes]
    known: dict[Hashable, StageWork] = {}
    work: list[StageWork] = []
    params: list[dict[str, int]] = []
    memory: dict[Hashable, int] = {}
    for stage in body.stages:
        code = body.codes[stage.code]
        names = dict(zip((p.name for p in code.kernel.params), stage.arguments, strict=True))
        values = {own: integers[name] for own, name in names.items() if name in integers}
        touched = {own: arrays[name] for own, name in names.items() if name in arrays}
        own_memory = {view: prod(a.shape) * a.dtype.nbytes for view, a in touched.values()}
        memory |= own_memory
        params.append(values)
        key = stage.code, *values.values(), *(a.shape for _, a in touched.values()), *own_memory
        if key not in known:
            items = prod(evaluate(e, values) for e in code.extents)
            shapes = {(own, d): n for own, (_, a) in touched.items() for d, n in enumerate(a.shape)}
            each = operations(code.kernel, Sizes(values, shapes))
            known[key] = StageWork(
                items, sum(own_memory.values()), items * each, decided[stage.code]
            )
        work.append(known[key])
    pipelined = is_pipelined(body, extents_of(body, params), params)
    return estimate(work, sum(memory.values()), pipelined, target)


def _value(submissions: Sequence[Submission], source: ParamSource) -> int:
    match source:
        case RangeSource(s, dim):
            return global_range(submissions[s])[dim]
        case ExtentSource(s, k, dim):
            argument = submissions[s].arguments[k]
            assert isinstance(argument, ArrayArgument)
            return argument.shape[dim]
        case ArgumentSource(s, k):
            scalar = submissions[s].arguments[k]
            assert isinstance(scalar, ScalarArgument)
            return int(scalar.value)
        case _:
            return 0


def _joined(names: Sequence[str]) -> str:
    return "_".join(dict.fromkeys(names))[:40].rstrip("_")


def _wait(relations: StageRelations, producer: int, consumer: int) -> StageWait:
    stages = producer, consumer
    relation = relations.between(producer, consumer)
    assert relation is not None
    bounds, symbols = relations.ask(
        stages,
        ("wait", id(relation)),
        lambda analysis, of_two: (
            tile_bounds(
                relation, tile_context(analysis, of_two[1]), lambda name: Param(INT64, name)
            ),
            sources_of_symbols(analysis),
        ),
    )
    members = relations.members(stages)
    return StageWait(producer, bounds, {n: of_members(s, members) for n, s in symbols.items()})


def _parts(
    submissions: Sequence[Submission],
    stage: Stage,
    fused: FusedKernel,
    waits: Sequence[StageWait],
) -> StageParts:
    whole = largest(submissions, stage.members)
    dims = range(len(global_range(submissions[whole])))
    sources = [RangeSource(whole, d) for d in dims]
    extents: tuple[tuple[ParamSource, ...], ...] = (
        (tuple(sources),) if stage.space.mode == "linear" else tuple((s,) for s in sources)
    )
    names = ", ".join(label(s, submissions[s].ir.name) for s in stage.members)
    return StageParts(fused, names, extents, tuple(waits), stage.space.local_range)


class _Identity:
    """Equal for sources that have one value in every list that the plan serves."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    def __call__(self, source: ParamSource) -> Hashable:
        match source:
            case RangeSource() | ExtentSource():
                return "size", _value(self._questions.submissions, source)
            case ArgumentSource(s, k):
                argument = self._questions.submissions[s].arguments[k]
                if isinstance(argument, ScalarArgument):
                    return "scalar", s, k
                place = self._questions.place[s, k]
                return "view", place.group, place.view
            case _:
                return source
