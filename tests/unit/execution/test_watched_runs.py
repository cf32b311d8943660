"""Runs that the device itself times: nobody waits for them, and each is told of once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from fusionq.base.errors import DeviceError
from fusionq.execution.run_times import WatchedRun, WatchedSample


class Watch:
    """A stopwatch that tests let know its time."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.known: float | None = None
        self.fails = False

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")

    def seconds(self) -> float | None:
        if self.fails:
            raise DeviceError("the GPU's work failed")
        return self.known


class Told:
    """What was told."""

    def __init__(self) -> None:
        self.all: list[object] = []

    def took(self, seconds: float) -> None:
        self.all.append(seconds)

    def unknown(self, has_begun: bool = False) -> None:
        self.all.append(None)

    def stalled(self, reason: str) -> None:
        self.all.append(reason)

    def others_between(self) -> None:
        self.all.append("others")


def launched(watch: Watch, event: object = "event") -> Any:
    def launch(depends: Sequence[object]) -> tuple[Sequence[object], object]:
        watch.calls.append("launch")
        return (event,), event

    return launch


def test_a_sample_is_timed_from_its_first_run_to_its_last() -> None:
    watch, told = Watch(), Told()
    sample = WatchedSample(3, told, watch)
    assert not sample.poll()
    for left in (2, 1, 0):
        assert sample.launch(launched(watch), (), None)[1] == "event"
        assert sample.left == left
    assert watch.calls == ["start", "launch", "launch", "launch", "stop"]
    assert sample.close() and not sample.poll() and not told.all
    watch.known = 3e-5
    assert sample.poll() and sample.poll()
    assert told.all == [3e-5]


def test_a_run_that_waits_for_others_ends_the_sample() -> None:
    watch, told = Watch(), Told()
    sample = WatchedSample(2, told, watch)
    sample.launch(launched(watch), ("another",), None)  # type: ignore[arg-type]
    assert watch.calls == ["launch"]
    assert sample.left == 0 and sample.poll() and told.all == [None]


@pytest.mark.parametrize("is_sample", [True, False])
def test_runs_that_failed_have_no_time(is_sample: bool) -> None:
    watch, told = Watch(), Told()
    if is_sample:
        sample = WatchedSample(1, told, watch)
        sample.launch(launched(watch), (), None)
        run: Any = sample
    else:
        run = WatchedRun(watch, told)
    assert not run.poll()
    watch.fails = True
    assert run.poll() and told.all == [None]


def test_a_list_of_nothing_has_no_time() -> None:
    watch, told = Watch(), Told()
    sample = WatchedSample(1, told, watch)
    assert sample.launch(launched(watch, None), (), None)[1] is None
    assert sample.poll() and told.all == [None]


class Before:
    """The event of what the queue launched before."""

    native = None

    def __init__(self, complete: bool) -> None:
        self.complete = complete

    def wait(self) -> None:
        """Nobody does."""

    def times(self) -> None:
        """Not recorded."""


@pytest.mark.parametrize("before", [None, Before(True), Before(False)])
def test_what_the_host_has_prepared_counts_where_the_device_waited_for_it(
    before: Before | None,
) -> None:
    watch, told = Watch(), Told()
    sample = WatchedSample(2, told, watch)
    sample.launch(launched(watch), (), before, 4e-5)
    sample.launch(launched(watch), (), before, 4e-5)  # the device's time has that
    run = WatchedRun(watch, told, before, 4e-5)
    watch.known = 3e-5
    assert sample.poll() and run.poll()
    expected = 3e-5 if before is not None and not before.complete else 7e-5
    assert told.all == pytest.approx([expected, expected])
