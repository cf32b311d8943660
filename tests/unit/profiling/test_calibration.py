"""The device's clock, and the cycle counter in its place where that does."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.base import Backend
from fusionq.base.errors import DeviceError
from fusionq.profiling import calibration
from fusionq.profiling.calibration import Calibration, calibrate
from fusionq.profiling.recorder import _in_host_time
from fusionq.profiling.timeline import Aggregate
from tests.unit.profiling.lists import chain
from tests.unit.profiling.test_persistent import steps


@pytest.fixture
def backend(sycl_queue: fq.FusionQueue) -> Backend:
    return sycl_queue._state.launcher.backend


def test_counts_become_the_hosts_nanoseconds() -> None:
    clock = Calibration("cycle_counter", 1, 1, None, count_ns=0.4, zero_count=1 << 60, zero_ns=7)
    counts = np.array([0, 5, 1_000_000_000, -5]) + (1 << 60)
    assert clock.host_ns(counts).tolist() == [7, 9, 400_000_007, 5]


def test_the_cycle_counter_says_the_same_as_the_clock(backend: Backend) -> None:
    counter = calibrate(backend)
    if isinstance(counter, str) or counter.function == "clock":
        pytest.skip("the cycle counter does not do here")
    assert 0 < counter.tick_ns <= counter.record_ns
    for time_ns, count in calibration._pairs(backend):
        assert abs(int(counter.host_ns(np.array([count]))[0]) - time_ns) < 50_000


def contradict(backend: Backend, clock: str) -> calibration._Exchange:
    return calibration._Exchange(1.0, 1_000_000 if clock == "cycle_counter" else 0)


def uneven(backend: Backend) -> list[tuple[float, int]]:
    return [(0.0, 0), (1000.0, 2500), (2100.0, 5000)]


def backwards(backend: Backend) -> list[tuple[float, int]]:
    return [(0.0, 5000), (1000.0, 2500), (2000.0, 0)]


def cannot_be_built(backend: Backend, clock: str) -> np.ndarray:
    if clock == "cycle_counter":
        raise DeviceError("no such function")
    return np.array([30, 27, 30])


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("_exchange", contradict),
        ("_pairs", uneven),
        ("_pairs", backwards),
        ("_steps", cannot_be_built),
        ("_steps", lambda backend, clock: np.array([27] if clock == "clock" else [], np.int64)),
    ],
)
def test_a_counter_that_does_not_do_is_not_looked_at(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, name: str, broken: object
) -> None:
    monkeypatch.setattr(calibration, name, broken)
    clock = calibrate(backend)
    assert isinstance(clock, Calibration)
    assert clock.function == "clock"
    assert clock.count_ns == 1


@pytest.mark.parametrize(("apart", "function"), [(240, "cycle_counter"), (260, "clock")])
def test_reads_that_were_early_are_no_contradiction(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, apart: int, function: str
) -> None:
    """A count is 0.4 ns: 96 ns early, or 104 apart."""
    reads = [(0.0, 0), (1000.0, 2500), (2000.0, 5000)]
    monkeypatch.setattr(calibration, "_pairs", lambda backend: reads)
    exchange = calibration._Exchange(300.0, apart)
    monkeypatch.setattr(calibration, "_exchange", lambda backend, clock: exchange)
    clock = calibrate(backend)
    assert isinstance(clock, Calibration)
    assert clock.function == function


@pytest.mark.parametrize(("close_at", "bound"), [(3, 50), (20, 50), (None, 5_000_000)])
def test_messages_are_exchanged_until_one_is_answered_soon(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, close_at: int | None, bound: int
) -> None:
    """On a busy machine two workers rarely run at once."""
    exchanges = []

    def exchange(backend: Backend, kernel: object, words: int, groups: int) -> np.ndarray:
        exchanges.append(groups)
        near = len(exchanges) - 1 == close_at
        way = 50 if near else 5_000_000
        times = np.array([[1000], [1000 + way], [1000 + 2 * way]]).repeat(calibration._ROUNDS, 1)
        return np.concatenate([np.zeros(16, np.int64), times.ravel()])

    monkeypatch.setattr(calibration, "_run", exchange)
    milliseconds = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(milliseconds) / 1000)
    monkeypatch.setattr(calibration, "time", clock)
    monkeypatch.setattr(calibration, "_EXCHANGING_SECONDS", 0.02 if close_at is None else 60)
    found = calibration._exchange(backend, "clock")
    assert found == calibration._Exchange(bound, 0)
    if close_at is None:
        assert len(exchanges) > calibration._EXCHANGES
    else:
        assert len(exchanges) == max(calibration._EXCHANGES, close_at + 1)


@pytest.mark.parametrize(
    ("make", "overflow", "function"),
    [
        (chain, "truncate", "clock"),
        (chain, "aggregate", "cycle_counter"),
        (steps, "truncate", "cycle_counter"),
    ],
)
def test_a_profile_is_in_the_hosts_time(
    sycl_queue: fq.FusionQueue,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    make,
    overflow: str,
) -> None:
    if function == "clock":
        monkeypatch.setattr(calibration, "_cycle_counter", lambda backend, offset: None)
    else:
        monkeypatch.setattr(calibration, "_UNEVEN", 1.0)
    run, out, *_ = make(sycl_queue)
    run()
    expected = out.numpy().copy()
    out.write(np.zeros_like(expected))
    with fq.profile(sycl_queue, compare=False, overflow=overflow) as p:
        before = time.monotonic_ns()
        run()
        sycl_queue.wait()
        after = time.monotonic_ns()
    assert np.array_equal(out.numpy(), expected)
    clock = p.timeline.clock
    assert clock is not None
    assert clock.function == function
    (launch,) = p.timeline.launches
    off = 100_000  # how far a count's measured length may be out, on a busy machine
    assert before - off <= launch.start_ns < launch.end_ns <= after + off
    workers = sycl_queue.device.compute_units
    assert all(s.sum_ns <= workers * launch.makespan_ns for s in p.statistics)


def test_totals_of_payloads_are_no_times() -> None:
    clock = Calibration("cycle_counter", 1, 1, None, count_ns=0.5, zero_count=100, zero_ns=1000)
    total = Aggregate(0, 0, sum=8, min=2, max=6, count=2, first=100, last=120)
    moved = replace(total, first=1000, last=1010)
    assert _in_host_time(total, clock, of_payloads=True) == moved
    assert _in_host_time(total, clock, of_payloads=False) == replace(moved, sum=4, min=1, max=3)
