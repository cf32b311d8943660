"""A list that is submitted again as it was the last time, launched at the cost of that launch.

Where launches can be told to run again as they are, as CUDA graphs can, nothing has to be done for
the memory that they use as long as nothing changes: one event stands for the latest of them
(``backends.base.LaunchedAgain``), which is that of the memory already.  Whether something has
changed since the list was launched before is asked of ``base.changes``, where the beginning of the
block is a change itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fusionq.backends.base import DeviceEvent, LaunchedAgain, RepeatableLaunch
from fusionq.base.changes import CHANGES
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun


class Launches(Protocol):
    """The part of a queue's launcher that is asked, and told."""

    last_event: DeviceEvent | None
    after: Sequence[DeviceEvent]

    def failed(self, error: BaseException) -> None:
        """What was launched before ``error`` has run."""


class SteadyBlocks:
    """Lists that become ``run``, one behind the other."""

    __slots__ = ("_again", "_last", "_seen", "run")

    def __init__(self, run: PreparedRun) -> None:
        self.run = run
        self._seen: object = None
        """The latest change when the last of them was launched."""
        self._again: LaunchedAgain | None = None
        """Launches the next, if nothing has changed since."""
        self._last: DeviceEvent | None = None
        """The event of the last of them that was launched so."""

    def launch(
        self, launcher: Launches, pending: SubmissionList
    ) -> Sequence[DeviceEvent | None] | None:
        """Enqueue ``pending``; the events of its stages.  None, and nothing is launched, where
        something is no longer as it was."""
        again, run = self._again, self.run
        if (
            again is None
            or pending.began_after is not self._seen
            or CHANGES.latest is not pending.began
            or pending.depends
            or pending.foreign
            or launcher.after
            or run.profiled
        ):
            return None
        chooser = run.adaptive
        if chooser is not None:
            if not chooser.untimed:
                return None
            chooser.untimed -= 1
        try:
            if launcher.last_event is not self._last:
                again.include_others()
                for storage in run.used(pending.memory):
                    storage.last_event = again.latest
            status = again.enqueue()
            if status:
                again.enqueue_after(status)
            stream = again.stream
            again.latest.number = stream.submitted = number = stream.submitted + 1
            launcher.last_event = self._last = last = again.event_of(number)
        except BaseException as error:
            launcher.failed(error)
            raise
        self._seen = pending.began
        return (last,) * len(run.launches)

    def launched(self, pending: SubmissionList) -> None:
        """``pending`` has been launched in the usual way."""
        began, before = pending.began, self._seen
        self._again = None
        if CHANGES.latest is not began:
            self._seen = None
            return
        self._seen = began
        if pending.began_after is before and not (pending.foreign or self.run.is_persistent):
            one = self.run.one or self.run.single
            assert isinstance(one, RepeatableLaunch), "as when this was made"
            self._again = one.again()


def blocks_of(run: PreparedRun) -> SteadyBlocks | None:
    """Those of ``run``; None where its launches cannot be told to run again as they are."""
    launch: type[object] = type(run.one or run.single)
    found = _repeatable.get(launch)
    if found is None:
        found = _repeatable[launch] = issubclass(launch, RepeatableLaunch)
    return SteadyBlocks(run) if found else None


_repeatable: dict[type[object], bool] = {}
"""By the launches' class."""
