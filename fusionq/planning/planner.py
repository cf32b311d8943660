"""From a list of submissions to a plan: what runs together, what is promoted, and why."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from time import perf_counter

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.isl_operations import (
    ISL_LOCK,
    PlanOperations,
    keeping_back,
    operations_to_wait_for,
    plan_operations,
)
from fusionq.analysis.list_analysis import analyse
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.questions import Questions
from fusionq.analysis.small_extents import sources_of_small_extents
from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.base.config import debug_level
from fusionq.base.options import FusionOptions
from fusionq.base.phases import add_seconds
from fusionq.base.steps import Steps
from fusionq.base.target import Target
from fusionq.ir.nodes import Kernel
from fusionq.planning.build_bound import BuildBound, shorter
from fusionq.planning.cost import FEWEST_STAGES
from fusionq.planning.fallbacks import check_required, fallback_of, strategy_of
from fusionq.planning.few_items import FewItems
from fusionq.planning.flags import check_flags
from fusionq.planning.interchanged_list import interchanged_list
from fusionq.planning.items_in_groups import items_in_groups
from fusionq.planning.jammed_launches import JammedLaunches
from fusionq.planning.kept_launches import KeptLaunches
from fusionq.planning.known_extents import KnownExtents
from fusionq.planning.layout import launches_of, layout_of, promoted
from fusionq.planning.own_row_launches import OwnRowLaunches
from fusionq.planning.pinned_constants import PinnedConstants
from fusionq.planning.plan import Dependence, Plan, StagePlan
from fusionq.planning.plan_task import Draft, PlanTask
from fusionq.planning.points_list import points_list
from fusionq.planning.profitability import wanted_by
from fusionq.planning.row_turns import RowTurns
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
from fusionq.planning.turns_list import TurnsList, turns_list
from fusionq.planning.values_apart import with_values_apart
from fusionq.planning.widened_list import widened_list

MOST_COMPARED = 64
"""Submissions of a list for which ``auto`` looks for halos to compute anew, since each takes some
milliseconds."""

FOR_LAUNCHES = 0.25
"""Of the operations that the questions about a list may take, the share that is kept back, while
its dependences are found, for what is made of them."""

FOR_OTHER_WAYS = 0.5
"""Of those that are left then, the share for persistent kernels and halos computed anew."""

LAUNCHES_ALONE = ("unfused", "sequence", "fused")
"""The strategies that look for none of these."""


def make_plan(
    submissions: Sequence[Submission],
    options: FusionOptions,
    target: Target,
    known: Sequence[Plan] = (),
    measured: Callable[[], Target] | None = None,
    is_built: Callable[[Kernel], bool] = lambda kernel: False,
    seconds: float = inf,
    finds_dependences: bool = True,
) -> Plan:
    """Analyse the list and turn it into launches; ``known`` are plans of the same structure that
    do not serve it.  ``measured`` gives ``target`` with measured costs; without it ``auto`` makes
    no persistent kernels.  ``is_built``: whether a kernel has been built before, which costs
    nothing then.  ``seconds`` of processor time from now, what is not known by then stays so.
    ``finds_dependences``: False for a list that is to run unfused, whose launches need none.

    Raises FusionRefused if ``options.require`` and something that was asked for is not possible,
    PromotionConflict for contradictory flags.
    """
    planning = Planning(
        submissions, options, target, known, measured, is_built, seconds,
        finds_dependences=finds_dependences,
    )  # fmt: skip
    plan = planning.go_on()
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
        is_waited_for: bool = False,
        finds_dependences: bool = True,
    ) -> None:
        """``is_waited_for``: whether a program waits for the plan, so that the questions about the
        list may take less."""
        for submission in submissions:
            check_flags(submission)
        self.timings = {"analysis": 0.0, "passes": 0.0}
        """Seconds by phase that the steps have taken."""
        self._measuring = None if measured is None else _Measuring(measured)
        self.dependences: list[tuple[PairScope, ...]] = []
        """Of the first submissions, as far as they have been compared."""
        validities = [plan.validity for plan in known]
        operations = operations_to_wait_for(len(submissions)) if is_waited_for else None
        self._operations = PlanOperations(seconds, operations=operations)
        with ISL_LOCK:
            seen = varying_scalars(validities, submissions)
            fixed = constants(submissions, seen)
            varying = varying_since(validities, submissions, MOST_VALUES)
        self._bound_of = partial(BuildBound, target=target, is_built=is_built)
        self._bounded = options.strategy == "auto" and not options.require
        self._users = submissions
        self._task = PlanTask(
            submissions, options, target, fixed, seen, varying, bool(known), self._measuring,
            None, (), finds_dependences,
        )  # fmt: skip
        apart = with_values_apart(submissions, varying - fixed.keys(), validities)
        self._is_apart = apart != tuple(submissions)
        self._begin(apart)

    def _begin(self, submissions: Sequence[Submission]) -> None:
        """Plan ``submissions``, those of the task but for their scalars, from the start."""
        target = self._task.target
        widened = widened_list(submissions, target)
        self._interchanged = interchanged = interchanged_list(widened.submissions, target)
        with ISL_LOCK, plan_operations(self._operations):
            before = widened.rests_on, interchanged.rests_on
            turns = turns_list(interchanged.submissions, target, before)
        self._begin_with(turns)

    def go_on(self, stops: Callable[[], bool] = lambda: False) -> Plan | None:
        """The plan; None where it ``stops`` before the next step."""
        self._operations.stops = stops
        with ISL_LOCK, plan_operations(self._operations):
            started = perf_counter()
            while not stops():
                try:
                    phase = next(self._steps)
                except StopIteration as end:
                    if not self._turns.serves(end.value):
                        self._begin_without_turns()
                        continue
                    ordered = self._turns.users_plan(end.value, self._interchanged.submissions)
                    plan: Plan = self._interchanged.users_plan(ordered)
                    if self._is_apart and not plan.validity.holds(self._users):
                        self._is_apart = False
                        self._begin(self._users)
                        continue
                    self._add(plan.timings, "passes", perf_counter() - started)
                    return plan
                now = perf_counter()
                self._add(self.timings, phase, now - started)
                started = now
        return None

    def _add(self, timings: dict[str, float], phase: str, seconds: float) -> None:
        """Add the ``seconds`` of a step, of ``phase`` but for those that the device was measured
        for."""
        measuring = 0.0 if self._measuring is None else self._measuring.taken()
        if measuring >= _LEAST_MEASURING:
            add_seconds(timings, "measuring the device", measuring)
            seconds -= measuring
        add_seconds(timings, phase, seconds)

    def _begin_without_turns(self) -> None:
        """Plan the list anew, in which all submissions go through their ranges in turns."""
        self._begin_with(TurnsList(self._interchanged.submissions, {}, self._turns.before))

    def _begin_with(self, turns: TurnsList) -> None:
        """Plan the list of ``turns``."""
        self._turns, made = turns, turns.submissions
        bound = self._bound_of(made) if self._bounded else None
        self._task = replace(self._task, submissions=made, bound=bound, rest_on=turns.rest_on)
        self.dependences.clear()
        self._steps = _plan_steps(self._task, self.timings, self.dependences)


_LEAST_MEASURING = 1e-3
"""Seconds; looking up what was measured before takes less."""


class _Measuring:
    """Measures the device, once for all lists.  By itself: a Planning that its own task leads back
    to would keep the device's queue until the next collection."""

    def __init__(self, measured: Callable[[], Target]) -> None:
        self._measured, self._seconds = measured, 0.0

    def __call__(self) -> Target:
        started = perf_counter()
        try:
            return self._measured()
        finally:
            self._seconds += perf_counter() - started

    def taken(self) -> float:
        """Seconds since this was last asked."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds


def _plan_steps(
    task: PlanTask,
    timings: dict[str, float],
    dependences: list[tuple[PairScope, ...]],
    in_groups: bool = True,
    in_points: bool = True,
) -> Steps[Plan]:
    """``in_groups``: whether work-groups may do the work-items of others; ``in_points``: whether
    work-items may do all parts of a point."""
    submissions, options, target = task.submissions, task.options, task.target
    questions = Questions(submissions, task.varying)
    for rests_on in task.rest_on:
        rests_on(questions.validity)
    yield "analysis"
    users = questions
    about = task.varying, options, wanted_by(options), target, task.costs
    points = (yield from points_list(questions, *about)) if in_points else None
    if points is not None:
        questions = points.questions
    grouped = (yield from items_in_groups(questions, *about)) if in_groups else None
    if not task.finds_dependences:
        raw: list[tuple[PairScope, ...]] = [()] * len(questions.submissions)
    elif grouped is None:
        seen = dependences if points is None else None
        with keeping_back(0.0 if options.strategy == "unfused" else FOR_LAUNCHES):
            raw = yield from direct_dependences(questions, seen)
        if points is not None:
            dependences += raw
    else:
        questions, raw = grouped.questions, grouped.dependences
        dependences += raw
    with keeping_back(FOR_OTHER_WAYS if options.strategy not in LAUNCHES_ALONE else 0.0):
        found, launched = yield from layout_of(
            questions, raw, options, target, task.barrierless, task.costs, beside=True
        )
    if debug_level() >= 3:
        from fusionq.analysis.show import analysis_text

        print(f"--- analysis\n{analysis_text(analyse(submissions), found)}", file=sys.stderr)
    strategy = strategy_of(launched.stages, options)
    draft = Draft(found, launched, strategy, fallback_of(strategy, launched.stages, options))
    pinned = PinnedConstants(questions, task.seen)
    kernels = StageKernels(questions, options, target, task.fixed, pinned=pinned)
    if _may_be_persistent(task, launch_count(launched.stages)):
        from fusionq.planning.persistent_plan import with_persistent_kernels

        yield from with_persistent_kernels(task, questions, raw, kernels, draft)
    if points is None and _may_have_halos(task, launched.stages, raw):
        from fusionq.planning.overlapped_plan import with_halos_computed_anew

        yield from with_halos_computed_anew(task, users, grouped, raw, kernels, launched, draft)
    if options.require:
        check_required(draft.fallback, draft.layout.decisions)
    yield "analysis"
    plans = draft.plans
    if plans is None:
        plans = yield from _separate_launches(task, questions, raw, kernels, draft)
    if grouped is not None and draft.strategy != "overlap":
        if not grouped.are_hosted(plans):
            dependences.clear()
            return (yield from _plan_steps(task, timings, dependences, False, in_points))
        plans = grouped.launches(plans)
        grouped.rest()
    if points is not None:
        if not points.are_launched(plans):
            dependences.clear()
            return (yield from _plan_steps(task, timings, dependences, in_groups, False))
        plans = points.launches(plans)
        points.rest()
    if options.strategy != "unfused":
        made_faster = _with_faster_items(task, users, plans)
        if draft.strategy == "unfused" and made_faster != plans:
            draft.strategy = "sequence"
        plans = made_faster
    plan = Plan(
        strategy=draft.strategy,
        stages=plans,
        dependences=tuple(_dependence(submissions, f) for f in draft.found),
        promotions=draft.layout.decisions,
        fallback=draft.fallback,
        validity=users.validity.result(
            (*sources_of(task.fixed | pinned.used), *sources_of_small_extents(submissions))
        ),
        timings=timings,
        choice=draft.choice,
        recomputed=draft.recomputed,
    )
    if not (target.device.streams_rows and any(stage.inner for stage in plans)):
        return plan
    from fusionq.planning.ring_sizes import other_slots, with_slots

    if options.slot_bytes:
        return with_slots(plan, options.slot_bytes, target)
    return replace(plan, other_slots=other_slots(plans, target))


def _separate_launches(
    task: PlanTask,
    questions: Questions,
    dependences: Sequence[Sequence[PairScope]],
    kernels: StageKernels,
    draft: Draft,
) -> Steps[tuple[StagePlan, ...]]:
    """The launches of the stages of ``draft``, which are cut until that is built soon enough."""
    launches = yield from launches_of(kernels, draft.layout, task.bound)
    while isinstance(launches, str):
        reason = f"{launches}: ask for strategy='fused' or tune=True to have it"
        cut = shorter(questions.submissions, draft.layout.stages, reason)
        draft.found, draft.layout = yield from promoted(
            questions, dependences, cut, task.options, task.target
        )
        draft.strategy = strategy_of(cut, task.options)
        draft.fallback = fallback_of(draft.strategy, cut, task.options)
        launches = yield from launches_of(kernels, draft.layout, task.bound)
    return launches


def _with_faster_items(
    task: PlanTask, users: Questions, plans: Sequence[StagePlan]
) -> tuple[StagePlan, ...]:
    """The launches with what their work-items do arranged for the device."""
    given = task.submissions, task.target, users.validity
    jammed, rows, few = JammedLaunches(*given), RowVectorLaunches(*given), FewItems(*given)
    kept, own = KeptLaunches(*given), OwnRowLaunches(*given)
    turns = RowTurns(task.submissions, task.target)
    made = tuple(
        turns.plan(kept.plan(few.plan(own.plan(rows.plan(jammed.plan(plan)))))) for plan in plans
    )
    return made if task.is_another else tuple(map(KnownExtents(*given).plan, made))


def _may_be_persistent(task: PlanTask, launches: int) -> bool:
    """Whether to look for persistent kernels in place of so many ``launches``."""
    if launches == 1:
        return False
    tried = task.compares and launches >= FEWEST_STAGES and task.target.device.chooses_persistent
    return task.asks_for("megakernel") or tried


def _may_have_halos(
    task: PlanTask, stages: Sequence[Stage], dependences: Sequence[Sequence[PairScope]]
) -> bool:
    """Whether to look for halos to compute anew in place of the launches of ``stages``."""
    if task.asks_for("overlap"):
        return True
    return (
        task.compares
        and _exchange(stages)
        and len(task.submissions) <= MOST_COMPARED
        and _crosses_work_groups(dependences)
    )


def _exchange(stages: Sequence[Stage]) -> bool:
    """Whether work-items read what others have written: in other launches, or after barriers."""
    return launch_count(stages) > 1 or any(stage.crossing for stage in stages)


def _crosses_work_groups(dependences: Sequence[Sequence[PairScope]]) -> bool:
    """Whether work-items of some submission read what others have written."""
    crossing = ("GROUP", "GLOBAL")
    return any(d.kind == "RAW" and d.scope in crossing for needed in dependences for d in needed)


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
