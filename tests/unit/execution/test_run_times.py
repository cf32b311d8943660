"""Times of runs, seen by those who wait: events and a clock that the tests move."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fusionq.base.errors import MegakernelStalled
from fusionq.execution import run_timer, run_times
from fusionq.execution.list_record import ListRecord
from fusionq.execution.run_timer import RunTimer
from fusionq.execution.run_times import Sample, TimedEvent, timed_launch
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
        if event.poll():
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


def test_what_the_host_prepares_counts_where_the_device_has_nothing_to_do(clock: Clock) -> None:
    told = Told()
    timed_launch(Run(clock, 1, 4).launch, (), None, told, 3.0)[1].wait()  # type: ignore[union-attr,arg-type]
    assert told.heard == [8]
    before = timed_launch(Run(clock, 1, 9).launch, (), None, told)[1]  # type: ignore[arg-type]
    event = timed_launch(Run(clock, 1, 20).launch, (), before, told, 3.0)[1]  # type: ignore[arg-type]
    before.wait(), event.wait()  # type: ignore[union-attr]
    assert told.heard[-1] != 24


# ------------------------------------------------------------------------------ samples
class SampleTold(Told):
    def others_between(self) -> None:
        self.heard.append("others")


def sampled(runs: int, is_awaited: bool = True) -> tuple[Sample, SampleTold]:
    told = SampleTold()
    return Sample(runs, told, is_awaited), told


def next_of(sample: Sample, run: Run, before: object = None, depends: object = ()) -> TimedEvent:
    last = sample.launch(run.launch, depends, before)[1]  # type: ignore[arg-type]
    assert last is not None
    return last  # type: ignore[return-value]


def test_runs_behind_each_other_are_one_time(clock: Clock) -> None:
    """From when all before has ended; the launch of the last waits for its end."""
    sample, told = sampled(3)
    event = next_of(sample, Run(clock, 1, 9), before=Event(clock, 100.02))
    assert clock.now == pytest.approx(101.02, abs=3e-3) and not told.heard
    event = next_of(sample, Run(clock, 1, 19), before=event)
    event = next_of(sample, Run(clock, 1, 29), before=event)
    assert event.complete and told.heard == [pytest.approx(32, abs=3e-3)]
    assert sample.close() and len(told.heard) == 1


def test_what_somebody_waits_for_ends_there_and_what_he_does_then_does_not_count(
    clock: Clock,
) -> None:
    sample, told = sampled(2)
    event = next_of(sample, Run(clock, 1, 9))
    event.wait()
    clock.now += 1000
    next_of(sample, Run(clock, 1, 4), before=event)
    assert told.heard == [15]


def test_what_each_run_of_a_sample_is_prepared_in_counts(clock: Clock) -> None:
    """But not where one before still runs meanwhile."""
    sample, told = sampled(3)
    event = None
    for waits in (True, False, True):
        run = Run(clock, 1, 9)
        event = sample.launch(run.launch, (), event, 0.5)[1]  # type: ignore[arg-type]
        if waits:
            event.wait()  # type: ignore[union-attr]
            clock.now += 100
    assert told.heard == [10.5 + 11.5]
    sample, told = sampled(1)
    sample.launch(Run(clock, 1, 9).launch, (), Event(clock, clock.now + 0.02), 0.5)  # type: ignore[arg-type]
    assert told.heard == [pytest.approx(10, abs=3e-3)]


def test_the_program_s_own_wait_shows_the_end(clock: Clock) -> None:
    sample, told = sampled(1, is_awaited=False)
    event = next_of(sample, Run(clock, 1, 9))
    assert not told.heard and not event.complete
    event.wait()
    assert told.heard == [10] and sample.close()


def test_where_it_does_not_wait_the_next_run_sees_it(clock: Clock) -> None:
    sample, told = sampled(1, is_awaited=False)
    next_of(sample, Run(clock, 1, 9))
    clock.now += 2
    assert not sample.close() and told.heard == [10]
    sample, told = sampled(1, is_awaited=False)
    next_of(sample, Run(clock, 1, 9))
    clock.now += 90
    assert not sample.close() and told.heard == [None], "it ended some time before"


def test_behind_what_does_not_end_no_sample_is_taken(clock: Clock) -> None:
    """It may wait for something that the host does later."""
    sample, told = sampled(2)
    next_of(sample, Run(clock, 1, 9), before=Event(clock, 200))
    assert clock.now == pytest.approx(101 + run_times.MOST_WAIT, abs=3e-3)
    assert told.heard == [None] and not sample.left
    sample, told = sampled(1)
    next_of(sample, Run(clock, 1, 9), depends=[Event(clock, 0)])
    assert told.heard == [None]


def test_other_work_between_the_runs_is_told(clock: Clock) -> None:
    sample, told = sampled(3)
    next_of(sample, Run(clock, 1, 9))
    next_of(sample, Run(clock, 1, 9), before=Event(clock, 0))
    assert told.heard == ["others", None] and not sample.left


def test_a_program_that_does_other_things_most_of_the_time_is_told(clock: Clock) -> None:
    """A few microseconds between two launches are what recording the list takes."""
    for idle, heard in ((2, [9]), (90, ["others", None])):
        sample, told = sampled(2)
        event = next_of(sample, Run(clock, 1, 5))
        clock.now += 5 + idle
        next_of(sample, Run(clock, 1, 0), before=event)
        assert told.heard == heard


def test_a_stall_or_nothing_launched_ends_a_sample(clock: Clock) -> None:
    sample, told = sampled(2)
    event = next_of(sample, Run(clock, 1, 3, MegakernelStalled("it gave up")))
    with pytest.raises(MegakernelStalled):
        event.wait()
    assert told.heard == ["it gave up"] and not sample.left
    sample, told = sampled(2)
    assert sample.launch(lambda depends: ([None], None), (), None) == ([None], None)
    assert told.heard == [None] and not sample.left


def test_a_record_learns_the_rhythm(clock: Clock) -> None:
    record = ListRecord(Trials("sequence", ["fused"]), "", (), "", 1, "")
    record.trials.ready("fused")
    name, runs = record.trials.next()
    sample = record.sample(name, runs)
    assert (name, runs, sample.is_awaited) == ("sequence", 1, False)
    record.is_unseen = True  # as the list says when it closes one
    record.poll()
    assert record.trials.in_batches and record.sample(name, 3).is_awaited
    for is_first in (True, False):  # those that are taken in between begin the count anew
        for _ in range(run_timer.MOST_BROKEN - is_first):
            record.sample(name, 3)._told.others_between()  # type: ignore[union-attr]
        record.poll()
        if is_first:
            assert record.trials.in_batches, "a loop may have ended there"
            record.reported.append((name, 1e-3, 3))
    assert not record.trials.in_batches, "each by itself, and waited for at once"
    assert record.sample(name, 1).is_awaited


def test_a_record_learns_the_rhythm_before_the_first_sample(clock: Clock) -> None:
    """From a run whose end nobody saw."""
    record = ListRecord(Trials("sequence", ["fused"]), "", (), "", 1, "")
    for has_begun, runs in ((False, 0), (True, 1)):
        RunTimer(record, "sequence", runs).unknown(has_begun)
        assert not record.is_unseen, "it began behind others, or a trial tells by itself"
    RunTimer(record, "sequence").unknown(True)
    record.poll()
    assert record.is_unseen and record.trials.in_batches


@pytest.mark.parametrize("is_awaited", [False, True])
def test_a_run_that_finds_the_one_before_running_tells_the_rhythm(
    clock: Clock, is_awaited: bool
) -> None:
    """Also behind other work, when nobody knows when it began."""
    record = ListRecord(Trials("sequence", ["fused"]), "", (), "", 1, "")
    other = Run(clock, 0.0, 0.3).launch(())[1]
    before: object = other
    for _ in range(2):
        assert not record.is_unseen
        run = Run(clock, 0.01, 1.0)
        before = RunTimer(record, "sequence").launch(run.launch, (), before)[1]  # type: ignore[arg-type]
        if is_awaited:
            before.wait()  # type: ignore[attr-defined]
    assert record.is_unseen != is_awaited
    assert record.sample("sequence", 1).is_awaited != is_awaited and record.latest is None


def test_what_others_launched_in_between_tells_no_rhythm(clock: Clock) -> None:
    record = ListRecord(Trials("sequence", ["fused"]), "", (), "", 1, "")
    for _ in range(3):
        other = Run(clock, 0.0, 0.3).launch(())[1]
        RunTimer(record, "sequence").launch(Run(clock, 0.01, 1.0).launch, (), other)
    assert not record.is_unseen
