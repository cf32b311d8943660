"""What the record of a list is told of its runs' times."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from fusionq.backends.base import DeviceEvent, Stopwatch
from fusionq.execution.contender import Candidate
from fusionq.execution.run_times import (
    Launch,
    TimedEvent,
    WatchedRun,
    WatchedSample,
    timed_launch,
)

MOST_BROKEN = 3
"""Samples of several runs in a row between whose runs other work came, after which each run is one:
once that may be where a loop ends, or begins anew."""


class Reports(Protocol):
    """The part of a list's record that is told; see ``list_record.ListRecord``."""

    reported: deque[tuple[Candidate, float | str | None, int]]
    events: list[TimedEvent | WatchedRun | WatchedSample]
    is_unseen: bool
    is_among_others: bool
    broken: int
    latest: DeviceEvent | None


class RunTimer:
    """Tells the record what runs of candidate ``name`` took; ``runs``: so many together, which are
    a sample of its trials."""

    __slots__ = ("_name", "_record", "_runs")

    def __init__(self, record: Reports, name: Candidate, runs: int = 0) -> None:
        self._record, self._name, self._runs = record, name, runs

    def launch(
        self,
        launch: Launch,
        depends: Sequence[DeviceEvent],
        before: DeviceEvent | None,
        prepared: float = 0.0,
    ) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
        """As ``launch``, of a run that is part of no sample; ``before`` is the event of what the
        queue launched before, ``prepared`` as of ``timed_launch``.  If that is the list's last run,
        and has not ended, nobody waited for it."""
        record = self._record
        if before is not None and before is record.latest and not (depends or before.complete):
            record.is_unseen = True
        events, last = timed_launch(launch, depends, before, self, prepared)
        record.latest = last
        if isinstance(last, TimedEvent):
            self._record.events.append(last)
        return events, last

    def watched(
        self,
        launch: Launch,
        watch: Stopwatch,
        before: DeviceEvent | None = None,
        prepared: float = 0.0,
    ) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
        """As ``launch``, which waits for nobody else, timed by the device."""
        run = WatchedRun(watch, self, before, prepared)
        watch.start()
        events, last = launch(())
        watch.stop()
        self._record.events.append(run)
        return events, last

    def took(self, seconds: float) -> None:
        """See ``run_times.Told``."""
        self._record.reported.append((self._name, seconds / max(self._runs, 1), self._runs))

    def unknown(self, has_begun: bool = False) -> None:
        """See ``run_times.Told``.  Nobody waited for a run that was seen to begin and not to end:
        then nobody waits for samples either."""
        if has_begun and not self._runs:
            self._record.is_unseen = True
        self._record.reported.append((self._name, None, self._runs))

    def stalled(self, reason: str) -> None:
        """See ``run_times.Told``."""
        self._record.reported.append((self._name, reason, self._runs))

    def others_between(self) -> None:
        """See ``run_times.SampleTold``."""
        record = self._record
        record.is_unseen = True
        record.broken += 1
        record.is_among_others = record.is_among_others or record.broken >= MOST_BROKEN
