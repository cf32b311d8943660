"""A list that is launched again as it was the last time, at the cost of that launch.

Of all that a replay has to look at, nothing has changed in most of them: this asks for that alone,
and leaves the others to ``QueueState.replay``.  Where launches can be told to run again as they
are, as CUDA graphs can, two comparisons ask for all of it: the latest change
(``base.changes``), and whether the queue's latest launch was one of these.  That path is one
function without another call of Python's, ``Replayable.replay`` itself, since each takes as long as
half of the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fusionq.analysis.submission import ScalarValue
from fusionq.backends.base import (
    CountedLaunches,
    DeviceEvent,
    LaunchedAgain,
    NumberedEvent,
    RepeatableLaunch,
)
from fusionq.base.changes import CHANGES
from fusionq.base.not_copied import NotCopied
from fusionq.memory.fusing_queues import LOCK, NOTED, QUEUES, acquire, is_owned, release
from fusionq.memory.storage import Storage
from fusionq.runtime.event import Event, NewEvent
from fusionq.submission.call_arguments import CallArguments
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun, RunChooser

if TYPE_CHECKING:
    from fusionq.runtime.launcher import Launcher
    from fusionq.runtime.state import QueueState


class Replayable(NotCopied):
    """What has launches that are repeated: a list, or a graph's."""

    __slots__ = ("_steady",)

    if TYPE_CHECKING:
        _steady: SteadyReplay | None
        """Launches them again where nothing has changed."""

    def replay(self, **changed: ScalarValue) -> Event:
        """Run the same launches again, with the same memory; the cheapest way to repeat a list.
        While the queue is in fusion mode, as in another ``with fusion(queue)`` block, the
        submissions join that list, and the options are that one's.

        ``changed``: other values for scalar arguments, in this run only, named as in the
        ``submit`` calls or by the kernels' parameters.

        The fusion keeps the memory that this needs, also of Buffers that were deleted.

        FusionStateError inside the block and on a closed queue; ArgumentError for a name or value
        that does not fit.
        """
        steady = self._steady
        if steady is None or changed:
            return self._replayed(changed)
        as_seen = steady._as_seen
        number = step = 0
        if as_seen is not None:
            seen, chooser, launcher, latest, stream, enqueue, events = as_seen
            try:  # as `with LOCK`
                acquire()
                step = 1
                if CHANGES.latest is seen and (chooser is None or chooser.untimed):
                    if launcher.last_event is not latest:
                        steady._is_latest()
                    status = enqueue()
                    if status:
                        steady._enqueued_late(status)
                    latest.number = stream.submitted = number = stream.submitted + 1
                    if chooser is not None:
                        chooser.untimed -= 1
                step = 2
                release()
            except BaseException as error:
                # Ctrl-C may come as soon as the lock is taken, or behind its release.
                if step == 1 or (step == 0 and is_owned()):
                    try:
                        launcher.failed(error)
                    finally:
                        release()
                raise
            if number:
                event = NewEvent()
                event._list = events
                event._index = number
                return event
        return steady._looked_into() or self._replayed(changed)

    def _replayed(self, changed: Mapping[str, ScalarValue]) -> Event:
        """The same, by all that there is to know of it."""
        raise NotImplementedError


class SteadyReplay:
    """Replays of ``ended`` by ``run``, which is one launch, with the scalars that it has now."""

    __slots__ = (
        "_again", "_as_seen", "_ended", "_events", "_launch", "_launcher", "_prepare_again",
        "_rebinds", "_run", "_state", "_storages",
    )  # fmt: skip

    def __init__(
        self,
        state: QueueState,
        ended: SubmissionList,
        run: PreparedRun,
        storages: tuple[Storage, ...],
    ) -> None:
        one = run.one or run.single
        assert one is not None
        self._state = state
        self._launcher = state.launcher
        self._ended = ended
        self._run = run
        self._rebinds = run.rebinds
        self._launch = one.launch
        self._storages = storages
        self._prepare_again: Callable[[], LaunchedAgain | None] | None
        self._prepare_again = one.again if isinstance(one, RepeatableLaunch) else None
        self._again: LaunchedAgain | None = None
        """Launches as long as nothing changes."""
        self._as_seen: _AsSeen | None = None
        """All that such a launch takes, of which an attribute each would cost more."""
        self._events = EventsOfReplays()

    @classmethod
    def of(
        cls, state: QueueState, ended: SubmissionList, call: CallArguments
    ) -> SteadyReplay | None:
        """That of a list that has just been replayed; None where its next replay has more to ask
        for: foreign memory, or another way to run."""
        with LOCK:
            run = ended.run
            if run is None or call.foreign or (run.single is None and run.one is None):
                return None
            if run.as_one is not None or run.is_trial or run.profiled:
                return None
            return cls(state, ended, run, tuple(run.used(call.memory)))

    def _enqueued_late(self, status: int) -> None:
        """The launch, which has only given ``status`` so far."""
        assert self._again is not None, "who launches again"
        self._again.enqueue_after(status)

    def _is_latest(self) -> None:
        """All that waits for the queue, or for the memory, waits for these launches."""
        again = self._again
        assert again is not None, "who launches again"
        again.include_others()
        self._launcher.last_event = latest = again.latest
        for storage in self._storages:
            storage.last_event = latest

    def _looked_into(self) -> Event | None:
        """The event of one more replay, by all that may have changed; None, and nothing is
        launched, where something is no longer as it was."""
        with LOCK:
            state, launcher, run = self._state, self._launcher, self._run
            seen = CHANGES.latest
            if (
                NOTED
                or QUEUES
                or state.closed
                or state.list is not None
                or self._ended.run is not run
                or run.moves != Storage.moves
                or run.rebinds != self._rebinds
                or run.is_trial
                or launcher.profiler is not None
                or launcher.after
            ):
                return None
            backend = launcher.backend
            for storage in self._storages:
                if storage.last_backend is not backend:
                    return None
            chooser = run.adaptive
            if chooser is not None:
                if not chooser.untimed:
                    return None
                chooser.untimed -= 1
            try:
                last = self._launch()
            except BaseException as error:
                launcher.failed(error)
                raise
            launcher.last_event = last
            for storage in self._storages:
                storage.last_event = last
            if self._prepare_again is not None:
                again = self._again or self._prepare_again()
                if again is not None:
                    self._again = self._events.launches = again
                    self._as_seen = (
                        seen, chooser, launcher, again.latest, again.stream, again.enqueue,
                        self._events,
                    )  # fmt: skip
        event = NewEvent()
        event._device_event, event._list, event._waits_for = last, None, ()
        return event


_AsSeen = tuple[
    object, RunChooser | None, "Launcher", NumberedEvent, CountedLaunches, Callable[[], int],
    "EventsOfReplays",
]  # fmt: skip
"""The latest change when all was as it is for launches again, who has some of them timed, who gives
the queue's latest event, that of these launches, what counts them, and what enqueues one."""


class EventsOfReplays:
    """Stands in events for the list of each replay, whose number is the event's index."""

    __slots__ = ("launches",)

    launches: LaunchedAgain

    ended = True
    waits_for: tuple[DeviceEvent, ...] = ()

    def event_of(self, index: int) -> DeviceEvent | None:
        """The device's event of a replay."""
        return self.launches.event_of(index)

    def error_of(self, index: int) -> None:
        """What kept it from running: nothing."""
        return None

    def abort(self, cause: str) -> None:
        """It does not wait for anything."""
