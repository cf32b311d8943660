"""Stages that become one persistent kernel."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.isl_operations import in_steps, nothing_left
from fusionq.analysis.item_space import global_range, largest
from fusionq.analysis.questions import Questions
from fusionq.analysis.stage_relations import stage_items, tile_context
from fusionq.analysis.stage_waits import StageRelations
from fusionq.base.options import FusionOptions
from fusionq.base.steps import Steps
from fusionq.base.target import Target
from fusionq.codegen.local_places import local_places
from fusionq.ir.nodes import GroupCall, Kernel, Param
from fusionq.ir.types import INT64
from fusionq.ir.verifier import verify
from fusionq.ir.walk import combines_floats, statements, waits_in_groups
from fusionq.megakernel.bounds import tile_boxes
from fusionq.megakernel.proof import check_plan
from fusionq.passes.fuse import FusedKernel
from fusionq.passes.group_functions import lower_group_functions
from fusionq.passes.labels import label
from fusionq.passes.local_memory import with_reductions
from fusionq.passes.persist import StageParts, StageWait, persist
from fusionq.passes.sources import (
    ParamSource,
    RangeSource,
)
from fusionq.passes.symbol_sources import of_members, sources_of_symbols
from fusionq.passes.work_group_function import work_group_function
from fusionq.planning.build_bound import BuildBound
from fusionq.planning.lane_dimension import lane_dimension
from fusionq.planning.list_work import Identity, stage_sizes
from fusionq.planning.plan import StagePlan
from fusionq.planning.promotion import Promotions
from fusionq.planning.stage_kernels import StageKernels
from fusionq.planning.stages import Stage

MOST_UNASKED = 16
"""Distinct bodies of stages up to which a persistent kernel is made in any case: it may have been
built before.  With each more, ``auto`` is asked whether it would have so many built."""


@dataclass(frozen=True)
class Fitting:
    """Which stages can be part of a persistent kernel: for each why not, None where it can; and by
    its number the kernel of each whose tiles are work-groups."""

    reasons: list[str | None]
    functions: dict[int, FusedKernel]


def fitting(
    questions: Questions,
    layout: Promotions,
    options: FusionOptions,
    target: Target,
    kernels: StageKernels,
) -> Steps[Fitting]:
    """Which stages of ``layout`` can be part of a persistent kernel."""
    found = Fitting([], {})
    of_kind: dict[int, bool] = {}
    functions: dict[tuple[int, tuple[int, ...] | None], Kernel | str] = {}
    for k, (stage, moved) in enumerate(zip(layout.stages, layout.moved, strict=True)):
        reason = None
        for s in stage.members:
            kind = questions.kind(s)
            if kind not in of_kind:
                of_kind[kind] = _needs_groups(questions.submissions[s].ir)
        if len(stage.members) > 1 and options.barriers == "all":
            reason = "barriers='all' asks for work-group barriers"
        elif (
            stage.crossing
            or any(of_kind[questions.kind(s)] for s in stage.members)
            or any(view.scope == "local" for view in moved)
        ):
            fused = kernels.fused(stage, moved)
            yield "passes"
            key = id(fused.kernel), stage.space.local_range
            if key not in functions:
                functions[key] = _function(fused.kernel, stage.space.local_range, target)
            made = functions[key]
            if isinstance(made, str):
                reason = made
            else:
                found.functions[k] = FusedKernel(made, fused.sources, fused.views)
        found.reasons.append(reason)
    yield "passes"
    return found


def _needs_groups(kernel: Kernel) -> bool:
    """Whether work-items of a group share local memory or wait for each other."""
    return waits_in_groups(kernel) or any(array.space == "local" for array in kernel.arrays)


def _function(
    kernel: Kernel,
    local_range: tuple[int, ...] | None,
    target: Target,
) -> Kernel | str:
    """The work-group function of a stage; or why it has none."""
    if local_range is None:
        if waits_in_groups(kernel):
            return f"{kernel.name} has work-group barriers or group functions"
        return f"{kernel.name} uses local memory, which belongs to a whole work-group"
    kernel = with_reductions(kernel, local_range, target.device)
    calls = [s for s in statements(kernel.body) if isinstance(s, GroupCall)]
    sizes = {call.sub_group for call in calls} - {None, target.sub_group_size}
    if sizes:
        different = ", ".join(map(str, sizes))
        return (
            f"{kernel.name} has functions of sub-groups of {different} work-items, and a worker's "
            f"have {target.sub_group_size}"
        )
    if target.device.float_groups == "unordered" and any(map(combines_floats, calls)):
        return (
            f"{kernel.name} combines floats of a work-group, which the device does in an order of "
            "its own and a persistent kernel in another"
        )
    if _as_threads(kernel, local_range, target):
        return kernel
    lanes = target.worker_size if target.worker_size == target.sub_group_size else None
    if kernel.sub_group_size not in (None, lanes):
        lanes = None
    plain = lower_group_functions(kernel, local_range, lambda call: call.sub_group is None, lanes)
    made = work_group_function(plain, local_range)
    verify(made)
    taken, most = local_places(made)[1], target.device.local_memory_bytes
    if taken > most:
        return (
            f"{kernel.name} keeps {taken:,} bytes for the work-items of a work-group from one "
            f"barrier to another, and the device has {most:,} bytes of local memory"
        )
    return made


def _as_threads(kernel: Kernel, local_range: tuple[int, ...], target: Target) -> bool:
    """Whether work-groups of ``local_range`` can run side by side in a worker, whose lanes are then
    their work-items: whole sub-groups, a part of its lanes without rest, and not too much local
    memory."""
    size, lanes = prod(local_range), target.worker_size
    if not target.device.groups_in_workers or size > lanes:
        return False
    if size % target.sub_group_size or lanes % size:
        return False
    if kernel.sub_group_size not in (None, target.sub_group_size):
        return False
    return lanes // size * local_places(kernel)[1] <= target.device.local_memory_bytes


def segments(unfit: Sequence[str | None]) -> list[range]:
    """The stages cut into runs: as long as can be of those that fit into a persistent kernel,
    and single ones of the others."""
    found: list[range] = []
    start = 0
    for k, reason in enumerate(unfit):
        if reason is not None:
            if start < k:
                found.append(range(start, k))
            found.append(range(k, k + 1))
            start = k + 1
    if start < len(unfit):
        found.append(range(start, len(unfit)))
    return found


@dataclass(frozen=True)
class Unproved:
    """A launch that does several stages in a persistent kernel, if its waits are enough."""

    launch: StagePlan
    prove: Callable[[], Steps[StagePlan | str]]
    """The launch, or one that waits for more, of which it is proved; or why there is none."""


def persistent_stage(
    questions: Questions,
    dependences: Sequence[Sequence[PairScope]],
    layout: Promotions,
    run: range,
    kernels: StageKernels,
    functions: Mapping[int, FusedKernel],
    target: Target,
    bound: BuildBound | None = None,
) -> Steps[Unproved | str]:
    """The launch that does the stages of ``layout`` with the numbers in ``run``, of a list with the
    direct ``dependences``, those whose tiles are work-groups by their ``functions``; or why there
    is none.  What is made for ``auto`` has a ``bound``."""
    stages = [layout.stages[k] for k in run]
    fused_stages = []
    different: dict[int, Kernel] = {}
    for k, stage in zip(run, stages, strict=True):
        fused = functions.get(k)
        if fused is None:
            fused = yield from in_steps(partial(kernels.fused, stage, layout.moved[k]))
        fused_stages.append(fused)
        different[id(fused.kernel)] = fused.kernel
        if bound is not None and len(different) > MOST_UNASKED:
            slow = bound.exceeded_by_bodies(different.values())
            if slow is not None:
                return f"{slow}: ask for strategy='megakernel' or tune=True to have it"
        yield "passes"
    submissions = questions.submissions
    items = [stage_items(submissions, stage.members, stage.space.mode) for stage in stages]
    relations = StageRelations(questions, items, dependences)
    parts = []
    for k, (stage, fused) in enumerate(zip(stages, fused_stages, strict=True)):
        why = nothing_left()
        if why is not None:
            return why
        waits = yield from in_steps(partial(_waits, relations, k))
        parts.append(_parts(questions, stage, fused, waits, target))
        yield "analysis"
    name = f"megakernel{len(stages)}_" + _joined([f.kernel.name for f in fused_stages])
    identity = Identity(questions)
    made = yield from persist(parts, name, identity, identity.memory)
    launch = StagePlan(
        submissions=tuple(s for stage in stages for s in stage.members),
        kernel=made.kernel,
        sources=tuple(made.sources[p.name] for p in made.kernel.params),
        geometry=stages[0].members[0],
        mode="linear",
        boundary=stages[0].boundary,
        inner=tuple(stage.members for stage in stages),
        inner_boundaries=tuple(stage.boundary for stage in stages),
    )

    def prove() -> Steps[StagePlan | str]:
        reason = yield from check_plan(relations, made, identity)
        if reason is None:
            return launch
        if isinstance(reason, str):
            return reason
        if 2 * len(reason.waits) > sum(len(part.waits) for part in parts):
            return reason.reason
        longer = [_waiting_for_all(part, k, reason.waits) for k, part in enumerate(parts)]
        other = yield from persist(longer, name, identity, identity.memory)
        left = yield from check_plan(relations, other, identity)
        if left is not None:
            return left if isinstance(left, str) else left.reason
        sources = tuple(other.sources[p.name] for p in other.kernel.params)
        return replace(launch, kernel=other.kernel, sources=sources)

    return Unproved(launch, prove)


def _waiting_for_all(
    part: StageParts, consumer: int, undecided: Container[tuple[int, int]]
) -> StageParts:
    """A stage, with waits for all of a producer where the pair is ``undecided``."""
    waits: list[StageWait] = []
    for wait in part.waits:
        if (wait.producer, consumer) not in undecided:
            waits.append(wait)
        elif all(wait.producer != other.producer for other in waits):
            waits.append(replace(wait, bounds=None, symbols={}))
    return replace(part, waits=tuple(waits))


def _joined(names: Sequence[str]) -> str:
    return "_".join(dict.fromkeys(names))[:40].rstrip("_")


def _waits(relations: StageRelations, consumer: int) -> list[StageWait]:
    waits = [_waits_for(relations, producer, consumer) for producer in relations.waits(consumer)]
    return [wait for of_producer in waits for wait in of_producer]


def _waits_for(relations: StageRelations, producer: int, consumer: int) -> list[StageWait]:
    """A stage's waits for another: one for each box of what it depends on."""
    stages = producer, consumer
    relation = relations.between(producer, consumer)
    assert relation is not None
    boxes, symbols = relations.ask(
        stages,
        ("wait", id(relation)),
        lambda analysis, of_two: (
            tile_boxes(
                relation, tile_context(analysis, of_two[1]), lambda name: Param(INT64, name)
            ),
            sources_of_symbols(analysis),
        ),
    )
    members = relations.members(stages)
    values = {n: of_members(s, members) for n, s in symbols.items()}
    return [StageWait(producer, bounds, values) for bounds in boxes or (None,)]


def _parts(
    questions: Questions,
    stage: Stage,
    fused: FusedKernel,
    waits: Sequence[StageWait],
    target: Target,
) -> StageParts:
    submissions = questions.submissions
    whole = largest(submissions, stage.members)
    dims = range(len(global_range(submissions[whole])))
    sources = [RangeSource(whole, d) for d in dims]
    extents: tuple[tuple[ParamSource, ...], ...] = (
        (tuple(sources),) if stage.space.mode == "linear" else tuple((s,) for s in sources)
    )
    names = ", ".join(label(s, submissions[s].ir.name) for s in stage.members)
    lanes = None
    if fused.kernel.ndim > 1:
        lanes = lane_dimension(fused.kernel, stage_sizes(questions, fused, whole), target)
    return StageParts(fused, names, extents, tuple(waits), stage.space.local_range, lanes)
