"""A prepared run: the launches of one list of submissions, ready to be repeated."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

from fusionq.analysis.submission import ArrayPlace, ScalarValue, Sized, Submission
from fusionq.backends.base import (
    Backend,
    Binding,
    DeviceEvent,
    MovableLaunch,
    PreparedLaunch,
)
from fusionq.base.changes import CHANGES
from fusionq.base.identity_cache import cached_by_identity
from fusionq.base.target import LaunchShape
from fusionq.cache.plan_cache import BuiltPlan
from fusionq.memory.storage import Storage
from fusionq.submission.moved_launches import changed_places, is_same, move_launches
from fusionq.submission.packed_values import PackedValues

if TYPE_CHECKING:
    from fusionq.megakernel.schedule import Schedule
    from fusionq.planning.plan import Plan
    from fusionq.report.model import CacheOutcome


def selection(positions: Sequence[int], length: int) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """The function that gives the elements at ``positions`` of a sequence of ``length``."""
    if tuple(positions) == tuple(range(length)):
        return lambda sequence: sequence
    if len(positions) > 1:
        return itemgetter(*positions)
    return lambda sequence: [sequence[k] for k in positions]


@cached_by_identity
def _stages_of(plan: Plan) -> tuple[tuple[int, ...], bool]:
    """The stage of each submission, and whether each of several is a stage by itself."""
    stage_of = {s: k for k, stage in enumerate(plan.stages) for s in stage.submissions}
    stages = tuple([stage_of[s] for s in range(len(stage_of))])
    return stages, (
        not plan.validity.depends_on_scalars
        and len(stages) > 1
        and plan.strategy in ("unfused", "sequence")
        and stages == tuple(range(len(plan.stages)))
        and not any([stage.inner for stage in plan.stages])
        and all([promotion.scope == "global" for promotion in plan.promotions])
    )


class RunChooser(Protocol):
    """Chooses the strategy of a list by the times of its runs."""

    untimed: int
    """Launches of the list until one is timed."""
    reason: str
    """Why the list runs unfused, where it does."""
    is_open: bool
    """Whether it has to be asked which run is next, by lists in other memory or of other sizes,
    too."""

    @property
    def seconds(self) -> float:
        """Of the shortest run of what was chosen; 0 where that is not known."""

    def launch(
        self, run: PreparedRun, depends: Sequence[DeviceEvent], before: DeviceEvent | None
    ) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
        """As ``run.launch``, with its time taken; ``before`` is the event of what the queue
        launched before."""

    def launch_unfused(
        self, launch: Callable[[], DeviceEvent | None], before: DeviceEvent | None
    ) -> DeviceEvent | None:
        """The event of what ``launch`` launches, each submission of the list by itself; with its
        time taken."""

    def text(self, run: PreparedRun) -> str:
        """On what grounds ``run`` was chosen."""


class PreparedRun:
    """Launches for one list of submissions on one queue, ready to be repeated.

    It keeps no memory alive: whoever launches holds the arguments' storages.
    """

    __slots__ = (
        "adaptive",
        "addresses",
        "as_one",
        "bound_values",
        "built",
        "cache",
        "given",
        "is_persistent",
        "is_trial",
        "is_unfused",
        "last_use",
        "launches",
        "movable",
        "moves",
        "one",
        "packed",
        "plan_depends_on_scalars",
        "pointers",
        "prepared_in",
        "profiled",
        "rebinds",
        "scheduling",
        "setters",
        "single",
        "stage_of",
        "storages",
        "submissions_of",
        "timings",
        "used",
    )

    can_be_one = True
    """Whether nothing has to happen between the launches."""

    def __init__(
        self,
        built: BuiltPlan,
        submissions: Callable[[], tuple[Submission, ...]],
        cache: CacheOutcome,
        timings: dict[str, float],
    ) -> None:
        self.built = built
        self.submissions_of = submissions
        """Gives what is launched, as it was when that was prepared."""
        self.cache = cache
        self.timings = timings
        self.last_use = 0
        self.launches: list[PreparedLaunch | None] = []
        """One for each stage; None where there is nothing to launch."""
        self.is_persistent = False
        """Whether there are persistent kernels among the launches."""
        self.single: PreparedLaunch | None = None
        """The launch, where there is just one."""
        self.as_one: Callable[[], PreparedLaunch | None] | None = None
        """Makes one launch of several, for a run that is repeated; None where it has been called,
        or there is nothing to make."""
        self.one: PreparedLaunch | None = None
        """What it made."""
        self.stage_of, is_unfused = _stages_of(built.plan)
        self.is_unfused = self.can_be_one and is_unfused
        """Whether each of several submissions runs by itself, as outside fusion mode."""
        self.used: Callable[[Sequence[object]], Sequence[Storage]] = selection((), 0)
        """The storages that the launches use, once each, of the list's array arguments."""
        self.bound_values: list[ScalarValue] = []
        """The scalar arguments' values in the launches."""
        self.packed: PackedValues | None = None
        """The same as bytes, when they have been compared."""
        self.rebinds = 0
        """How often one of them has got another value."""
        self.setters: list[list[tuple[PreparedLaunch, str]]] = []
        """For each scalar argument, the launches and their parameters that have its value."""
        self.pointers: list[dict[str, int]] = []
        """For each launch, the parameters that are arrays, and which of the list's array arguments
        they are; empty where the launches serve no other memory."""
        self.movable: list[MovableLaunch | None] = []
        """The launches of a run that ``elsewhere`` gave."""
        self.scheduling: set[int] = set()
        """The scalar arguments that a persistent kernel's schedule was made for."""
        self.storages: list[weakref.ref[Storage]] | None = []
        """Those that the launches use; None where nobody has looked."""
        self.addresses: tuple[int | None, ...] = ()
        """Where those were when the launches were prepared."""
        self.moves = 0
        """``Storage.moves`` when they were last seen there."""
        self.plan_depends_on_scalars = built.plan.validity.depends_on_scalars
        self.adaptive: RunChooser | None = None
        """What chose it, if it was not the cost model or the user."""
        self.is_trial = False
        """Whether that has to be asked which run is next."""
        self.profiled = False
        """Whether its kernels record times."""
        self.given: PreparedRun | None = None
        """What ``elsewhere`` gave last, which serves the next list if nobody else has it."""
        self.prepared_in = 0.0
        """Seconds that the host took for it, if that comes again with each list of its kind; 0 when
        it has been launched."""

    @property
    def is_open(self) -> bool:
        """Whether what chose it has to be asked which run is next."""
        return self.is_trial or (self.adaptive is not None and self.adaptive.is_open)

    @property
    def submissions(self) -> tuple[Submission, ...]:
        """What is launched, with the memory and the scalars for which that was prepared."""
        return self.submissions_of()

    def elsewhere(
        self,
        backend: Backend,
        memory: Sequence[object],
        places: Sequence[ArrayPlace],
        addresses: list[int | None],
        submissions: Callable[[], tuple[Submission, ...]],
        timings: dict[str, float],
    ) -> PreparedRun | None:
        """The same launches for a list of the same form, sizes and aliasing, whose array arguments
        are at ``places`` and kept by ``memory``; ``addresses`` as of ``move``.  The scalars are
        still those of this run.  None where launches have to be prepared anew; DeviceError where
        memory cannot be allocated or reached.
        """
        if not self.pointers:
            return None
        movable = backend.movable
        if self.is_persistent:
            from fusionq.megakernel import launch as persistent

            movable = partial(persistent.movable, backend)
        launches: list[MovableLaunch | None] = []
        for launch, pointers in zip(self.launches, self.pointers, strict=True):
            copy = None if launch is None else movable(launch, pointers)
            if copy is None and launch is not None:
                return None
            launches.append(copy)
        other = object.__new__(PreparedRun)
        other.given = None
        other.built, other.stage_of, other.used = self.built, self.stage_of, self.used
        other.is_unfused = self.is_unfused
        other.submissions_of, other.cache, other.timings = submissions, "memory", timings
        other.last_use, other.rebinds, other.profiled, other.prepared_in = 0, 0, False, 0.0
        other.adaptive, other.is_trial = self.adaptive, False
        other.plan_depends_on_scalars = self.plan_depends_on_scalars
        other.pointers, other.scheduling = self.pointers, self.scheduling
        other.is_persistent = self.is_persistent
        other.bound_values, other.packed = self.bound_values.copy(), self.packed
        other.setters = []
        if self.setters:
            same = {id(old): new for old, new in zip(self.launches, launches, strict=True)}
            other.setters = [
                [(new, name) for old, name in of_one if (new := same[id(old)]) is not None]
                for of_one in self.setters
            ]
        other.has_launches(backend, list(launches))
        other.movable = launches
        other.move(backend, memory, places, addresses)
        other.is_in(memory)
        return other

    def serve(
        self,
        like: PreparedRun,
        backend: Backend,
        memory: Sequence[object],
        places: Sequence[ArrayPlace],
        addresses: list[int | None],
        submissions: Callable[[], tuple[Submission, ...]],
        timings: dict[str, float],
    ) -> None:
        """Be what ``elsewhere`` of ``like`` gives, as this has been for a list that nobody has any
        longer.  The scalars are those of that one."""
        self.submissions_of, self.timings, self.adaptive = submissions, timings, like.adaptive
        self.last_use, self.rebinds, self.is_trial, self.prepared_in = 0, 0, False, 0.0
        if len(self.launches) > 1 or self.one is not None:
            self.has_launches(backend, self.launches)
        self.move(backend, memory, places, addresses)
        self.storages, self.moves = None, Storage.moves

    def move(
        self,
        backend: Backend,
        memory: Sequence[object],
        places: Sequence[ArrayPlace],
        addresses: list[int | None],
    ) -> None:
        """Have the launches of a run that ``elsewhere`` gave serve another such list, whose array
        arguments are at ``addresses``; where these are not known, they are added."""
        move_launches(self.movable, self.pointers, backend, memory, places, addresses)

    def has_launches(self, backend: Backend, launches: list[PreparedLaunch | None]) -> None:
        """``launches`` are prepared: those of this run."""
        self.launches = launches
        self.single = launches[0] if len(launches) == 1 else None
        self.as_one = self.one = None
        if len(launches) > 1 and self.can_be_one:
            there = [k for k in launches if k is not None]
            if self.is_persistent:
                from fusionq.megakernel.launch import joined

                self.as_one = partial(joined, backend, there)
            else:
                self.as_one = partial(backend.repeated, there)

    def is_in(self, memory: Sequence[object]) -> None:
        """The launches were prepared for the memory that ``memory`` keeps now."""
        storages = self.used(memory)
        self.storages = [weakref.ref(s) for s in storages]
        self.addresses = tuple([s.address for s in storages])
        self.moves = Storage.moves

    def address_of(self, backend: Backend, place: ArrayPlace, held: object) -> int:
        """Where an array argument's memory is, which was at ``place``; ``held`` keeps it."""
        _, _, _, offset, address = place
        if isinstance(held, Storage):
            address = held.make_reachable(backend) + offset
        assert address is not None
        return address

    def extra_bindings(self, stage: int, shape: LaunchShape) -> Sequence[Binding]:
        """The values of a kernel's last parameters, which have no source in the submissions."""
        return ()

    def extra_tiles(self, stage: int, schedule: Schedule) -> Sequence[Binding]:
        """As ``extra_bindings``, of a persistent kernel."""
        return ()

    def is_in_place(self) -> bool:
        """Whether the storages are where they were when the launches were prepared."""
        if self.moves == Storage.moves:
            return True
        in_place = self.storages is not None and all(
            storage is None or storage.address == address
            for reference, address in zip(self.storages, self.addresses, strict=True)
            for storage in (reference(),)
        )
        if in_place:
            self.moves = Storage.moves
        return in_place

    def rebind(
        self, values: Sequence[ScalarValue], submissions: Callable[[], Sequence[Sized]]
    ) -> bool:
        """Give the launches other scalar values, which ``submissions`` have.  False, and nothing
        done, where the plan does not hold for them."""
        if self.packed is not None and self.packed.are(values):
            return True
        changed = changed_places(values, self.bound_values)
        if not changed:
            if self.packed is None:
                self.packed = PackedValues.of(self.bound_values)
            return True
        if self.scheduling and not self.scheduling.isdisjoint(changed):
            return False
        if self.plan_depends_on_scalars and not self.built.plan.validity.holds(submissions()):
            return False
        for k in changed:
            self._rebind(k, values[k])
        return True

    def rebind_from(self, first: int, values: Sequence[ScalarValue]) -> None:
        """Give the launches the scalar ``values`` from the ``first``-th on, for which the plan
        holds."""
        bound = self.bound_values
        for k, value in enumerate(values, first):
            if value is not bound[k] and not is_same(value, bound[k]):
                self._rebind(k, value)

    def _rebind(self, k: int, value: ScalarValue) -> None:
        for launch, name in self.setters[k]:
            launch.set_scalar(name, value)
        self.bound_values[k] = value
        self.packed = None
        self.rebinds += 1
        CHANGES.latest = object()

    def launch(
        self, depends: Sequence[DeviceEvent]
    ) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
        """Enqueue all stages; the events, one for each stage, and the last of them."""
        if self.one is not None:
            event = self.one.launch(depends)
            return (event,) * len(self.launches), event
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
        if self.is_persistent:
            from fusionq.megakernel.control import last_of

            last = last_of(events)
        return events, last

    def will_be_repeated(self) -> None:
        """Let the launches become one where that is cheaper."""
        if self.as_one is not None:
            make, self.as_one = self.as_one, None
            self.one = make()

    def become_one(self, backend: Backend) -> None:
        """Let the launches, and a single one, be repeated as cheaply as they can be from now on."""
        self.will_be_repeated()
        if self.single is None or self.one is not None or self.is_persistent:
            return
        if self.can_be_one:
            self.one = backend.repeated([self.single])

    @property
    def schedules(self) -> Sequence[Schedule | None]:
        """Of each launch the schedule, where it is a persistent kernel; empty where none is."""
        if not self.is_persistent:
            return ()
        from fusionq.megakernel.launch import PersistentLaunch

        return [k.plan if isinstance(k, PersistentLaunch) else None for k in self.launches]
