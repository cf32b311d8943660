"""Times of runs, seen by those who wait: events and a clock that the tests move."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fusionq.base.errors import MegakernelStalled
from fusionq.execution import run_times
from fusionq.execution.run_times import TimedEvent, timed_launch


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Event:
    """Ends at a time."""

    native = None

    def __init__(self, clock: Clock, ends: float, error: Exception | None = None) -> None:
        self.clock, self.ends, self.error = clock, ends, error

    @property
    def complete(self) -> bool:
        return self.clock.now >= self.ends

    def wait(self) -> None:
        self.clock.now = max(self.clock.now, self.ends)
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    def times(self) -> None:
        return None


class Run:
    """Takes ``host`` to launch and ``device`` from then on."""

    def __init__(self, clock: Clock, host: float, device: float, error: Exception | None = None):
        self.clock, self.host, self.device, self.error = clock, host, device, error

    def launch(self, depends: object) -> tuple[list[Event], Event]:
        self.clock.now += self.host
        event = Event(self.clock, self.clock.now + self.device, self.error)
        return [event], event


class Told:
    def __init__(self) -> None:
        self.heard: list[object] = []

    def took(self, seconds: float) -> None:
        self.heard.append(round(seconds, 6))

    def unknown(self) -> None:
        self.heard.append(None)

    def stalled(self, reason: str) -> None:
        self.heard.append(reason)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    monkeypatch.setattr(run_times, "clock", clock)
    yield clock


def launched(run: Run, before: object = None, depends: object = ()) -> tuple[TimedEvent, Told]:
    told = Told()
    events, last = timed_launch(run.launch, depends, before, told)  # type: ignore[arg-type]
    assert isinstance(last, TimedEvent) and events[-1] is last
    return last, told


def test_who_waits_sees_the_end(clock: Clock) -> None:
    event, told = launched(Run(clock, 1, 3))
    assert not told.heard and not event.complete
    event.wait()
    assert told.heard == [4]
    event.wait()
    assert told.heard == [4], "once"


def test_what_has_ended_when_it_is_launched_took_so_long(clock: Clock) -> None:
    _, told = launched(Run(clock, 2, 0))
    assert told.heard == [2]


def test_who_waits_late_does_not_know(clock: Clock) -> None:
    event, told = launched(Run(clock, 1, 3))
    clock.now += 50
    event.wait()
    assert told.heard == [None]


def test_who_waits_a_little_late_knows_well_enough(clock: Clock) -> None:
    event, told = launched(Run(clock, 1, 0.05))
    clock.now += 0.1
    event.wait()
    assert told.heard == [1.1]


def test_the_next_run_that_comes_along_sees_the_end(clock: Clock) -> None:
    event, told = launched(Run(clock, 1, 9))
    for _ in range(19):
        clock.now += 0.5
        if event.look():
            break
    assert told.heard == [pytest.approx(10, 0.1)]


def test_behind_others_it_begins_when_they_have_ended(clock: Clock) -> None:
    first, heard = launched(Run(clock, 1, 9))
    second, told = launched(Run(clock, 1, 0), before=first)
    assert not told.heard or told.heard == [None]
    first.wait()
    second.wait()
    assert heard.heard == [10] and told.heard == [None], "that is when its launch had been made"


def test_behind_what_nobody_watches_it_is_not_known(clock: Clock) -> None:
    event, told = launched(Run(clock, 1, 9), before=Event(clock, 200))
    event.wait()
    assert told.heard == [None]


def test_behind_another_queue_it_is_not_known(clock: Clock) -> None:
    event, told = launched(Run(clock, 1, 9), depends=[Event(clock, 0)])
    event.wait()
    assert told.heard == [None]


def test_a_stall_is_told_and_raised_once_where_somebody_waits(clock: Clock) -> None:
    event, told = launched(Run(clock, 1, 3, MegakernelStalled("it gave up\nmore")))
    event.see_end()
    assert told.heard == ["it gave up"]
    with pytest.raises(MegakernelStalled):
        event.wait()
    event.wait()


def test_nothing_launched_has_no_time(clock: Clock) -> None:
    class Nothing:
        def launch(self, depends: object) -> tuple[list[None], None]:
            return [None], None

    told = Told()
    assert timed_launch(Nothing().launch, (), None, told) == ([None], None)  # type: ignore[arg-type]
    assert told.heard == [None]
