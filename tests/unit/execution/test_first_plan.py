"""What runs the first time that a list is seen: by clocks and builds that the tests make up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference.backend import ReferenceBackend
from fusionq.cache.plan_cache import PLANS
from fusionq.execution import adaptive, device_costs, first_plan, list_record, planning_time
from fusionq.execution import compile as compiling
from fusionq.ir.nodes import Kernel
from fusionq.planning import build_cost
from tests.unit.execution.programs import scale

N = 1000


@fq.kernel
def add(item: fq.Item, a, b, c):
    i = item.get_id(0)
    c[i] = a[i] + b[i]


@pytest.fixture(autouse=True)
def _adapting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("FUSIONQ_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("FUSIONQ_ADAPT", "1")
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "1")
    monkeypatch.setattr(adaptive, "unavailable", lambda backend: None)
    monkeypatch.setattr(first_plan, "clock", lambda: 0.0)
    monkeypatch.setattr(planning_time, "clock", lambda: 0.0)
    list_record.RECORDS.clear()
    PLANS.clear()
    yield
    list_record.RECORDS.clear()


Program = Callable[[], fq.Fusion]


@pytest.fixture
def run() -> Program:
    queue = fq.FusionQueue("reference")
    a, b, c = (fq.Buffer(np.arange(N, dtype=np.float32)) for _ in range(3))

    def run(fused: bool = True, **options: object) -> fq.Fusion:
        if not fused:
            queue.submit(scale, N, a, b, 2.0)
            queue.submit(add, N, a, b, c)
        with fq.fusion(queue, **options) as fusion:  # type: ignore[arg-type]
            queue.submit(scale, N, a, b, 2.0)
            queue.submit(add, N, a, b, c)
        assert np.array_equal(c.numpy(), 3 * np.arange(N))
        return fusion

    return run


def builds_take(monkeypatch: pytest.MonkeyPatch, fused: float) -> None:
    """So many seconds, 0.3 those of single submissions."""

    def seconds(self: first_plan.FirstPlan, kernel: Kernel) -> float:
        return fused if "fused" in kernel.name else 0.3

    monkeypatch.setattr(first_plan.FirstPlan, "_seconds", seconds)


def test_what_is_built_faster_together_runs_together(run: Program) -> None:
    report = run().report
    assert report.strategy == "fused" and report.cache == "miss"
    assert "build" in report.timings


def test_a_list_becomes_the_same_whatever_ran_before(run: Program) -> None:
    assert run(fused=False).report.strategy == "fused"  # type: ignore[call-arg]


def test_what_is_built_together_already_runs_so(run: Program) -> None:
    run(fused=False, strategy="sequence")  # type: ignore[call-arg]
    report = run().report
    assert report.strategy == "fused" and report.cache == "memory"


def test_what_the_model_has_chosen_once_runs(run: Program) -> None:
    run(fused=False, adapt=False)  # type: ignore[call-arg]
    assert run().report.strategy == "fused"


def test_a_tenth_of_the_time_may_be_planned(run: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(1000))
    monkeypatch.setattr(planning_time, "clock", lambda: float(next(ticks)))
    assert run().report.strategy == "unfused"


def test_what_takes_longer_to_build_is_not_built(
    run: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds_take(monkeypatch, 1.0)
    report = run().report
    assert report.strategy == "unfused" and report.fallback == list_record.UNTIL_WORTH


def test_as_long_as_planning_takes_where_the_user_says_so(
    run: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "inf")
    assert run(fused=False).report.strategy == "fused"  # type: ignore[call-arg]


@fq.kernel
def shift(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[(i + 1) % N]


@pytest.mark.parametrize("seconds", ["1", "inf"])
def test_a_first_run_does_not_wait_until_the_device_is_measured(
    monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    """It takes some tenths of a second: a list of four kernels took 1.5 to 2.3 times as long as
    these by themselves.  But who lets planning take any time has it."""
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", seconds)
    monkeypatch.setattr(first_plan, "LONG_RUN", 0.0)  # the model chooses
    asked: list[str] = []
    for name in ("known_target", "measured_target"):
        monkeypatch.setattr(
            device_costs, name, lambda backend, name=name: asked.append(name) or backend.target
        )
    queue = fq.FusionQueue("reference")
    a, b = (fq.Buffer(np.arange(N, dtype=np.float32)) for _ in range(2))
    with fq.fusion(queue):
        for _ in range(3):
            queue.submit(shift, N, a, b)
            queue.submit(shift, N, b, a)
    assert np.array_equal(a.numpy(), (np.arange(N) + 6) % N)
    assert set(asked) == {"measured_target" if seconds == "inf" else "known_target"}


@pytest.mark.parametrize(("seconds", "strategy"), [(0.8, "fused"), (1.0, "unfused")])
def test_on_a_gpu_it_is_what_the_model_chooses_if_that_is_built_soon(
    run: Program, monkeypatch: pytest.MonkeyPatch, seconds: float, strategy: str
) -> None:
    """Launches take microseconds there: the list would run unfused ten thousand times.  Unfused it
    takes 0.6 s to build."""
    builds_take(monkeypatch, seconds)
    backend = ReferenceBackend()
    device = replace(backend.target.device, kind="gpu")
    build = replace(backend.target.build, build_program=0.0)
    backend.target = replace(backend.target, device=device, build=build)
    monkeypatch.setattr("fusionq.backends.registry.backend_for", lambda *about: backend)
    queue = fq.FusionQueue()
    a, b, c = (fq.Buffer(np.arange(N, dtype=np.float32)) for _ in range(3))
    with fq.fusion(queue) as fusion:
        queue.submit(scale, N, a, b, 2.0)
        queue.submit(add, N, a, b, c)
    assert fusion.report.strategy == strategy
    assert np.array_equal(c.numpy(), 3 * np.arange(N))


def test_what_there_is_to_do_is_counted_once_for_many_submissions_of_a_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = []
    original = build_cost.build_work

    def work(kernel: Kernel) -> build_cost.BuildWork:
        counted.append(kernel)
        return original(kernel)

    monkeypatch.setattr(build_cost, "build_work", work)
    queue = fq.FusionQueue("reference")
    a, b = (fq.Buffer(np.arange(N, dtype=np.float32)) for _ in range(2))
    with fq.fusion(queue):
        for _ in range(8):
            queue.submit(scale, N, a, b, 2.0)
            queue.submit(scale, N, b, a, 0.5)
    assert np.array_equal(a.numpy(), np.arange(N))
    assert len({id(kernel) for kernel in counted}) == len(counted)


def test_one_kernel_that_many_submissions_have_is_planned_once_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(first_plan, "STEP", 1e9)  # the list runs unfused
    planned = []
    original = compiling._new_plan

    def new_plan(*arguments):  # type: ignore[no-untyped-def]
        planned.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(compiling, "_new_plan", new_plan)
    queue = fq.FusionQueue("reference")
    a, b = (fq.Buffer(np.arange(N, dtype=np.float32)) for _ in range(2))
    with fq.fusion(queue) as fusion:
        for _ in range(3):
            queue.submit(scale, N, a, b, 2.0)
    assert fusion.report.strategy == "unfused" and len(planned) == 1
    assert np.array_equal(b.numpy(), 2 * np.arange(N))
