"""Times of runs, seen by those who wait: events and a clock that the tests move."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fusionq.base.errors import MegakernelStalled
from fusionq.execution import run_times
from fusionq.execution.list_record import MOST_UNSEEN, ListRecord, RunTimer
from fusionq.execution.run_times import TimedEvent, timed_launch
from fusionq.execution.trials import Trials


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += 0.001


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
        self.has_begun = False

    def took(self, seconds: float) -> None:
        self.heard.append(round(seconds, 6))

    def unknown(self, has_begun: bool) -> None:
        self.heard.append(None)
        self.has_begun = has_begun

    def stalled(self, reason: str) -> None:
        self.heard.append(reason)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    monkeypatch.setattr(run_times, "clock", clock)
    monkeypatch.setattr(run_times.time, "sleep", clock.sleep)
    yield clock


def launched(
    run: Run, before: object = None, depends: object = (), in_turn: bool = False
) -> tuple[TimedEvent, Told]:
    told = Told()
    events, last = timed_launch(run.launch, depends, before, told, in_turn)  # type: ignore[arg-type]
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


def test_runs_in_turn_are_seen_by_the_next_launch(clock: Clock) -> None:
    """The device has the next one by then, and begins it at once."""
    first, heard = launched(Run(clock, 1, 9), in_turn=True)
    assert not heard.heard and clock.now == 101, "nothing runs that it could wait for"
    second, told = launched(Run(clock, 1, 29), before=first, in_turn=True)
    assert heard.heard == [10] and not told.heard
    third, last = launched(Run(clock, 1, 49), before=second, in_turn=True)
    assert told.heard == [21], "from the end of the first"
    third.wait()
    assert last.heard == [29]


def test_a_run_that_is_launched_behind_an_end_that_nobody_saw_is_not_known(clock: Clock) -> None:
    first, heard = launched(Run(clock, 1, 2))
    second, told = launched(Run(clock, 20, 30), before=first, in_turn=True)
    assert heard.heard == [None] and heard.has_begun, "it ended while the next was launched"
    second.wait()
    assert told.heard == [None] and not told.has_begun


@pytest.mark.parametrize("left, known", [(0.05, True), (0.5, False)])
def test_what_runs_already_is_awaited_for_a_while(clock: Clock, left: float, known: bool) -> None:
    """It may wait for something that the host does later."""
    event, told = launched(Run(clock, 1, 9), before=Event(clock, 101 + left), in_turn=True)
    assert clock.now == pytest.approx(101 + (left if known else run_times.MOST_WAIT), abs=3e-3)
    assert event.has_begun == known
    event.wait()
    assert told.heard == [pytest.approx(9 - left, abs=3e-3) if known else None]


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


def compared() -> ListRecord:
    record = ListRecord(Trials("sequence", ["fused"]), "", (), "", 1, "")
    record.trials.ready("fused")
    return record


def launched_by(record: ListRecord, run: Run, before: object = None) -> TimedEvent:
    name, is_timed = record.trials.next()
    assert is_timed
    event = RunTimer(record, name).launch(run.launch, (), before)[1]  # type: ignore[arg-type]
    assert isinstance(event, TimedEvent)
    return event


def test_where_the_next_run_comes_too_late_a_run_is_waited_for_at_once(clock: Clock) -> None:
    record = compared()
    event = None
    for runs in range(MOST_UNSEEN):
        event = launched_by(record, Run(clock, 1, 3), before=event)
        assert not event.complete
        clock.now += 9
        record.look()
        assert record.unseen == runs + 1
    begun = clock.now
    launched_by(record, Run(clock, 1, 3), before=event)
    assert clock.now == begun + 4
    record.look()
    assert record.trials.tried == 3 and not record.trials.expects


def test_where_the_next_run_comes_in_time_nobody_waits_at_once(clock: Clock) -> None:
    record = compared()
    event = launched_by(record, Run(clock, 1, 9))
    event = launched_by(record, Run(clock, 1, 29), before=event)
    record.look()
    assert not record.unseen and record.trials.contenders["sequence"].seconds == [10.0]
    event = launched_by(record, Run(clock, 1, 49), before=event)
    record.look()
    assert record.trials.contenders["sequence"].seconds == [10.0, 21.0]
    assert not event.complete
