"""A list that is launched again as it was the last time, at the cost of that launch.

Of all that a replay has to look at, nothing has changed in most of them: this asks for that alone,
and leaves the others to ``QueueState.replay``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusionq.memory.fusing_queues import LOCK, NOTED, QUEUES
from fusionq.memory.storage import Storage
from fusionq.runtime.event import Event, new_event
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import CallArguments, PreparedRun

if TYPE_CHECKING:
    from fusionq.runtime.state import QueueState


class SteadyReplay:
    """Replays of ``ended`` by ``run``, which is one launch, with the scalars that it has now."""

    __slots__ = ("_ended", "_launch", "_launcher", "_rebinds", "_run", "_state", "_storages")

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

    def event(self) -> Event | None:
        """The event of one more replay; None, and nothing is launched, where something is no
        longer as it was."""
        state, launcher, run = self._state, self._launcher, self._run
        with LOCK:
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
        event = new_event(Event)
        event._device_event, event._list, event._waits_for = last, None, ()
        return event
