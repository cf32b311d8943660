"""``tune=True``: the same results as ever, and a choice that is remembered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.wrapped_event import WrappedEvent
from fusionq.cache.plan_cache import PLANS
from fusionq.execution import autotune
from fusionq.execution.samples import FASTER
from fusionq.ir.nodes import Persistent
from fusionq.submission.run import PreparedRun
from tests.e2e.tuned_lists import (
    Blurs,
    Measured,
    blur,
    blurred,
    floats,
    gather,
    groups,
    less_one,
    scale_and_add,
    step_on,
    tuned,
)

pytestmark = pytest.mark.usefixtures("nothing_is_planned")


# -------------------------------------------------------------------------------- results
def test_what_is_measured_is_what_the_analysis_allows(
    queue: fq.FusionQueue, measured: Measured
) -> None:
    tuned(queue, tune=True)
    assert measured.strategies == [["megakernel", "sequence", "unfused"]]


@pytest.mark.parametrize("fastest", ["megakernel", "sequence", "unfused"])
def test_the_fastest_runs_once(queue: fq.FusionQueue, measured: Measured, fastest: str) -> None:
    measured.fastest = fastest
    report = tuned(queue, tune=True)
    assert report.strategy == fastest
    assert report.plan.measured[0].strategy == fastest
    assert report.choice is not None and report.choice.startswith("measured 1000 µs ")
    assert report.choice.endswith("(measured now)")
    assert report.choice in str(report)
    assert report.timings["tune"] > 0


def test_without_a_hand_on_the_scales(queue: fq.FusionQueue) -> None:
    report = tuned(queue, tune=True)
    first, *others = [m.seconds for m in report.plan.measured]
    assert others == sorted(others) and len(others) == 2 and 0 < FASTER * first <= others[0]
    assert report.strategy == report.plan.measured[0].strategy


def test_the_device_times_where_it_does(
    queue: fq.FusionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A persistent kernel is waited for after what ends the time: the host's part of that is none
    of a list that comes again."""
    calls: list[str] = []

    class Watch:
        def start(self) -> None:
            calls.append("start")

        def stop(self) -> None:
            calls.append("stop")

        def seconds(self) -> float:
            calls.append("seconds")
            return 0.125

    class Event(WrappedEvent):
        def wait(self) -> None:
            calls.append("wait")
            self._inner.wait()

    def launch(run: Any, depends: Any) -> Any:
        events, last = PreparedRun.launch(run, depends)
        return events, Event(last)

    backend: Any = queue._state.launcher.backend
    monkeypatch.setattr(backend, "stopwatch", lambda launch: Watch())
    monkeypatch.setattr(autotune._RunOnCopies, "launch", launch)
    report = tuned(queue, tune=True)
    assert {m.seconds for m in report.plan.measured} == {0.125}
    runs = {tuple(run.split()) for run in " ".join(calls).split("start")[1:]}
    assert runs == {("stop", "seconds"), ("stop", "wait", "seconds")}


def test_start_fusion_and_complete_fusion(queue: fq.FusionQueue, measured: Measured) -> None:
    measured.fastest = "unfused"
    list_ = Blurs()
    queue.start_fusion()
    list_.submit(queue)
    queue.complete_fusion(tune=True)
    assert list_.right()
    assert queue.last_report is not None and queue.last_report.strategy == "unfused"


@pytest.mark.parametrize("fastest", ["megakernel", "fused", "unfused"])
def test_each_run_begins_with_the_list_s_own_contents(
    queue: fq.FusionQueue, measured: Measured, fastest: str
) -> None:
    """A second run on what the first has left would read behind the table."""
    measured.fastest = fastest
    n = 64
    table, places = floats(n + 1), np.arange(n)
    before = places.copy()
    out = np.zeros(n, np.float32)
    with fq.fusion(queue, tune=True) as f:
        queue.submit(step_on, n, places)
        queue.submit(gather, n, table, places, out)
    f.event.wait()
    assert measured.strategies == [["fused", "unfused"]]
    assert np.array_equal(places, before + 1)
    assert np.array_equal(out, table[1:])


@pytest.mark.parametrize("fastest", ["megakernel", "sequence", "unfused"])
def test_views_that_overlap(queue: fq.FusionQueue, measured: Measured, fastest: str) -> None:
    measured.fastest = fastest
    n = 96
    memory = floats(n + 7)
    wanted = memory.copy()
    for _ in range(2):
        wanted[7:] = blurred(wanted[:n])
        wanted[: n // 2] = wanted[: n // 2] * np.float32(2) + np.float32(1)
    copy = np.zeros(n, np.float32)
    with fq.fusion(queue, tune=True) as f:
        for _ in range(2):
            queue.submit(blur, groups(n), memory[:n], copy)
            queue.submit(scale_and_add, groups(n), copy, np.float32(1))
            queue.submit(less_one, groups(n), copy, memory[7:])
            queue.submit(scale_and_add, groups(n // 2), memory[: n // 2], np.float32(2))
    f.event.wait()
    assert f.report.strategy == fastest
    np.testing.assert_array_equal(memory, wanted)


def test_what_fusion_promotes_gets_no_memory(queue: fq.FusionQueue, measured: Measured) -> None:
    measured.fastest = "fused"
    a = fq.Buffer(floats(64))
    between = fq.Buffer(64, np.float32, promote_private=True)
    out = fq.Buffer(64, np.float32)
    with fq.fusion(queue, tune=True) as f:
        queue.submit(less_one, groups(64), a, between)
        queue.submit(less_one, groups(64), between, out)
    assert f.report.strategy == "fused" and between._storage.address is None
    assert np.array_equal(out.numpy(), floats(64) - np.float32(1) - np.float32(1))


def test_what_other_queues_do_comes_first(target: str | None, measured: Measured) -> None:
    first, second = fq.FusionQueue(target), fq.FusionQueue(target)
    n = 1 << 10
    a, b = fq.Buffer(floats(n)), fq.Buffer(n, np.float32)
    event = first.submit(less_one, groups(n), a, b)
    with fq.fusion(second, tune=True):
        second.submit(scale_and_add, groups(n), b, np.float32(2), depends_on=event)
        second.submit(scale_and_add, groups(n), b, np.float32(2))
    x = (floats(n) - np.float32(1)) * np.float32(2) + np.float32(1)
    assert np.array_equal(b.numpy(), x * np.float32(2) + np.float32(1))


def test_a_profile_does_not_measure(queue: fq.FusionQueue, measured: Measured) -> None:
    with fq.profile(queue):
        tuned(queue, tune=True)
    assert not measured.strategies
    tuned(queue, tune=True)
    assert len(measured.strategies) == 1


# ------------------------------------------------------------------------------- refused
def test_too_much_to_copy(
    queue: fq.FusionQueue, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(autotune, "MOST_BYTES", 2 * 96 * 4 - 1)
    report = tuned(queue, tune=True)
    assert report.choice is not None and report.choice.startswith(
        "not measured: the list writes to 768 bytes of arrays, and measuring copies at most 767"
    )
    assert not measured.strategies
    plain = tuned(queue).choice
    assert plain is None or "not measured" not in plain
    monkeypatch.setattr(autotune, "MOST_BYTES", 2 * 96 * 4)
    assert tuned(queue, tune=True).plan.measured


def test_no_memory_for_copies(
    queue: fq.FusionQueue, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> object:
        raise fq.DeviceError("there is no more memory\nand a second line")

    monkeypatch.setattr(autotune, "Scratch", full)
    report = tuned(queue, tune=True)
    assert report.choice is not None
    assert "768 bytes" in report.choice and "there is no more memory" in report.choice
    assert not measured.strategies


@pytest.mark.parametrize("strategy", ["fused", "megakernel", "sequence", "unfused"])
def test_contradictory_options(queue: fq.FusionQueue, strategy: Any) -> None:
    with pytest.raises(fq.ArgumentError, match=f"strategy='{strategy}' says which to take"):
        fq.fusion(queue, strategy=strategy, tune=True)
    queue.start_fusion()
    list_ = Blurs()
    list_.submit(queue)
    with pytest.raises(fq.ArgumentError, match="tune=True"):
        queue.complete_fusion(strategy=strategy, tune=True)
    queue.complete_fusion()
    assert list_.right()


def test_tune_is_true_or_false(queue: fq.FusionQueue) -> None:
    with pytest.raises(fq.ArgumentError, match="tune='yes' is not one of False, True"):
        fq.fusion(queue, tune="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("sizes", [(64,), (0, 0)])
def test_nothing_to_measure(
    queue: fq.FusionQueue, measured: Measured, sizes: tuple[int, ...]
) -> None:
    a, b = fq.Buffer(floats(64)), fq.Buffer(64, np.float32)
    with fq.fusion(queue, tune=True) as f:
        for n in sizes:
            queue.submit(less_one, groups(n), a, b)
    assert f.report.choice is not None and f.report.choice.startswith("not measured: ")
    assert not measured.strategies


def test_an_empty_list(queue: fq.FusionQueue, measured: Measured) -> None:
    with pytest.warns(fq.FusionAborted), fq.fusion(queue, tune=True):
        pass
    assert not measured.strategies


def test_require_leaves_out_what_is_not_one_launch(
    queue: fq.FusionQueue, measured: Measured
) -> None:
    measured.fastest = "unfused"
    a, b, c = (fq.Buffer(floats(64)) for _ in range(3))
    with fq.fusion(queue, require=True, tune=True) as f:
        queue.submit(less_one, groups(64), a, b)
        queue.submit(less_one, groups(64), b, c)
    assert f.report.strategy == "fused"
    assert f.report.choice is not None and "the same launches" in f.report.choice
    assert not measured.strategies


def test_what_stalls_is_left_out(
    queue: fq.FusionQueue, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured.fastest = "megakernel"
    launch = autotune._RunOnCopies.launch

    def stalling(run: autotune._RunOnCopies, depends: Any) -> Any:
        if run.built.plan.strategy == "megakernel":
            raise fq.MegakernelStalled("stage 1 gave up waiting")
        return launch(run, depends)

    monkeypatch.setattr(autotune._RunOnCopies, "launch", stalling)
    report = tuned(queue, tune=True)
    assert report.strategy != "megakernel"
    assert {m.strategy for m in report.plan.measured} == {"sequence", "unfused"}
    assert report.choice is not None and "stage 1 gave up waiting" in report.choice


def test_what_cannot_be_built_is_left_out(
    queue: fq.FusionQueue, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    PLANS.clear()  # programs too
    backend = queue._state.launcher.backend
    build = type(backend).build

    def refusing(self: Any, kernel: Any, fp: Any) -> Any:
        if Persistent in map(type, kernel.body):
            raise fq.DeviceError("no such instruction\nthe log")
        return build(self, kernel, fp)

    monkeypatch.setattr(type(backend), "build", refusing)
    report = tuned(queue, tune=True)
    assert measured.strategies == [["sequence", "unfused"]]
    assert report.choice is not None
    assert "strategy 'megakernel' is left out: no such instruction" in report.choice
    assert "the log" not in report.choice
