"""A list's plan with halos computed anew, where that is asked for or faster by the model."""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.isl_operations import PlanTooHard
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.questions import Questions
from fusionq.analysis.validity import largest_extent, size_order
from fusionq.base.steps import Steps
from fusionq.planning.build_bound import slow_to_build
from fusionq.planning.cost import with_persistent
from fusionq.planning.fallbacks import unjoined
from fusionq.planning.items_in_groups import ItemsInGroups
from fusionq.planning.layout import all_launches
from fusionq.planning.overlap import Overlap, with_overlap
from fusionq.planning.overlap_choice import (
    compared_work,
    most_taken,
    saves_launches,
    saves_little,
    takes_longer,
)
from fusionq.planning.plan import StagePlan
from fusionq.planning.plan_task import Draft, PlanTask
from fusionq.planning.promotion import Promotions
from fusionq.planning.side_by_side import launch_count
from fusionq.planning.stage_kernels import StageKernels


def with_halos_computed_anew(
    task: PlanTask,
    users: Questions,
    grouped: ItemsInGroups | None,
    dependences: Sequence[Sequence[PairScope]],
    kernels: StageKernels,
    launched: Promotions,
    draft: Draft,
) -> Steps[None]:
    """Let ``draft`` be a plan in which halos are computed anew, if that is better than it and than
    the launches ``launched``; where it is not, it says why.  ``users``: the list as the user has
    written it; ``grouped`` and ``dependences``: the one that the launches are of."""
    asked, costs = task.asks_for("overlap"), task.costs()
    count = launch_count(launched.stages)
    if asked and count == 1 and {d.scope for d in launched.decisions} == {"private"}:
        draft.fallback = (
            "nothing has to be computed anew: one kernel does, with no temporary in memory"
        )
        return
    base = yield from all_launches(kernels, launched)
    if grouped is not None:
        base = grouped.launches(base)
        dependences = yield from direct_dependences(users)
    if not asked:
        little = saves_little(users, base, not launched.decisions, draft.estimates, costs)
        extent = largest_extent(task.submissions)
        users.validity.demand_between(extent, *size_order(extent))
        if little is not None:
            draft.add_choice(little)
            return
    overlap: Overlap | str
    try:
        overlap = yield from with_overlap(
            users, dependences, task.options, costs, task.fixed, task.varying, task.barrierless,
            launched.decisions, most_taken(users, base, asked, costs),
        )  # fmt: skip
    except PlanTooHard as error:
        overlap = str(error)
    if isinstance(overlap, str):
        draft.fallback = overlap if asked else draft.fallback
        return
    if asked:
        taken, draft.fallback = _serves(task, users, base, overlap, count, draft.fallback)
    else:
        taken = _is_faster(task, users, base, overlap, draft)
    if taken:
        draft.found, draft.layout, draft.plans = overlap.found, overlap.layout, overlap.plans
        draft.recomputed = overlap.recomputed
        draft.strategy, draft.fallback = "overlap", unjoined(overlap.plans)


def _serves(
    task: PlanTask,
    users: Questions,
    base: Sequence[StagePlan],
    overlap: Overlap,
    count: int,
    fallback: str | None,
) -> tuple[bool, str | None]:
    """Whether ``overlap``, which was asked for, is taken in place of ``count`` launches; why the
    list is not what was asked for, where it is not, ``fallback`` without a better reason."""
    overlapped = len(overlap.plans)
    stored = all(r.stored for r in overlap.recomputed)
    alone = count == 1 and not task.options.require
    if alone or saves_launches(overlapped, count, stored):
        longer = takes_longer(users, base, overlap.plans, task.costs())
        return longer is None, longer or fallback
    if count > 1:
        fallback = f"{overlapped} launches with halos computed anew, and {count} without"
        if overlapped == count:
            fallback += ", and as much in memory"
    return False, fallback


def _is_faster(
    task: PlanTask,
    users: Questions,
    base: Sequence[StagePlan],
    overlap: Overlap,
    draft: Draft,
) -> bool:
    """Whether ``overlap`` is faster than the launches ``base`` and than ``draft``, and built soon
    enough; the draft says on what grounds."""
    compared = compared_work(users, base, overlap.plans, task.costs())
    faster = compared.prefers_overlap
    if draft.strategy == "megakernel":
        faster &= compared.overlapped < with_persistent(draft.estimates, compared)
    draft.add_choice(str(compared))
    slow = slow_to_build(overlap.plans, task.bound) if faster else None
    if slow is not None:
        draft.choice = f"{draft.choice}; {slow}: ask for strategy='overlap' to have it"
    return faster and slow is None
