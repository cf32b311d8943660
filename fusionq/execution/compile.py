"""From a list of submissions to a plan and its programs, as far as the caches do not have them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fusionq.analysis.aliasing import places_by_memory
from fusionq.analysis.submission import Operands, Sized, Submission
from fusionq.analysis.validity import for_this_order
from fusionq.backends.base import Backend, Program
from fusionq.base.call_site import user_span, warn_aborted
from fusionq.base.errors import DeviceError, FusionRefused
from fusionq.base.options import UNFUSED, FusionOptions
from fusionq.base.phases import add_seconds, timed
from fusionq.base.recursion import room_for_recursion
from fusionq.base.target import Target
from fusionq.cache.entries import keep_plans, kept_plans, kept_program
from fusionq.cache.plan_cache import PLANS, BuiltPlan
from fusionq.execution.planning_time import UNFINISHED, PlanningStopped, seconds_allowed
from fusionq.execution.programs import build_together, is_built, programs_before, programs_of
from fusionq.ir.nodes import Kernel
from fusionq.planning.plan import Plan
from fusionq.planning.structure import structure_key, structure_of

if TYPE_CHECKING:
    from fusionq.planning.planner import Planning
    from fusionq.report.model import CacheOutcome


def built_plan(
    backend: Backend,
    submissions: tuple[Submission, ...],
    options: FusionOptions,
    timings: dict[str, float],
    may_fall_back: bool = True,
) -> tuple[BuiltPlan, CacheOutcome]:
    """The plan and its programs, and where the plan comes from; adds the seconds by phase to
    ``timings``.

    A list whose kernels cannot be built runs unfused; DeviceError if that cannot be built either,
    or not ``may_fall_back``.  PlanningStopped, or FusionRefused if ``options.require``, where
    planning takes longer than the list may wait for it; a list to be tuned waits for all of it.
    """
    key = plans_key(backend, submissions, options)
    built = known_plan(key, submissions)
    if built is not None:
        return built, "memory"
    known = PLANS.plans(key)
    with room_for_recursion("a kernel of the list"):
        built, outcome = _built_plan(
            backend, submissions, options, timings, [b.plan for b in known], may_fall_back
        )
    PLANS.add_plan(key, built)
    return built, outcome


def known_plan(key: Hashable, submissions: Sequence[Sized]) -> BuiltPlan | None:
    """The plan that is in memory for ``submissions``, whose ``plans_key`` is ``key``."""
    for built in PLANS.plans(key):
        if built.plan.validity.holds(submissions):
            return built
    return None


def _built_plan(
    backend: Backend,
    submissions: tuple[Submission, ...],
    options: FusionOptions,
    timings: dict[str, float],
    known: list[Plan],
    may_fall_back: bool,
) -> tuple[BuiltPlan, CacheOutcome]:
    """As ``built_plan``, where no plan of this process, which are ``known``, holds."""
    with timed(timings, "disk"):
        kept = kept_plans(submissions, options, backend.target)
    plan = next((plan for plan in kept if plan.validity.holds(submissions)), None)
    outcome: CacheOutcome = "miss" if plan is None else "disk"
    if plan is None:
        bounded = may_fall_back and not options.tune and len(submissions) > 1
        bounded = bounded and options.strategy != "unfused"
        make = planned_in_time if bounded else _new_plan
        plan = _with_other_slots(backend, submissions, options)
        plan = plan or make(backend, submissions, options, timings, (*known, *kept))
    if not plan.measured and any(other.measured for other in (*known, *kept)):
        # Nor may it be found where another one was measured to be the fastest.
        plan = replace(plan, validity=for_this_order(plan.validity, submissions))
    try:
        built = BuiltPlan(plan, programs_of(backend, plan, options, timings))
    except DeviceError as error:
        if plan.strategy == "unfused" or not may_fall_back:
            raise
        reason = f"the fused kernel could not be built: {error}"
        if options.require:
            raise FusionRefused(f"{user_span()}: require=True, but {reason}") from error
        unfused = _new_plan(backend, submissions, UNFUSED, timings, ())
        plan = replace(unfused, fallback=reason)
        built = BuiltPlan(plan, programs_of(backend, plan, options, timings))
        warn_aborted(f"the list runs unfused: {reason}")
        outcome = "miss"
    else:
        if outcome == "miss":
            with timed(timings, "disk"):
                keep_plans((plan, *kept), submissions, options, backend.target)
    return built, outcome


@room_for_recursion("a kernel of the list")
def measured_plan(
    backend: Backend,
    submissions: tuple[Submission, ...],
    options: FusionOptions,
    timings: dict[str, float],
) -> tuple[BuiltPlan, CacheOutcome] | None:
    """As ``built_plan``, if a plan is remembered that was chosen by measuring, and can be built."""
    return _remembered_plan(backend, submissions, options, timings, measured=True)


@room_for_recursion("a kernel of the list")
def finished_plan(
    backend: Backend,
    submissions: tuple[Submission, ...],
    options: FusionOptions,
    timings: dict[str, float],
) -> tuple[BuiltPlan, CacheOutcome] | None:
    """As ``built_plan``, if nothing has to be planned or built for it."""
    return _remembered_plan(backend, submissions, options, timings, measured=False)


@room_for_recursion("a kernel of the list")
def loaded_plan(
    backend: Backend, submissions: tuple[Submission, ...], options: FusionOptions
) -> BuiltPlan | None:
    """As ``finished_plan``, from disk alone and for any thread: what is found is given to the
    caches of memory by ``remember``."""
    kept = kept_plans(submissions, options, backend.target)
    plan = next((plan for plan in kept if plan.validity.holds(submissions)), None)
    if plan is None:
        return None
    programs: dict[Kernel, Program] = {}
    for stage in plan.stages:
        kernel = stage.kernel
        if kernel in programs:
            continue
        program = PLANS.loaded_program((backend.program_domain, kernel, options.fp))
        if program is None:
            found = kept_program(backend, kernel, options.fp)
            if found is None:
                return None
            program = backend.restore(kernel, options.fp, found)
        programs[kernel] = program
    return BuiltPlan(plan, tuple([programs[stage.kernel] for stage in plan.stages]))


def remember(
    backend: Backend,
    submissions: tuple[Submission, ...],
    options: FusionOptions,
    built: BuiltPlan,
) -> None:
    """Give a plan and its programs to the caches of memory."""
    for stage, program in zip(built.plan.stages, built.programs, strict=True):
        PLANS.add_program((backend.program_domain, stage.kernel, options.fp), program)
    PLANS.add_plan(plans_key(backend, submissions, options), built)


def plan_built(
    backend: Backend,
    submissions: tuple[Submission, ...],
    options: FusionOptions,
    plan: Plan,
    timings: dict[str, float],
) -> None:
    """Build a plan that was made just now, and keep it in memory and on disk; DeviceError where
    that cannot be built."""
    built = BuiltPlan(plan, programs_of(backend, plan, options, timings))
    PLANS.add_plan(plans_key(backend, submissions, options), built)
    with timed(timings, "disk"):
        kept = kept_plans(submissions, options, backend.target)
        keep_plans((plan, *kept), submissions, options, backend.target)


def planned(
    backend: Backend, submissions: tuple[Submission, ...], options: FusionOptions, seconds: float
) -> Plan:
    """The plan, from disk or made now and kept there, of which nothing is built.  PlanningStopped
    where making it takes more than so many ``seconds`` of processor time."""
    kept = kept_plans(submissions, options, backend.target)
    plan = next((plan for plan in kept if plan.validity.holds(submissions)), None)
    if plan is None:
        with room_for_recursion("a kernel of the list"):
            plan = _with_other_slots(backend, submissions, options) or planned_in_time(
                backend, submissions, options, {}, kept, seconds, is_waited_for=False
            )
        keep_plans((plan, *kept), submissions, options, backend.target)
    return plan


def _with_other_slots(
    backend: Backend, submissions: tuple[Submission, ...], options: FusionOptions
) -> Plan | None:
    """The plan where ``options`` ask for slots of another size, if there is one with the target's:
    nothing else in it differs."""
    if not options.slot_bytes:
        return None
    from fusionq.planning.ring_sizes import with_slots

    usual = options._replace(slot_bytes=0)
    known = [built.plan for built in PLANS.plans(plans_key(backend, submissions, usual))]
    for plan in (*known, *kept_plans(submissions, usual, backend.target)):
        if plan.validity.holds(submissions):
            return with_slots(plan, options.slot_bytes, backend.target)
    return None


def _remembered_plan(
    backend: Backend,
    submissions: tuple[Submission, ...],
    options: FusionOptions,
    timings: dict[str, float],
    *,
    measured: bool,
) -> tuple[BuiltPlan, CacheOutcome] | None:
    """A plan from memory or from disk that holds: one chosen by measuring, which is built if need
    be, or any of which all is built."""

    def serves(plan: Plan) -> bool:
        return (plan.measured or not measured) and plan.validity.holds(submissions)

    key = plans_key(backend, submissions, options)
    for built in PLANS.plans(key):
        if serves(built.plan):
            return built, "memory"
    with timed(timings, "disk"):
        kept = kept_plans(submissions, options, backend.target)
    plan = next(filter(serves, kept), None)
    if plan is None:
        return None
    make = programs_of if measured else programs_before
    try:
        programs = make(backend, plan, options, timings)
    except DeviceError:
        return None
    if programs is None:
        return None
    built = BuiltPlan(plan, programs)
    if measured:
        PLANS.supersede(key, built)
    else:
        PLANS.add_plan(key, built)
    return built, "disk"


def keep_measured(
    backend: Backend,
    submissions: tuple[Submission, ...],
    options: FusionOptions,
    built: BuiltPlan,
) -> None:
    """Remember a plan that was chosen by measuring, in memory and on disk, before others."""
    PLANS.supersede(plans_key(backend, submissions, options), built)
    kept = kept_plans(submissions, options, backend.target)
    keep_plans((built.plan, *kept), submissions, options, backend.target)


def plans_key(
    backend: Backend, submissions: tuple[Submission, ...], options: FusionOptions
) -> Hashable:
    """Under what the process keeps the plans of lists like ``submissions``."""
    return backend.program_domain, structure_key(submissions, options)


def plans_key_by_memory(
    backend: Backend,
    submissions: Sequence[Operands],
    memories: tuple[int, ...],
    options: FusionOptions,
) -> Hashable | None:
    """``plans_key`` of a list whose arrays lie in ``memories``, which do not overlap, before its
    submissions are made; None where addresses have to be compared."""
    aliasing = places_by_memory(submissions, memories)
    if aliasing is None:
        return None
    return backend.program_domain, structure_of(submissions, aliasing, options)


def _new_plan(
    backend: Backend,
    submissions: tuple[Submission, ...],
    options: FusionOptions,
    timings: dict[str, float],
    known: tuple[Plan, ...],
) -> Plan:
    with timed(timings, "import"):
        from fusionq.execution.device_costs import measured_target
        from fusionq.planning.planner import make_plan

    plan = make_plan(
        submissions,
        options,
        backend.target,
        known,
        lambda: measured_target(backend),
        lambda kernel: is_built(backend, kernel, options.fp),
        finds_dependences=options.strategy != "unfused",
    )
    for phase, seconds in plan.timings.items():
        add_seconds(timings, phase, seconds)
    return plan


def planned_in_time(
    backend: Backend,
    submissions: tuple[Submission, ...],
    options: FusionOptions,
    timings: dict[str, float],
    known: tuple[Plan, ...] = (),
    seconds: float | None = None,
    stops: Callable[[Planning], bool] = lambda planning: False,
    is_waited_for: bool = True,
    measures: bool = True,
) -> Plan:
    """As ``_new_plan``; PlanningStopped or FusionRefused where it takes too long: ``seconds``, or
    as long as the list may wait for it; or where planning ``stops`` by what it has found.
    ``is_waited_for``: whether the program waits for the plan, in which less is proved then;
    ``measures``: whether costs of the device that nobody has measured are measured now."""
    with timed(timings, "import"):
        from fusionq.execution.device_costs import known_target, measured_target
        from fusionq.planning.planner import Planning

    def start(known: tuple[Plan, ...]) -> Planning:
        def measured() -> Target:
            if not measures:
                return known_target(backend)
            with UNFINISHED.unbounded():
                return measured_target(backend)

        def built_before(kernel: Kernel) -> bool:
            return is_built(backend, kernel, options.fp)

        return Planning(
            submissions, options, backend.target, known, measured, built_before,
            is_waited_for=is_waited_for,
        )  # fmt: skip

    key = plans_key(backend, submissions, options)
    if seconds is None:
        asks_for_speed = options.strategy == "auto" and not options.require
        goes_on = asks_for_speed and UNFINISHED.has(key)
        seconds = seconds_allowed(submissions, backend.target.costs, goes_on)
    try:
        return UNFINISHED.plan(key, submissions, known, start, seconds, timings, stops)
    except PlanningStopped as stopped:
        if options.require:
            raise FusionRefused(f"{user_span()}: require=True, but {stopped}") from stopped
        raise


def build_alone(
    backend: Backend, lists: Sequence[tuple[Submission, ...]], timings: dict[str, float]
) -> None:
    """Give the caches of memory the plans and programs of ``lists``, each of one submission that
    will run by itself; where one of them cannot be built, nothing."""
    plans: dict[Hashable, tuple[tuple[Submission, ...], Plan, bool]] = {}
    for submissions in lists:
        key = plans_key(backend, submissions, UNFUSED)
        if key in plans or any(b.plan.validity.holds(submissions) for b in PLANS.plans(key)):
            continue
        with timed(timings, "disk"):
            kept = kept_plans(submissions, UNFUSED, backend.target)
        plan = next((plan for plan in kept if plan.validity.holds(submissions)), None)
        if plan is None and kept:
            continue  # of other sizes: it is planned with these in mind
        is_new = plan is None
        plan = plan or _new_plan(backend, submissions, UNFUSED, timings, ())
        plans[key] = submissions, plan, is_new
    kernels = [stage.kernel for _, plan, _ in plans.values() for stage in plan.stages]
    build_together(backend, kernels, UNFUSED.fp, timings)
    for key, (submissions, plan, is_new) in plans.items():
        PLANS.add_plan(key, BuiltPlan(plan, programs_of(backend, plan, UNFUSED, timings)))
        if is_new:
            with timed(timings, "disk"):
                keep_plans((plan,), submissions, UNFUSED, backend.target)
