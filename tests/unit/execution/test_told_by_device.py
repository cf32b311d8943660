"""Lists whose samples the device times: it tells of them late where the host is far ahead, and
nothing that the host does is in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fusionq.execution import list_record, trials
from fusionq.execution.contender import Candidate
from fusionq.execution.run_times import WatchedSample
from fusionq.execution.samples import COLD_ON_DEVICE
from fusionq.execution.trials import MOST_MISSES, Trials
from tests.unit.execution.adaptive_lists import Immediate, Program, Times
from tests.unit.execution.trial_runs import begun, run

FEW, LATE = 3, 8
"""Runs of the list after which nobody waits for a sample that was not launched, and after which
the device tells of one that was."""


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch, times: Times) -> Iterator[list[str]]:
    """Samples of which the device tells ``LATE`` questions later; of which candidates."""
    told: list[str] = []

    class Late(WatchedSample):
        __slots__ = ("asked",)

        def poll(self) -> bool:
            timer: Any = self._told
            if timer is None or self.left:
                return timer is None
            self.asked = getattr(self, "asked", 0) + 1
            if self.asked <= LATE:
                return False
            self._told = None
            told.append(timer._name)
            timer.took(times[timer._name] * timer._runs)
            return True

    monkeypatch.setattr(list_record, "WatchedSample", Late)
    monkeypatch.setattr(trials, "MOST_AWAITED", FEW)
    yield told


class _Watch:
    def start(self) -> None:
        """The sample says when it is known."""

    stop = start

    def seconds(self) -> float:
        return 1.0


def test_a_sample_that_is_launched_is_awaited(
    background: Immediate, times: Times, late: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device was behind by more runs than that, so that the fastest had no time, and stayed
    unknown."""
    program = Program()
    backend: Any = program.queue._state.launcher.backend
    monkeypatch.setattr(backend, "stopwatch", lambda launch: _Watch())
    (record,) = (program.run(), *list_record.RECORDS._records.values())[1:]
    for _ in range(60 * LATE):
        if record.trials.chosen is not None:
            break
        program.run()
    assert record.trials.chosen == "megakernel"
    assert {"unfused", "megakernel"} <= set(late) and record.trials.by_device
    assert not any(contender.misses for contender in record.trials.contenders.values())
    assert record.trials.contenders["megakernel"].seconds == [1.0]


@pytest.mark.parametrize(("slowdown", "chosen"), [(1.3, "auto"), (0.7, "unfused")])
def test_what_could_not_be_timed_is_compared_by_the_model(
    slowdown: float, chosen: Candidate
) -> None:
    """The other one's times say nothing of it."""
    made = Trials("auto", ("unfused",))
    made.ready("unfused", slowdown)
    missed: dict[str, int] = {}
    while made.chosen is None:
        name, runs = made.next()
        if name == "auto":
            made.missed(name)
            missed[name] = missed.get(name, 0) + 1
        else:
            made.add(name, 1e-4, runs)
    assert missed == {"auto": MOST_MISSES} and made.chosen == chosen


@pytest.mark.parametrize("is_persistent", [True, False])
@pytest.mark.parametrize(
    ("best", "took", "runs"),
    [
        (1e-3, 8e-3, 1),
        (1e-3, 1.9e-3, 2),
        (1e-5, 1e-5 + 0.9 * COLD_ON_DEVICE, 2),
        (1e-5, 1e-5 + 1.1 * COLD_ON_DEVICE, 1),
    ],
)
def test_a_first_run_that_the_device_has_timed_counts_unless_it_may_be_cold(
    best: float, took: float, runs: int, is_persistent: bool
) -> None:
    """No core of the host can have been taken from it, so one run is enough of what is far
    slower."""
    made = begun("fused")
    made.costs.taken, made.by_device = 200.0, True
    made.contenders["fused"].is_persistent = is_persistent
    ran = run(made, {"sequence": best, "fused": took})
    assert made.chosen == "sequence" and ran.count("fused") == runs
    assert made.costs.total == pytest.approx(runs * (took - best))


def test_a_busy_host_keeps_no_persistent_kernel_of_a_device_from_its_trial() -> None:
    made = begun("fused")
    made.contenders["fused"].is_persistent = made.by_device = True
    tried = []
    while made.chosen is None:
        name, runs = made.next(lambda: True)
        tried.append(name)
        made.add(name, 1e-3 if name == "fused" else 2e-3, runs)
    assert made.chosen == "fused" and tried.count("fused") <= 2
