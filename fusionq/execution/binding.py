"""From a list of submissions to launches: plan, build, prepare; and the report of it."""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fusionq.analysis.submission import (
    ArrayArgument,
    LocalArgument,
    ScalarArgument,
    Submission,
)
from fusionq.backends.base import ArrayBinding, Backend, Binding, DeviceEvent, PreparedLaunch
from fusionq.base.call_site import user_span
from fusionq.base.config import debug_level
from fusionq.base.errors import FusionStateError
from fusionq.base.options import UNFUSED, OptionValues
from fusionq.base.target import LaunchShape
from fusionq.cache.memory import BuiltPlan
from fusionq.execution.compile import built_plan
from fusionq.memory.storage import Storage
from fusionq.planning.plan import (
    ArgumentSource,
    ExtentSource,
    FusionOptions,
    ParamSource,
    Plan,
    QueueSource,
    RangeSource,
    StagePlan,
)
from fusionq.submission.pending import ScalarValue, SubmissionList

if TYPE_CHECKING:
    from fusionq.backends.base import Program
    from fusionq.megakernel.launch import PersistentLaunch
    from fusionq.megakernel.schedule import Schedule
    from fusionq.report.model import CacheOutcome
    from fusionq.report.report import Report


class PreparedRun:
    """Launches for one list of submissions on one queue, ready to be repeated.

    It keeps no memory alive: whoever launches holds the arguments' storages.
    """

    __slots__ = (
        "bound_memory",
        "bound_values",
        "built",
        "cache",
        "checks",
        "last_use",
        "launches",
        "memory",
        "plan_depends_on_scalars",
        "profiled",
        "scheduling",
        "setters",
        "single",
        "stage_of",
        "storages",
        "submissions",
        "timings",
        "tokens",
    )

    def __init__(
        self,
        built: BuiltPlan,
        submissions: tuple[Submission, ...],
        cache: CacheOutcome,
        timings: dict[str, float],
    ) -> None:
        self.built = built
        self.submissions = submissions
        self.cache = cache
        self.timings = timings
        self.last_use = 0
        self.launches: list[PreparedLaunch | None] = []
        """One for each stage; None where there is nothing to launch."""
        self.checks: list[Callable[[], None]] = []
        """Of the persistent kernels among the launches: each raises how it ended."""
        self.single: PreparedLaunch | None = None
        """The launch, where there is just one."""
        self.stage_of = tuple(
            next(k for k, stage in enumerate(built.plan.stages) if s in stage.submissions)
            for s in range(len(submissions))
        )
        self.memory: tuple[weakref.ref[Storage] | None, ...] = ()
        """The list's array arguments; None for a foreign array."""
        self.bound_memory: tuple[int, ...] = ()
        """Which of the list's array arguments the launches use, one for each storage."""
        self.bound_values: list[ScalarValue] = []
        """The scalar arguments' values in the launches."""
        self.setters: list[list[tuple[PreparedLaunch, str]]] = []
        """For each scalar argument, the launches and their parameters that have its value."""
        self.scheduling: set[int] = set()
        """The scalar arguments that a persistent kernel's schedule was made for."""
        self.storages: list[weakref.ref[Storage]] = []
        """Those of ``bound_memory``."""
        self.tokens: frozenset[int] = frozenset()
        """The storages that the list names."""
        self.plan_depends_on_scalars = built.plan.validity.depends_on_scalars
        self.profiled = False
        """Whether its kernels record times."""

    def address_of(self, backend: Backend, argument: ArrayArgument, held: object) -> int:
        """Where an array argument's memory is; ``held`` keeps it."""
        address = argument.address
        if isinstance(held, Storage):
            address = held.make_reachable(backend) + argument.offset
        assert address is not None
        return address

    def extra_bindings(self, stage: int, shape: LaunchShape) -> Sequence[Binding]:
        """The values of a kernel's last parameters, which have no source in the submissions."""
        return ()

    def extra_tiles(self, stage: int, schedule: Schedule) -> Sequence[Binding]:
        """As ``extra_bindings``, of a persistent kernel."""
        return ()

    def used(self, memory: Sequence[object]) -> list[Storage]:
        """The storages that the launches use, of ``memory``, the list's."""
        return [memory[i] for i in self.bound_memory]  # type: ignore[misc]  # none is foreign

    def used_again(self) -> list[Storage]:
        """The storages that the launches use, if all are still there; else FusionStateError."""
        storages = [reference() for reference in self.storages]
        if None in storages:
            raise FusionStateError(
                f"{user_span()}: a Buffer of the list was deleted, so it cannot be replayed; keep "
                "the Buffers, or submit the list again"
            )
        return storages  # type: ignore[return-value]  # None was excluded

    def rebind(
        self, values: Sequence[ScalarValue], submissions: Callable[[], tuple[Submission, ...]]
    ) -> bool:
        """Give the launches other scalar values.  False, and nothing done, where the plan does
        not hold for them."""
        bound = self.bound_values
        # Identity, since equality mixes up 0.0 and -0.0, and 1 and True.
        changed = [k for k, value in enumerate(values) if value is not bound[k]]
        if not changed:
            return True
        if self.scheduling and not self.scheduling.isdisjoint(changed):
            return False
        if self.plan_depends_on_scalars and not self.built.plan.validity.holds(submissions()):
            return False
        for k in changed:
            for launch, name in self.setters[k]:
                launch.set_scalar(name, values[k])
            bound[k] = values[k]
        return True

    def launch(
        self, depends: Sequence[DeviceEvent]
    ) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
        """Enqueue all stages; the events, one for each stage, and the last of them."""
        if self.single is not None:
            event = self.single.launch(depends)
            return (event,), event
        events: list[DeviceEvent | None] = []
        last = None
        for launch in self.launches:
            if launch is None:
                events.append(None)
            else:
                last = launch.launch(depends)
                events.append(last)
                depends = ()
        for event in depends:  # nothing was launched that could wait for them
            event.wait()
        if last is not None and self.checks:
            from fusionq.megakernel.launch import PersistentEvent

            last = PersistentEvent(last, self._check)
        return events, last

    def _check(self) -> None:
        """Raise MegakernelStalled if one of the persistent kernels gave up waiting."""
        for check in self.checks:
            check()


def empty_run() -> PreparedRun:
    """What a fusion without submissions becomes."""
    from fusionq.planning.validity import Validity

    plan = Plan("unfused", (), (), (), "nothing was submitted", Validity((), (), (), "True"), {})
    return PreparedRun(BuiltPlan(plan, ()), (), "memory", {})


def report_of(run: PreparedRun, cache: CacheOutcome, timings: Mapping[str, float]) -> Report:
    """The report of one time that ``run`` was launched."""
    from fusionq.report.report import Report

    plan = run.built.plan.named_for(run.submissions)
    sources = tuple(program.source for program in run.built.programs)
    schedules: list[Schedule | None] = []
    if run.checks:
        from fusionq.megakernel.launch import PersistentLaunch

        schedules = [k.plan if isinstance(k, PersistentLaunch) else None for k in run.launches]
    return Report.from_run(plan, run.submissions, sources, cache, dict(timings), schedules)


def report_of_unfused(ended: SubmissionList) -> Report:
    """The report of a list whose submissions ran one by one; the analysis is made now."""
    from fusionq.planning import planner
    from fusionq.report.report import Report

    assert ended.queue is not None
    submissions = ended.submissions()
    plan = planner.make_plan(submissions, FusionOptions(*UNFUSED), ended.queue.device)
    plan = replace(plan, fallback=ended.fallback, timings={})
    plain = [entry.plain for entry in ended.entries if entry.plain is not None]
    sources = tuple(program.source for run in plain for program in run.built.programs)
    return Report.from_run(plan, submissions, sources, "memory", {})


def prepare(backend: Backend, pending: SubmissionList, values: OptionValues) -> PreparedRun:
    """Plan, build and prepare a list, as far as the caches do not have it.

    Raises FusionRefused, PromotionConflict and ArgumentError from planning, DeviceError where a
    kernel cannot be built or memory not be had or reached.
    """
    options = FusionOptions(*values)
    submissions = pending.submissions()
    timings = dict(pending.admission)
    if options.tune:
        from fusionq.execution.autotune import tuned_plan

        built, cache = tuned_plan(backend, pending, options, timings)
    else:
        built, cache = built_plan(backend, submissions, options, timings)
    started = time.perf_counter()
    run = PreparedRun(built, submissions, cache, timings)
    bind(backend, run, pending)
    timings["prepare"] = time.perf_counter() - started
    if cache != "memory" and debug_level() >= 1:
        _show(report_of(run, cache, timings))
    return run


def _show(report: Report) -> None:
    """What ``FUSIONQ_DEBUG`` asks for of a new plan: the report of a list; device sources."""
    if len(report.submissions) > 1:
        print(report, file=sys.stderr)
    if debug_level() >= 4:
        print(f"--- device source\n{report.device_source}", file=sys.stderr)


# ------------------------------------------------------------------------------ binding
def bind(backend: Backend, run: PreparedRun, pending: SubmissionList) -> None:
    """Allocate what the launches need, and prepare them."""
    from fusionq.planning.launching import launch_shape_of

    submissions = run.submissions
    arrays, scalars = _positions(submissions)
    run.bound_values = list(pending.values)
    run.setters = [[] for _ in pending.values]
    used: dict[object, int] = {}

    def array_binding(argument: ArrayArgument, held: object) -> ArrayBinding:
        address = run.address_of(backend, argument, held)
        itemsize = argument.dtype.nbytes
        return ArrayBinding(
            address, argument.shape, tuple(stride // itemsize for stride in argument.strides)
        )

    def binding(source: ParamSource) -> Binding:
        if isinstance(source, RangeSource):
            return _global_range(submissions[source.submission])[source.dim]
        assert not isinstance(source, QueueSource)
        argument = submissions[source.submission].arguments[source.argument]
        if isinstance(source, ExtentSource):
            assert isinstance(argument, ArrayArgument)
            return argument.shape[source.dim]
        if isinstance(argument, ScalarArgument):
            return argument.value
        assert isinstance(argument, ArrayArgument)
        position = arrays[source.submission, source.argument]
        held = pending.memory[position]
        if isinstance(held, Storage):
            used.setdefault(held.token, position)
        return array_binding(argument, held)

    plan = run.built.plan
    for k, (stage, program) in enumerate(zip(plan.stages, run.built.programs, strict=True)):
        launch: PreparedLaunch
        scheduling: frozenset[str] = frozenset()
        if stage.inner:
            launch = _persistent(backend, program, stage, binding, partial(run.extra_tiles, k))
            scheduling = launch.scheduling
            run.checks.append(launch.check)
        else:
            shape = launch_shape_of(stage, submissions, backend.info)
            if shape is None:
                run.launches.append(None)
                continue
            bindings = [*map(binding, stage.sources), *run.extra_bindings(k, shape)]
            launch = backend.prepare(program, bindings, shape)
        run.launches.append(launch)
        for position, name in _scalar_params(stage, scalars):
            run.setters[position].append((launch, name))
            if name in scheduling:
                run.scheduling.add(position)
    run.single = run.launches[0] if len(run.launches) == 1 else None
    run.bound_memory = tuple(used.values())
    run.storages = [weakref.ref(s) for s in run.used(pending.memory)]
    run.memory = tuple(weakref.ref(m) if isinstance(m, Storage) else None for m in pending.memory)
    run.tokens = frozenset(m.token for m in pending.memory if isinstance(m, Storage))


def _persistent(
    backend: Backend,
    program: Program,
    stage: StagePlan,
    binding: Callable[[ParamSource], Binding],
    extra: Callable[[Schedule], Sequence[Binding]],
) -> PersistentLaunch:
    from fusionq.megakernel.launch import PersistentLaunch

    bindings = [0 if isinstance(s, QueueSource) else binding(s) for s in stage.sources]
    return PersistentLaunch(
        backend, program, stage.kernel, stage.sources, bindings, extra=extra
    )


def _scalar_params(stage: StagePlan, scalars: dict[tuple[int, int], int]) -> list[tuple[int, str]]:
    """Each parameter of the stage's kernel that has a scalar argument's value: the argument's
    place among the list's scalars, the parameter's name."""
    return [
        (scalars[source.submission, source.argument], param.name)
        for param, source in zip(stage.kernel.params, stage.sources, strict=False)
        if isinstance(source, ArgumentSource) and (source.submission, source.argument) in scalars
    ]


def _positions(
    submissions: Sequence[Submission],
) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], int]]:
    """Where (submission, argument) lies among the list's array arguments and its scalars."""
    arrays: dict[tuple[int, int], int] = {}
    scalars: dict[tuple[int, int], int] = {}
    for s, submission in enumerate(submissions):
        for a, argument in enumerate(submission.arguments):
            if not isinstance(argument, LocalArgument):
                places = arrays if isinstance(argument, ArrayArgument) else scalars
                places[s, a] = len(places)
    return arrays, scalars


def _global_range(submission: Submission) -> tuple[int, ...]:
    space = submission.range
    return space if isinstance(space, tuple) else space.global_range
