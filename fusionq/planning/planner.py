"""From a list of submissions to a plan: what runs together, what is promoted, and why."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.list_analysis import analyse
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.proof import ISL_LOCK, PlanOperations, PlanTooHard, plan_operations
from fusionq.analysis.questions import Questions
from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.analysis.validity import ScalarPlace, largest_extent, size_order
from fusionq.base.config import debug_level
from fusionq.base.errors import FusionRefused
from fusionq.base.options import FusionOptions
from fusionq.base.phases import add_seconds
from fusionq.base.steps import Steps
from fusionq.base.target import Target
from fusionq.ir.nodes import Kernel
from fusionq.planning.build_bound import BuildBound, shorter, slow_to_build
from fusionq.planning.cost import FEWEST_STAGES, Estimate, with_persistent
from fusionq.planning.few_items import FewItems
from fusionq.planning.flags import check_flags
from fusionq.planning.items_in_groups import items_in_groups
from fusionq.planning.jammed_launches import JammedLaunches
from fusionq.planning.layout import all_launches, launches_of, layout_of, promoted
from fusionq.planning.plan import (
    Became,
    Dependence,
    Plan,
    PromotionDecision,
    Recomputation,
    StagePlan,
)
from fusionq.planning.profitability import wanted_by
from fusionq.planning.row_vector_launches import RowVectorLaunches
from fusionq.planning.side_by_side import launch_count
from fusionq.planning.specialise import (
    MOST_VALUES,
    constants,
    sources_of,
    varying_scalars,
    varying_since,
)
from fusionq.planning.stage_kernels import StageKernels
from fusionq.planning.stages import Stage

if TYPE_CHECKING:
    from fusionq.planning.overlap import Overlap

_NOT_ALLOWED = "barriers='none' allows no work-group barrier between them"

MOST_COMPARED = 64
"""Submissions of a list for which ``auto`` looks for halos to compute anew, since each takes some
milliseconds."""


def make_plan(
    submissions: Sequence[Submission],
    options: FusionOptions,
    target: Target,
    known: Sequence[Plan] = (),
    measured: Callable[[], Target] | None = None,
    is_built: Callable[[Kernel], bool] = lambda kernel: False,
    seconds: float = inf,
) -> Plan:
    """Analyse the list and turn it into launches; ``known`` are plans of the same structure that
    do not serve it.  ``measured`` gives ``target`` with measured costs; without it ``auto`` makes
    no persistent kernels.  ``is_built``: whether a kernel has been built before, which costs
    nothing then.  ``seconds`` of processor time from now, what is not known by then stays so.

    Raises FusionRefused if ``options.require`` and something that was asked for is not possible,
    PromotionConflict for contradictory flags.
    """
    plan = Planning(submissions, options, target, known, measured, is_built, seconds).go_on()
    assert plan is not None
    return plan


class Planning:
    """``make_plan`` in short steps, between which it may stop and go on later."""

    def __init__(
        self,
        submissions: Sequence[Submission],
        options: FusionOptions,
        target: Target,
        known: Sequence[Plan] = (),
        measured: Callable[[], Target] | None = None,
        is_built: Callable[[Kernel], bool] = lambda kernel: False,
        seconds: float = inf,
    ) -> None:
        for submission in submissions:
            check_flags(submission)
        self.timings = {"analysis": 0.0, "passes": 0.0}
        """Seconds by phase that the steps have taken."""
        self.dependences: list[tuple[PairScope, ...]] = []
        """Of the first submissions, as far as they have been compared."""
        validities = [plan.validity for plan in known]
        with ISL_LOCK:
            fixed = constants(submissions, varying_scalars(validities, submissions))
            varying = varying_since(validities, submissions, MOST_VALUES)
        bounded = options.strategy == "auto" and not options.require
        bound = BuildBound(submissions, target, is_built) if bounded else None
        self._operations = PlanOperations(seconds)
        self._steps = _plan_steps(
            submissions, options, target, fixed, varying, measured, bound, self.timings,
            self.dependences,
        )  # fmt: skip

    def go_on(self, stops: Callable[[], bool] = lambda: False) -> Plan | None:
        """The plan; None where it ``stops`` before the next step."""
        self._operations.stops = stops
        with ISL_LOCK, plan_operations(self._operations):
            started = perf_counter()
            while not stops():
                try:
                    phase = next(self._steps)
                except StopIteration as end:
                    plan: Plan = end.value
                    add_seconds(plan.timings, "passes", perf_counter() - started)
                    return plan
                now = perf_counter()
                add_seconds(self.timings, phase, now - started)
                started = now
        return None


def _plan_steps(
    submissions: Sequence[Submission],
    options: FusionOptions,
    target: Target,
    fixed: dict[ScalarPlace, int],
    varying: Collection[ScalarPlace],
    measured: Callable[[], Target] | None,
    bound: BuildBound | None,
    timings: dict[str, float],
    dependences: list[tuple[PairScope, ...]],
    in_groups: bool = True,
) -> Steps[Plan]:
    """``in_groups``: whether work-groups may do the work-items of others."""
    questions = Questions(submissions, varying)
    yield "analysis"
    users = questions
    with_costs = measured or (lambda: target)
    grouped = None
    if in_groups:
        wanted = wanted_by(options)
        grouped = yield from items_in_groups(
            questions, varying, options, wanted, target, with_costs
        )
    if grouped is None:
        raw = yield from direct_dependences(questions, dependences)
    else:
        questions, raw = grouped.questions, grouped.dependences
        dependences += raw
    barrierless = _NOT_ALLOWED if options.barriers == "none" else None
    found, layout = yield from layout_of(
        questions, raw, options, target, barrierless, with_costs, beside=True
    )
    if debug_level() >= 3:
        from fusionq.analysis.show import analysis_text

        print(f"--- analysis\n{analysis_text(analyse(submissions), found)}", file=sys.stderr)
    launched, stages = layout, layout.stages
    count = launch_count(stages)
    strategy = _strategy(stages, options)
    fallback = _fallback(strategy, stages, options)
    kernels = StageKernels(questions, options, target, fixed)
    plans: tuple[StagePlan, ...] | None = None
    choice: str | None = None
    recomputed: tuple[Recomputation, ...] = ()
    estimates: list[Estimate] = []
    asked = options.strategy == "megakernel"
    tried = options.strategy == "auto" and measured is not None and count >= FEWEST_STAGES
    tried = tried and target.device.chooses_persistent
    if count > 1 and (asked or tried):
        from fusionq.planning.persistent_choice import PersistentChoice
        from fusionq.planning.persistent_list import NOT_WANTED, persistent_list

        persistent = PersistentChoice(questions, stages, target, measured, bound, asked)
        made = yield from persistent_list(
            questions, raw, options, target, kernels, bound, with_costs, persistent.wants
        )
        if not isinstance(made, str):
            found, layout, plans = made
            strategy, fallback = "megakernel", _unjoined(plans)
            estimates = persistent.estimates
        elif asked:
            fallback = made
        if not isinstance(made, str) or made == NOT_WANTED:
            choice = persistent.text
    asked = options.strategy == "overlap"
    tried = options.strategy == "auto" and measured is not None
    if asked and count == 1 and {d.scope for d in launched.decisions} == {"private"}:
        fallback = "nothing has to be computed anew: one kernel does, with no temporary in memory"
    elif asked or (
        tried
        and _exchange(stages)
        and len(submissions) <= MOST_COMPARED
        and _crosses_work_groups(raw)
    ):
        from fusionq.planning.overlap import with_overlap
        from fusionq.planning.overlap_choice import (
            compared_work,
            most_taken,
            saves_launches,
            saves_little,
            takes_longer,
        )  # fmt: skip

        costs = target if measured is None else measured()
        base = yield from all_launches(kernels, launched)
        of_users = raw
        if grouped is not None:
            base = grouped.launches(base)
            of_users = yield from direct_dependences(users)
        little: str | None = None
        if not asked:
            little = saves_little(users, base, not launched.decisions, estimates, costs)
            extent = largest_extent(submissions)
            users.validity.demand_between(extent, *size_order(extent))
        overlap: Overlap | str
        if little is not None:
            overlap, choice = little, "; ".join(filter(None, (choice, little)))
        else:
            try:
                overlap = yield from with_overlap(
                    users, of_users, options, costs, fixed, varying, barrierless,
                    launched.decisions, most_taken(users, base, asked, costs),
                )  # fmt: skip
            except PlanTooHard as error:
                overlap = str(error)
        if isinstance(overlap, str):
            fallback = overlap if asked else fallback
        else:
            overlapped = len(overlap.plans)
            alone = count == 1 and not options.require
            stored = all(r.stored for r in overlap.recomputed)
            profitable = asked and (alone or saves_launches(overlapped, count, stored))
            if asked and not profitable and count > 1:
                fallback = f"{overlapped} launches with halos computed anew, and {count} without"
                if overlapped == count:
                    fallback += ", and as much in memory"
            if profitable:
                longer = takes_longer(users, base, overlap.plans, costs)
                profitable, fallback = longer is None, longer or fallback
            elif not asked:
                compared = compared_work(users, base, overlap.plans, costs)
                profitable = compared.prefers_overlap
                if strategy == "megakernel":
                    profitable &= compared.overlapped < with_persistent(estimates, compared)
                choice = "; ".join(filter(None, (choice, str(compared))))
                slow = slow_to_build(overlap.plans, bound) if profitable else None
                if slow is not None:
                    profitable = False
                    choice += f"; {slow}: ask for strategy='overlap' to have it"
            if profitable:
                found, layout, plans = overlap.found, overlap.layout, overlap.plans
                recomputed = overlap.recomputed
                strategy, fallback = "overlap", _unjoined(plans)
    if options.require:
        _require(fallback, layout.decisions)
    yield "analysis"
    if plans is None:
        separate = yield from launches_of(kernels, layout, bound)
        while isinstance(separate, str):
            remedy = "ask for strategy='fused' or tune=True to have it"
            cut = shorter(questions.submissions, layout.stages, f"{separate}: {remedy}")
            found, layout = yield from promoted(questions, raw, cut, options, target)
            strategy = _strategy(cut, options)
            fallback = _fallback(strategy, cut, options)
            separate = yield from launches_of(kernels, layout, bound)
        plans = separate
    if grouped is not None and strategy != "overlap":
        if not grouped.are_hosted(plans):
            dependences.clear()
            return (
                yield from _plan_steps(
                    submissions, options, target, fixed, varying, measured, bound, timings,
                    dependences, in_groups=False,
                )
            )  # fmt: skip
        plans = grouped.launches(plans)
        grouped.rest()
    if options.strategy != "unfused":
        jammed = JammedLaunches(submissions, target, users.validity)
        rows = RowVectorLaunches(submissions, target, users.validity)
        few = FewItems(submissions, target, users.validity)
        made_faster = tuple(few.plan(rows.plan(jammed.plan(plan))) for plan in plans)
        if strategy == "unfused" and made_faster != plans:
            strategy = "sequence"
        plans = made_faster
    return Plan(
        strategy=strategy,
        stages=plans,
        dependences=tuple(_dependence(submissions, f) for f in found),
        promotions=layout.decisions,
        fallback=fallback,
        validity=users.validity.result(sources_of(fixed)),
        timings=timings,
        choice=choice,
        recomputed=recomputed,
    )


def _exchange(stages: Sequence[Stage]) -> bool:
    """Whether work-items read what others have written: in other launches, or after barriers."""
    return launch_count(stages) > 1 or any(stage.crossing for stage in stages)


def _crosses_work_groups(dependences: Sequence[Sequence[PairScope]]) -> bool:
    """Whether work-items of some submission read what others have written."""
    crossing = ("GROUP", "GLOBAL")
    return any(d.kind == "RAW" and d.scope in crossing for needed in dependences for d in needed)


def _unjoined(plans: Sequence[StagePlan]) -> str | None:
    """Why a list with a persistent kernel is not one launch; None if it is."""
    return next((plan.boundary for plan in plans[1:] if plan.boundary is not None), None)


def _strategy(stages: Sequence[Stage], options: FusionOptions) -> Became:
    if options.strategy == "unfused":
        return "unfused"
    if launch_count(stages) == 1:
        return "sequence" if options.strategy == "sequence" else "fused"
    joined = any(len(stage.members) > 1 or stage.beside for stage in stages)
    return "sequence" if joined else "unfused"


def _fallback(strategy: str, stages: Sequence[Stage], options: FusionOptions) -> str | None:
    """Why the list did not become what was asked for."""
    if options.strategy == "unfused" or (options.strategy == "sequence" and strategy == "sequence"):
        return None
    boundaries = [s.boundary for s in stages if s.boundary is not None and not s.beside]
    if options.strategy == "megakernel" and not boundaries:
        return "a megakernel is not needed: no dependence crosses work-groups, so one kernel does"
    return boundaries[0] if boundaries else None


def _require(fallback: str | None, decisions: Sequence[PromotionDecision]) -> None:
    if fallback is not None:
        raise FusionRefused(
            f"require=True, but the list does not become one kernel: {fallback}. "
            "Leave require out to run it as several launches."
        )
    for decision in decisions:
        if decision.scope == "global":
            raise FusionRefused(
                f"require=True, but `{decision.buffer}` stays in global memory: "
                f"{decision.reason}. Leave require or the flag out."
            )


def _dependence(submissions: Sequence[Submission], f: PairScope) -> Dependence:
    argument = submissions[f.consumer].arguments[f.consumer_argument]
    assert isinstance(argument, ArrayArgument)
    return Dependence(
        f.producer, f.consumer, argument.text, f.consumer_argument, f.kind, f.scope, f.reason,
        f.producer_span, f.consumer_span,
    )  # fmt: skip


def holds_for(plan: Plan, submissions: Sequence[Submission]) -> bool:
    """Whether ``plan`` serves ``submissions``, which have the structure it was made for."""
    return plan.validity.holds(submissions)
