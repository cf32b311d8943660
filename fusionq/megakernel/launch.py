"""A persistent kernel's launches on one queue: its schedule, control memory and epochs."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

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
from fusionq.backends.interruptible import keep_until_run
from fusionq.backends.wrapped_event import WrappedEvent
from fusionq.base.errors import MegakernelStalled
from fusionq.base.identity_cache import cached_by_identity
from fusionq.base.target import LaunchShape, Target
from fusionq.codegen import queue_layout as q
from fusionq.ir.nodes import ArrayParam, Kernel, Param, Persistent, ScalarParam, StageCode
from fusionq.ir.walk import subexpressions
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


clock: Callable[[], float] = time.monotonic

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
    params = [
        {
            inner: int(bindings[name])  # type: ignore[arg-type]  # a scalar's value
            for inner, name in of_stage
            if name in bindings
        }
        for of_stage in _parameters(body).integers
    ]
    memory = bound_bytes(kernel, bindings)
    wanted = params, memory, target, tiling, choose
    for known in tuple(_latest):
        if known.body is body and known[1:-1] == wanted:
            return known.schedule
    workers = choose(kernel, bindings, target)
    if workers != target.resident_workers:
        target = replace(target, resident_workers=workers)
    schedule = make_schedule(body, params, memory, target, tiling)
    if len(schedule.stage) <= LARGEST:
        _latest.append(_KnownSchedule(body, *wanted, schedule))
    return schedule


class _Parameters(NamedTuple):
    """What there is to know of a persistent kernel's parameters."""

    integers: list[list[tuple[str, str]]]
    """For each stage the integers, by their names in its code and in the kernel."""
    scheduling: frozenset[str]
    """Those that a schedule is made for."""


@cached_by_identity
def _parameters(body: Persistent) -> _Parameters:
    closed_forms = [_in_closed_forms(code) for code in body.codes]
    integers: list[list[tuple[str, str]]] = []
    scheduling: set[str] = set()
    for stage in body.stages:
        inner = body.codes[stage.code].kernel.params
        own = list(zip(inner, stage.arguments, strict=True))
        integers.append(
            [(p.name, n) for p, n in own if isinstance(p, ScalarParam) and p.type.is_integer]
        )
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

    Each launch has an epoch of its own, so that nothing has to be reset: the host gives it, but
    where the workers count launches themselves.  Those of a single worker all have the first one:
    nothing is counted in them, and that the worker follows its list was decided by the first.
    Launches of one queue do not overlap, and every object has its own control memory.  ``extra``
    gives the values of the kernel's last parameters, which have no source, from the schedule.
    """

    __slots__ = (
        "_alone", "_backend", "_control", "_epoch", "_inner", "_labels", "_last", "_name",
        "_reported", "_schedule", "_stall", "plan", "scheduling",
    )  # fmt: skip

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
        self._name = kernel.name
        self._labels = [stage.label for stage in body.stages]
        self._backend = backend
        self._alone = plan.workers == 1
        self._epoch = int(self._alone)
        self._last: DeviceEvent | None = None
        self._reported = False
        self._schedule = backend.allocate(plan.words.nbytes)
        self._schedule.write(plan.words.view(np.uint8))
        self._control = backend.allocate(plan.control_words * 4)
        self._control.zero()
        idle = target.idle_checks * target.polls_between_checks
        self._stall = _StallRecord(
            self._control, target.control_line, min(idle, target.spin_limit)
        )
        own: dict[str, Binding] = {
            "schedule": _vector(self._schedule, len(plan.words)),
            "control": _vector(self._control, plan.control_words),
            "epoch": self._epoch,
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
        self._stall.is_quick = self._stall.is_quick or name == "spin_limit"
        self._inner.set_scalar(name, value)

    def launch(self, depends: Sequence[DeviceEvent] = ()) -> DeviceEvent:
        """Enqueue; returns at once.  The event's ``wait`` raises MegakernelStalled if a wait inside
        the kernel ran out; so does the next launch if nobody has been told."""
        if self._alone:
            self._last = event = self._inner.launch(depends)
            return event
        self.begin()
        event = self._inner.launch(depends)
        self.launched(event)
        return PersistentEvent(event, self.check)

    @property
    def can_move(self) -> bool:
        """Whether copies may share its control memory: nothing in that counts launches."""
        return self._alone

    def copy(self, places: Mapping[str, int]) -> MovablePersistentLaunch | None:
        """The same launch for arrays elsewhere, on this queue; None where it has to be bound anew.
        See ``Backend.movable``."""
        inner = self._backend.movable(self._inner, places) if self.can_move else None
        return None if inner is None else MovablePersistentLaunch(self, inner)

    @property
    def native(self) -> PreparedLaunch:
        """The backend's launch, which is enqueued between ``begin`` and ``launched``."""
        return self._inner

    def begin(self) -> None:
        """Get ready for the next launch; MegakernelStalled if the one before has stalled and
        nobody has been told."""
        if self._alone:
            return
        if self._epoch == 0xFFFFFFFF or self._stall.is_set(self._last):
            self._renew()
        self._epoch += 1
        self._inner.set_scalar("epoch", self._epoch)

    def launched(self, event: DeviceEvent) -> None:
        """``event`` is that of the launch."""
        self._last = event

    def _renew(self) -> None:
        """New control memory, when no launch uses the old one any longer."""
        self._backend.wait()
        if not self._reported:
            self.check()
        self._epoch = 0
        self._control.zero()
        self._reported = False

    def __del__(self) -> None:
        """The schedule and the control memory outlive the launches that use them; at the end of the
        process all have run, and what asks may be gone."""
        last = getattr(self, "_last", None)
        if last is not None and not sys.is_finalizing() and not last.complete:
            keep_until_run(last, self._schedule, self._control, self._inner)

    def check(self) -> None:
        """Raise MegakernelStalled if a launch that has ended has stalled."""
        if self._alone or not self._stall.may_be_set:
            return
        stall = self._stall.words(self._last)
        if not stall[q.FLAG]:
            return
        self._reported = True
        stage, tile, counter, expected, seen = (
            int(stall[word])
            for word in (
                q.STALL_STAGE, q.STALL_TILE, q.STALL_COUNTER, q.STALL_EXPECTED, q.STALL_SEEN,
            )
        )  # fmt: skip
        producer = next(
            (
                k
                for k, c in reversed(list(enumerate(self.plan.counters)))
                if counter == c.total or 0 <= c.first <= counter
            ),
            stage,
        )
        raise MegakernelStalled(
            f"{self._name}: stage {stage} ({self._labels[stage]}), tile {tile}, gave up waiting "
            f"for stage {producer} ({self._labels[producer]}): barrier counter "
            f"{counter - q.FIRST_COUNTER} was at {seen} of {expected}. The results of this list "
            "are not complete. The queue can be used on; a device that is very busy may need "
            "strategy='sequence'. If it happens again, please report it with the list."
        )


class MovablePersistentLaunch(PersistentLaunch):
    """A copy of the ``launch`` of a persistent kernel, with its schedule and control memory, whose
    arrays need not stay where they were; see ``MovableLaunch``."""

    __slots__ = ("_movable",)

    def __init__(self, launch: PersistentLaunch, inner: MovableLaunch) -> None:
        for name in PersistentLaunch.__slots__:
            setattr(self, name, getattr(launch, name))
        self._inner = self._movable = inner
        self._last = None

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
    """Several launches as one, some of them of persistent kernels; see ``PreparedLaunch``."""

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
        for launch in self._persistent:
            launch.launched(event)
        return PersistentEvent(event, self._check)

    def _check(self) -> None:
        for launch in self._persistent:
            launch.check()


def joined(backend: Backend, launches: Sequence[PreparedLaunch]) -> PreparedLaunch | None:
    """``launches``, prepared by ``backend``, as one; None where that is not cheaper."""
    persistent = [k for k in launches if isinstance(k, PersistentLaunch)]
    one = backend.repeated([k.native if isinstance(k, PersistentLaunch) else k for k in launches])
    return JoinedLaunches(one, persistent) if one is not None and persistent else one


LEAST_POLL = 1e-8
"""Seconds that a poll of a counter takes at least."""


class _StallRecord:
    """What the control memory says of a wait that ran out.

    Where the host does not see that memory, to ask takes as long as many a launch, and no wait runs
    out before it has polled ``fewest`` times: nobody asks again within that time, but where the
    limit is another one (``is_quick``).
    """

    __slots__ = ("_asked", "_checked", "_control", "_least", "_line", "_shared", "is_quick")

    def __init__(self, control: Allocation, line: int, fewest: int) -> None:
        self._control, self._line = control, line
        view = control.host_view()
        words = None if view is None else view.view(np.uint32)
        self._shared = None if words is None else words[q.STALL * line :][:line]
        self._checked: DeviceEvent | None = None
        """The last of the launches that are known not to have stalled."""
        self._least = fewest * LEAST_POLL
        self._asked = clock()
        """When all launches until then are known not to have stalled."""
        self.is_quick = False

    @property
    def may_be_set(self) -> bool:
        """Whether a launch may have stalled since it is known that none has."""
        return self._shared is not None or self.is_quick or clock() - self._asked >= self._least

    def is_set(self, last: DeviceEvent | None) -> bool:
        """Whether a launch up to ``last`` is known to have stalled.  Where the host does not see
        the memory, one that still runs is not asked: its event tells."""
        if self._shared is not None:
            return bool(self._shared[q.FLAG])
        if last is None or last is self._checked or not self.may_be_set or not last.complete:
            return False
        return bool(self.words(last)[q.FLAG])

    def words(self, last: DeviceEvent | None) -> npt.NDArray[np.uint32]:
        """The record, as launches up to ``last`` leave it if they have run."""
        if self._shared is not None:
            return self._shared
        have_run = last is not None and last.complete
        asked = clock()
        nbytes = 4 * self._line
        words = self._control.fetched(nbytes * q.STALL, nbytes).view(np.uint32)
        if have_run and not words[q.FLAG]:
            self._checked, self._asked = last, asked
        return words


class PersistentEvent(WrappedEvent):
    """The event of a persistent kernel's launch, or of one behind it; see ``DeviceEvent``."""

    __slots__ = ("_check",)

    def __init__(self, inner: DeviceEvent, check: Callable[[], None]) -> None:
        super().__init__(inner)
        self._check: Callable[[], None] | None = check

    def wait(self) -> None:
        """Block until the launch has run; MegakernelStalled, once, if a wait inside it ran out."""
        self._inner.wait()
        check, self._check = self._check, None
        if check is not None:
            check()


def _vector(allocation: Allocation, length: int) -> ArrayBinding:
    return ArrayBinding(allocation.address, (length,), (1,))
