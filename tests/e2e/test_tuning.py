"""``tune=True``: the same results as ever, and a choice that is remembered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fusionq as fq
from fusionq.analysis.validity import size_order
from fusionq.cache.plan_cache import PLANS
from fusionq.execution import autotune
from fusionq.ir.nodes import Persistent
from fusionq.kernels.library import Array

Floats = npt.NDArray[np.float32]


def forget() -> None:
    """Forget all plans but those on disk; programs may stay, which takes less time."""
    PLANS._plans.clear()


@pytest.fixture(autouse=True)
def _nothing_is_known(disk_cache: Path) -> Iterator[None]:
    """A disk cache that is empty, and a process that has planned nothing."""
    forget()
    yield
    forget()


@fq.kernel
def blur(item: fq.NdItem, a: Array, b: Array) -> None:
    i = item.get_global_id(0)
    if i > 0 and i < a.shape[0] - 1:
        b[i] = a[i - 1] + a[i] + a[i + 1]
    else:
        b[i] = a[i]


@fq.kernel
def scale_and_add(item: fq.NdItem, a: Array, factor: np.float32) -> None:
    i = item.get_global_id(0)
    a[i] = a[i] * factor + np.float32(1)


@fq.kernel
def step_on(item: fq.Item, places: Array) -> None:
    i = item.get_id(0)
    places[i] += 1


@fq.kernel
def gather(item: fq.Item, table: Array, places: Array, out: Array) -> None:
    i = item.get_id(0)
    out[i] = table[places[i]]


@fq.kernel
def repeated_sum(item: fq.Item, a: Array, b: Array, times: int) -> None:
    i = item.get_id(0)
    total = np.float32(0)
    for _ in range(times):
        total = total + a[i]
    b[i] = total


class Measured:
    """What ``medians`` was asked for; it says that ``fastest`` is, where that is given."""

    def __init__(self, fastest: str | None = None) -> None:
        self.fastest = fastest
        self.strategies: list[list[str]] = []

    def __call__(self, runs: Mapping[int, Callable[[], float]]) -> dict[int, float]:
        names = {k: run.__self__.built.plan.strategy for k, run in runs.items()}  # type: ignore[attr-defined]  # a method
        self.strategies.append(sorted(names.values()))
        for run in (*runs.values(), *reversed(runs.values())):
            run()
        return {k: 1e-3 if name == self.fastest else 2e-3 for k, name in names.items()}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    """What was measured; nothing is the fastest until the test says so."""
    made = Measured()
    monkeypatch.setattr(autotune, "medians", made)
    return made


def groups(n: int) -> fq.NdRange:
    """``n`` work-items in small groups, so that neighbours are in different ones."""
    return fq.NdRange(n, 16)


def floats(n: int) -> Floats:
    return np.random.default_rng(n).random(n, np.float32)


class Blurs:
    """Steps of a blur between two buffers, then one in place; and what must come out."""

    def __init__(self, n: int = 96, steps: int = 3, factor: float = 2.0) -> None:
        self.range, self.steps, self.factor = groups(n), steps, np.float32(factor)
        self.start = floats(n)
        self.a, self.b = fq.Buffer(self.start), fq.Buffer(n, np.float32)

    def submit(self, queue: fq.FusionQueue) -> None:
        a, b = self.a, self.b
        for _ in range(self.steps):
            queue.submit(blur, self.range, a, b)
            a, b = b, a
        factor = self.factor
        queue.submit(scale_and_add, self.range, a, factor)

    def run(self, queue: fq.FusionQueue, **options: Any) -> fq.Fusion:
        with fq.fusion(queue, **options) as f:
            self.submit(queue)
        return f

    def right(self) -> bool:
        """Whether the buffers hold what one run gives."""
        a = self.start.copy()
        for _ in range(self.steps):
            b = a.copy()
            b[1:-1] = a[:-2] + a[1:-1] + a[2:]
            a = b
        return np.array_equal(
            (self.a if self.steps % 2 == 0 else self.b).numpy(), a * self.factor + np.float32(1)
        )


def tuned(queue: fq.FusionQueue, n: int = 96, **options: Any) -> fq.Report:
    """The report of a list of ``Blurs`` of its own, whose result is right."""
    list_ = Blurs(n)
    report = list_.run(queue, **options).report
    assert list_.right()
    return report


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
    times = [m.seconds for m in report.plan.measured]
    assert times == sorted(times) and len(times) == 3 and times[0] > 0
    assert report.strategy == report.plan.measured[0].strategy


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


@fq.kernel
def less_one(item: fq.NdItem, a: Array, b: Array) -> None:
    i = item.get_global_id(0)
    b[i] = a[i] - np.float32(1)


def blurred(a: Floats) -> Floats:
    b = a.copy()
    b[1:-1] = a[:-2] + a[1:-1] + a[2:]
    return (b + np.float32(1)) - np.float32(1)


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


# ---------------------------------------------------------------------------- remembering
@pytest.mark.parametrize("fastest", ["megakernel", "sequence", "unfused"])
def test_remembered_in_memory(queue: fq.FusionQueue, measured: Measured, fastest: str) -> None:
    measured.fastest = fastest
    tuned(queue, tune=True)
    for options in ({"tune": True}, {}, {"strategy": "auto"}):
        report = tuned(queue, **options)
        assert (report.strategy, report.cache) == (fastest, "memory")
        assert report.choice is not None and report.choice.endswith("(remembered)")
    assert len(measured.strategies) == 1


@pytest.mark.parametrize("fastest", ["megakernel", "sequence", "unfused"])
@pytest.mark.parametrize("options", [{"tune": True}, {}])
def test_remembered_on_disk(
    target: str | None, measured: Measured, fastest: str, options: dict[str, Any]
) -> None:
    measured.fastest = fastest
    with fq.FusionQueue(target) as queue:
        tuned(queue, tune=True)
    forget()
    with fq.FusionQueue(target) as queue:
        report = tuned(queue, **options)
        assert (report.strategy, report.cache) == (fastest, "disk")
        assert report.choice is not None and report.choice.endswith("(remembered on disk)")
        assert tuned(queue, **options).cache == "memory"
    assert len(measured.strategies) == 1


def test_without_a_disk_cache(
    queue: fq.FusionQueue, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSIONQ_CACHE", "off")
    tuned(queue, tune=True)
    forget()
    tuned(fq.FusionQueue("reference"), tune=True)
    assert len(measured.strategies) == 2


def test_what_was_prepared_before_is_not_used_any_longer(
    target: str | None, measured: Measured
) -> None:
    measured.fastest = "unfused"
    queue, other = fq.FusionQueue(target), fq.FusionQueue(target)
    lists = {q: Blurs() for q in (queue, other)}
    for q, list_ in lists.items():
        assert list_.run(q).report.strategy != "unfused"
    lists[queue].run(queue, tune=True)
    for q, list_ in lists.items():
        assert list_.run(q).report.strategy == "unfused"


SCRIPT = """
import json, sys
import numpy as np
import fusionq as fq


@fq.kernel
def turned(item, a, b):
    i = item.get_id(0)
    b[i] = a[a.shape[0] - 1 - i] + 1


queue = fq.FusionQueue(None if sys.argv[1] == "sycl" else sys.argv[1])
start = np.arange(200, dtype=np.float32)
a, b = fq.Buffer(start), fq.Buffer(200, np.float32)
with fq.fusion(queue, tune=sys.argv[2] == "tune") as f:
    for _ in range(2):
        queue.submit(turned, 200, a, b)
        queue.submit(turned, 200, b, a)
assert np.array_equal(a.numpy(), start + 4)
report = f.report
tuner = "fusionq.execution.autotune" in sys.modules
print(json.dumps([report.strategy, report.cache, report.choice, tuner]))
"""


def test_remembered_for_other_processes(target: str | None, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")

    def run(tune: str) -> list[Any]:
        command = [sys.executable, str(script), target or "sycl", tune]
        done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
        assert done.returncode == 0, done.stderr
        found: list[Any] = json.loads(done.stdout)
        return found

    strategy, cache, choice, tuning_is_there = run("tune")
    assert cache == "miss" and tuning_is_there
    remembered = choice.replace("(measured now)", "(remembered on disk)")
    assert remembered != choice
    assert run("auto") == [strategy, "disk", remembered, False]
    assert run("tune") == [strategy, "disk", remembered, True]


# ------------------------------------------------------------------------------- the key
def test_other_options_are_other_lists(queue: fq.FusionQueue, measured: Measured) -> None:
    measured.fastest = "unfused"
    tuned(queue, tune=True)
    assert tuned(queue, barriers="none").strategy != "unfused"
    tuned(queue, barriers="none", tune=True)
    assert len(measured.strategies) == 2
    assert tuned(queue, barriers="none").strategy == "unfused"


def test_other_orders_of_size_are_other_lists(queue: fq.FusionQueue, measured: Measured) -> None:
    measured.fastest = "unfused"
    low, beyond = size_order(96)
    tuned(queue, 96, tune=True)
    for same in (low, beyond - 16):
        tuned(queue, same, tune=True)
        assert tuned(queue, same).strategy == "unfused"
    assert len(measured.strategies) == 1
    for number, other in enumerate((low - 16, beyond), 2):
        assert tuned(queue, other).strategy != "unfused"
        tuned(queue, other, tune=True)
        assert len(measured.strategies) == number
    assert tuned(queue, 96).strategy == "unfused"


def test_a_measured_plan_goes_before_one_that_was_not(
    queue: fq.FusionQueue, measured: Measured
) -> None:
    """What fuses the larger size would serve the smaller one too."""
    measured.fastest = "unfused"

    def strategy(n: int, **options: Any) -> str:
        a, b, c = (fq.Buffer(floats(n)) for _ in range(3))
        with fq.fusion(queue, **options) as f:
            queue.submit(less_one, groups(n), a, b)
            queue.submit(less_one, groups(n), b, c)
        return f.report.strategy

    assert strategy(64, tune=True) == "unfused"
    for larger, smaller in ((4096, 64), (4112, 112)):
        assert strategy(larger) == "fused"
        assert strategy(smaller) == "unfused"
        forget()  # both come from disk the second time
    assert strategy(112) == "unfused"
    assert strategy(4096) == "fused"
    assert strategy(128) == "unfused"
    assert len(measured.strategies) == 1


# ------------------------------------------------------------------- replay, and scalars
@pytest.mark.parametrize("fastest", ["megakernel", "sequence", "unfused"])
def test_replay(queue: fq.FusionQueue, measured: Measured, fastest: str) -> None:
    measured.fastest = fastest
    list_ = Blurs()
    f = list_.run(queue, tune=True)
    for factor in (2.0, 3.0):
        queue.memcpy(list_.a, list_.start)
        list_.factor = np.float32(factor)
        f.replay(factor=np.float32(factor))
        assert list_.right()
    assert len(measured.strategies) == 1


def test_scalars_that_change(queue: fq.FusionQueue, measured: Measured) -> None:
    measured.fastest = "unfused"
    list_ = Blurs()
    for factor in (2.0, 3.0, 4.0):
        queue.memcpy(list_.a, list_.start)
        list_.factor = np.float32(factor)
        assert list_.run(queue, tune=True).report.strategy == "unfused"
        assert list_.right()
    assert len(measured.strategies) == 1


def test_integers_that_were_compiled_in_are_measured_once_more(
    queue: fq.FusionQueue, measured: Measured
) -> None:
    measured.fastest = "unfused"
    a = fq.Buffer(np.ones(64, np.float32))
    b, c = fq.Buffer(64, np.float32), fq.Buffer(64, np.float32)
    for times in (3, 5, 6, 7, 3):
        with fq.fusion(queue, tune=True) as f:
            queue.submit(repeated_sum, 64, a, b, times)
            queue.submit(repeated_sum, 64, b, c, times)
        assert f.report.strategy == "unfused"
        assert c.numpy()[7] == times * times
    assert len(measured.strategies) == 2


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


# ------------------------------------------------------------------------------- medians
class Clock:
    """A clock that stands still but while something runs."""

    def __init__(self) -> None:
        self.now = 0.0
        self.order: list[str] = []

    def __call__(self) -> float:
        return self.now

    def run(self, name: str, *seconds: float) -> Callable[[], float]:
        """Takes these times in turn, and the last of them ever after."""
        left = list(seconds)

        def once() -> float:
            taken = left.pop(0) if len(left) > 1 else left[0]
            self.now += taken
            self.order.append(name)
            return taken

        return once


def test_medians_take_turns() -> None:
    clock = Clock()
    runs = {name: clock.run(name, 0.1, 0.3, 0.2) for name in "abc"}
    found = autotune.medians(runs, clock)
    assert set(found) == set("abc") and all(t == pytest.approx(0.2) for t in found.values())
    rounds = ["".join(clock.order[k : k + 3]) for k in range(0, len(clock.order), 3)]
    assert all(sorted(r) == list("abc") for r in rounds)
    assert len({r[0] for r in rounds[:3]}) == 3


def test_medians_give_up_what_is_clearly_worse() -> None:
    clock = Clock()
    runs = {
        "a": clock.run("a", 1e-3),
        "b": clock.run("b", 1.1e-3),
        "c": clock.run("c", 9e-3, 1.2e-3, 9e-3),  # once as fast as the others
        "d": clock.run("d", 1.5e-3),
    }
    found = autotune.medians(runs, clock)
    assert clock.order.count("d") == autotune.EARLIEST
    assert clock.order.count("a") == clock.order.count("b") == clock.order.count("c") == 40
    assert min(found, key=found.__getitem__) == "a"


def test_medians_stop_when_one_is_left() -> None:
    clock = Clock()
    autotune.medians({"a": clock.run("a", 1e-3), "b": clock.run("b", 9e-3)}, clock)
    assert len(clock.order) == 2 * autotune.EARLIEST


@pytest.mark.parametrize(("seconds", "rounds"), [(0.04, autotune.FEWEST_ROUNDS), (5.0, 1)])
def test_medians_stop_after_a_time(seconds: float, rounds: int) -> None:
    clock = Clock()
    autotune.medians({"a": clock.run("a", seconds), "b": clock.run("b", seconds)}, clock)
    assert len(clock.order) == 2 * rounds
