"""A persistent kernel's launches on one queue, and the schedules that they share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np

from fusionq.backends.base import (
    Allocation,
    ArrayBinding,
    Backend,
    Binding,
    DeviceEvent,
    MovableLaunch,
    PreparedLaunch,
    Program,
)
from fusionq.base.identity_cache import cached_by_identity
from fusionq.base.target import LaunchShape, Target
from fusionq.ir.nodes import ArrayParam, Kernel, Param, Persistent, ScalarParam, StageCode
from fusionq.ir.walk import subexpressions
from fusionq.megakernel.control import Check, ControlMemory, PersistentEvent
from fusionq.megakernel.schedule import Schedule, make_schedule
from fusionq.megakernel.tiling import Tiling
from fusionq.passes.sources import ParamSource, QueueSource


class _KnownSchedule(NamedTuple):
    """A schedule, and what it was made for."""

    body: Persistent
    params: Sequence[Mapping[str, int]]
    memory: int
    target: Target
    tiling: Tiling | None
    choose: ChosenWorkers
    schedule: Schedule


LATEST, LARGEST = 8, 1 << 16
"""How many of the latest schedules are kept, and of how many instructions at most: one that was
made before anybody waits for it, and one that several queues launch."""

_latest: deque[_KnownSchedule] = deque(maxlen=LATEST)

ChosenWorkers: TypeAlias = Callable[[Kernel, Mapping[str, Binding], Target], int]
"""How many workers a persistent kernel has that is bound so, of those that a target's device runs
at once."""


def all_workers(kernel: Kernel, bindings: Mapping[str, Binding], target: Target) -> int:
    """As many as run at once."""
    return target.resident_workers


def target_of(backend: Backend, program: Program) -> Target:
    """The backend's target, with the workers that run a persistent ``program`` at once."""
    target, workers = backend.target, backend.workers(program)
    if (workers.resident, workers.lanes) == (target.resident_workers, target.worker_size):
        return target
    return replace(target, resident_workers=workers.resident, worker_size=workers.lanes)


def bound_bytes(kernel: Kernel, bindings: Mapping[str, Binding]) -> int:
    """Of the arrays that the parameters of ``kernel`` are bound to."""
    nbytes = 0
    for param in kernel.params:
        binding = bindings.get(param.name)
        if isinstance(param, ArrayParam) and isinstance(binding, ArrayBinding):
            nbytes += prod(binding.shape) * param.dtype.nbytes
    return nbytes


def schedule_for(
    kernel: Kernel,
    bindings: Mapping[str, Binding],
    target: Target,
    tiling: Tiling | None = None,
    choose: ChosenWorkers = all_workers,
) -> Schedule:
    """The schedule on ``target`` of a persistent kernel whose parameters are bound so; ``tiling``:
    other than it would choose; ``choose``: says for how many of the target's workers.  Of arrays
    only the shapes count."""
    body = kernel.body[0]
    assert isinstance(body, Persistent)
    integers = _parameters(body).integers
    values = {
        names: {
            inner: int(bindings[name])  # type: ignore[arg-type]  # a scalar's value
            for inner, name in names
            if name in bindings
        }
        for names in set(integers)
    }
    params = [values[names] for names in integers]
    memory = bound_bytes(kernel, bindings)
    wanted = params, memory, target, tiling, choose
    for known in tuple(_latest):
        if known.body is body and known[1:-1] == wanted:
            return known.schedule
    workers = choose(kernel, bindings, target)
    if workers != target.resident_workers:
        of_target = _with_fewer(target)
        if workers not in of_target:
            of_target[workers] = replace(target, resident_workers=workers)
        target = of_target[workers]
    schedule = make_schedule(body, params, memory, target, tiling)
    if len(schedule.stage) <= LARGEST:
        _latest.append(_KnownSchedule(body, *wanted, schedule))
    return schedule


@cached_by_identity
def _with_fewer(target: Target) -> dict[int, Target]:
    """The same with other numbers of workers."""
    return {}


class _Parameters(NamedTuple):
    """What there is to know of a persistent kernel's parameters."""

    integers: list[tuple[tuple[str, str], ...]]
    """For each stage the integers, by their names in its code and in the kernel."""
    scheduling: frozenset[str]
    """Those that a schedule is made for."""


@cached_by_identity
def _parameters(body: Persistent) -> _Parameters:
    closed_forms = [_in_closed_forms(code) for code in body.codes]
    integers: list[tuple[tuple[str, str], ...]] = []
    scheduling: set[str] = set()
    for stage in body.stages:
        inner = body.codes[stage.code].kernel.params
        own = list(zip(inner, stage.arguments, strict=True))
        of_stage = [(p.name, n) for p, n in own if isinstance(p, ScalarParam) and p.type.is_integer]
        integers.append(tuple(of_stage))
        scheduling.update(name for p, name in own if p.name in closed_forms[stage.code])
    return _Parameters(integers, frozenset(scheduling))


def _in_closed_forms(code: StageCode) -> set[str]:
    """The parameters of a stage's range and waits."""
    bounds = [b for wait in code.waits for pair in wait.bounds or () for b in pair]
    return {
        e.name
        for expr in (*code.extents, *bounds)
        for e in subexpressions(expr)
        if isinstance(e, Param)
    }


class PersistentLaunch:
    """A persistent kernel with its arguments; see ``PreparedLaunch``.

    Launches of a single worker all have the first epoch: nothing is counted in them, and that the
    worker follows its list was decided by the first.  ``extra`` gives the values of the kernel's
    last parameters, which have no source, from the schedule.
    """

    __slots__ = ("_alone", "_backend", "_control", "_inner", "plan", "scheduling")

    def __init__(
        self,
        backend: Backend,
        program: Program,
        kernel: Kernel,
        sources: Sequence[ParamSource],
        bindings: Sequence[Binding],
        tiling: Tiling | None = None,
        choose: ChosenWorkers = all_workers,
        extra: Callable[[Schedule], Sequence[Binding]] = lambda plan: (),
    ) -> None:
        body = kernel.body[0]
        assert isinstance(body, Persistent)
        target = target_of(backend, program)
        by_name = {p.name: b for p, b in zip(kernel.params, bindings, strict=False)}
        plan = self.plan = schedule_for(kernel, by_name, target, tiling, choose)
        self.scheduling = _parameters(body).scheduling
        """The parameters that the schedule was made for."""
        self._backend = backend
        self._alone = plan.workers == 1
        labels = [stage.label for stage in body.stages]
        self._control = control = ControlMemory(backend, kernel.name, labels, plan, target)
        own: dict[str, Binding] = {
            "schedule": _vector(control.schedule, len(plan.words)),
            "control": _vector(control.memory, plan.control_words),
            "epoch": int(self._alone),
            "spin_limit": target.spin_limit,
        }
        bound = [
            own[source.what] if isinstance(source, QueueSource) else binding
            for source, binding in zip(sources, bindings, strict=True)
        ]
        bound += extra(plan)
        block = backend.workers(program).work_items
        shape = LaunchShape((block * plan.workers,), (block,))
        self._inner: PreparedLaunch = backend.prepare(program, bound, shape)

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> None:
        """See ``PreparedLaunch``."""
        if name == "spin_limit":
            self._control.stalls.is_quick = True
        self._inner.set_scalar(name, value)

    def launch(self, depends: Sequence[DeviceEvent] = ()) -> DeviceEvent:
        """Enqueue; returns at once.  The event's ``wait`` raises MegakernelStalled if a wait inside
        the kernel ran out; so does the next launch if nobody has been told."""
        if self._alone:
            self._control.last = event = self._inner.launch(depends)
            return event
        self.begin()
        event = self._inner.launch(depends)
        return PersistentEvent(event, self.launched(event))

    def copy(self, places: Mapping[str, int]) -> MovablePersistentLaunch | None:
        """The same launch for arrays elsewhere, on this queue, with this one's schedule and control
        memory; None where it has to be bound anew.  See ``Backend.movable``."""
        inner = self._backend.movable(self._inner, places)
        return None if inner is None else MovablePersistentLaunch(self, inner)

    @property
    def native(self) -> PreparedLaunch:
        """The backend's launch, which is enqueued between ``begin`` and ``launched``."""
        return self._inner

    def begin(self) -> None:
        """Get ready for the next launch; MegakernelStalled if one before has stalled and nobody has
        been told."""
        if not self._alone:
            self._inner.set_scalar("epoch", self._control.begin())

    def launched(self, event: DeviceEvent) -> Sequence[Check]:
        """``event`` is that of the launch; what raises how that has ended."""
        if self._alone:
            self._control.last = event
            return ()
        return (self._control.launched(event),)


class MovablePersistentLaunch(PersistentLaunch):
    """A copy of the ``launch`` of a persistent kernel whose arrays need not stay where they were;
    see ``MovableLaunch``."""

    __slots__ = ("_movable",)

    def __init__(self, launch: PersistentLaunch, inner: MovableLaunch) -> None:
        for name in PersistentLaunch.__slots__:
            setattr(self, name, getattr(launch, name))
        self._inner = self._movable = inner

    def move(self, addresses: Sequence[int | None]) -> None:
        """See ``MovableLaunch``."""
        self._movable.move(addresses)


def movable(
    backend: Backend, launch: PreparedLaunch, places: Mapping[str, int]
) -> MovableLaunch | None:
    """As ``backend.movable``, of a launch that may be of a persistent kernel."""
    if isinstance(launch, PersistentLaunch):
        return launch.copy(places)
    return backend.movable(launch, places)


class JoinedLaunches:
    """Several launches as one, some of them of persistent kernels, of which no two share control
    memory; see ``PreparedLaunch``."""

    __slots__ = ("_one", "_persistent")

    def __init__(self, one: PreparedLaunch, persistent: Sequence[PersistentLaunch]) -> None:
        self._one = one
        self._persistent = persistent

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> None:
        """ArgumentError: scalars are set in the launches."""
        self._one.set_scalar(name, value)

    def launch(self, depends: Sequence[DeviceEvent] = ()) -> DeviceEvent:
        """As ``PersistentLaunch.launch``, for each of them."""
        for launch in self._persistent:
            launch.begin()
        event = self._one.launch(depends)
        checks = [check for launch in self._persistent for check in launch.launched(event)]
        return PersistentEvent(event, checks)


def joined(backend: Backend, launches: Sequence[PreparedLaunch]) -> PreparedLaunch | None:
    """``launches``, prepared by ``backend``, as one; None where that is not cheaper."""
    persistent = [k for k in launches if isinstance(k, PersistentLaunch)]
    one = backend.repeated([k.native if isinstance(k, PersistentLaunch) else k for k in launches])
    return JoinedLaunches(one, persistent) if one is not None and persistent else one


def _vector(allocation: Allocation, length: int) -> ArrayBinding:
    return ArrayBinding(allocation.address, (length,), (1,))
