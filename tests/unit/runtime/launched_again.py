"""Launches that can be told to run again as they are, as CUDA graphs can, of any device."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fusionq.backends.base import DeviceEvent, PreparedLaunch
from fusionq.submission.run import PreparedRun


class Latest:
    """The event of the latest of some launches."""

    native = None
    event: DeviceEvent
    number = 0

    def wait(self) -> None:
        self.event.wait()

    @property
    def complete(self) -> bool:
        return self.event.complete

    def times(self) -> None:
        return None


class LaunchedAgain:
    """Lets a launch be repeated as CUDA graphs are, and is what counts its launches."""

    def __init__(self, launch: Callable[[], DeviceEvent]) -> None:
        self._launch = launch
        self.latest = Latest()
        self.events: list[DeviceEvent] = [self._launch]  # numbers begin with 1
        self.others = 0
        self.late: list[int] = []
        self.status = 0
        self.submitted = 0
        self.stream = self

    def enqueue(self) -> int:
        if self.status:
            return self.status
        self.latest.event = self._launch()
        self.events.append(self.latest.event)
        return 0

    def enqueue_after(self, status: int) -> None:
        self.late.append(status)
        self.status = 0
        self.enqueue()

    def include_others(self) -> None:
        self.others += 1

    def event_of(self, number: int) -> DeviceEvent:
        return self.events[number]


def repeatable_launches(monkeypatch: pytest.MonkeyPatch) -> list[LaunchedAgain]:
    """Let single launches be such; those that are made."""
    made: list[LaunchedAgain] = []
    has_launches = PreparedRun.has_launches

    class Repeatable:
        def __init__(self, inner: PreparedLaunch) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

        def again(self) -> LaunchedAgain:
            made.append(LaunchedAgain(self._inner.launch))
            return made[-1]

    def with_repeatable(run: PreparedRun, *args) -> None:
        has_launches(run, *args)
        if run.single is not None:
            run.single = Repeatable(run.single)

    monkeypatch.setattr(PreparedRun, "has_launches", with_repeatable)
    return made
