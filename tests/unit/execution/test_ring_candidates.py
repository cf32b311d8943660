"""Persistent kernels whose rings have slots of other sizes are candidates: where there are rings,
where such slots fit, and once the kernel itself is the fastest or near that.  On a backend for GPUs
that launches nothing, by times that the tests make up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.config import set_disk_cache
from fusionq.base.options import FusionOptions
from fusionq.cache.build_requests import keep_request
from fusionq.cache.disk import disk_store
from fusionq.cache.entries import kept_plans
from fusionq.cache.plan_cache import PLANS
from fusionq.codegen import ring_shape
from fusionq.execution import autotune, background_worker, list_record
from fusionq.execution import compile as compile_
from fusionq.execution.background_worker import answer
from fusionq.execution.trials import Trials
from tests.unit.cuda.compile_only import H100, TARGET, compiling_queue
from tests.unit.cuda.test_streams import SIZE, product
from tests.unit.execution.adaptive_lists import Immediate, Times

ROWS = 32
OTHERS = ["megakernel-4k", "megakernel-16k"]


class Products:
    """A list of products, each of which waits for the one before."""

    def __init__(self, queue: fq.FusionQueue) -> None:
        self.queue = queue
        self.a = fq.Buffer(np.ones((64, 512), np.float32))
        self.x, self.y = (fq.Buffer(np.ones(512, np.float32)) for _ in range(2))

    def run(self, **options: Any) -> fq.Fusion:
        with fq.fusion(self.queue, **options) as fusion:
            for source, into in ((self.x, self.y), (self.y, self.x)):
                space = fq.NdRange((ROWS, SIZE), (1, SIZE))
                self.queue.submit(product, space, self.a, source, into)
        return fusion

    def chosen(self) -> str:
        """What is chosen at last."""
        for _ in range(60):
            self.run()
            (record,) = list_record.RECORDS._records.values()
            if record.trials.chosen is not None:
                return record.trials.chosen
        raise AssertionError("nothing is chosen")


@pytest.fixture
def rings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Short lists have rings as well."""
    PLANS.clear()
    monkeypatch.setattr(ring_shape, "LARGEST_STATIC", -1)
    yield
    set_disk_cache()
    PLANS.clear()


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with compiling_queue([]) as (queue, backend):
        backend.queue = queue
        yield backend


@pytest.fixture
def products(backend: Any, times: Times) -> Products:
    times.update({"auto": 2.0, "unfused": 3.0, "megakernel": 1.0}, **dict.fromkeys(OTHERS, 1.5))
    return Products(backend.queue)


def slots(backend: Any) -> list[int]:
    """Of the persistent kernels that were built."""
    bodies = [kernel.body[0] for kernel in backend.kernels]
    return [body.slot_bytes for body in bodies if hasattr(body, "slot_bytes")]


@pytest.mark.usefixtures("rings")
@pytest.mark.parametrize("fastest", ["megakernel", *OTHERS])
def test_slots_of_other_sizes_are_tried_behind_the_kernel_itself(
    fastest: str, background: Immediate, times: Times, products: Products, backend: Any
) -> None:
    times[fastest] = 0.5
    assert products.chosen() == fastest
    assert background.asked[-3:] == ["megakernel", *OTHERS]
    assert slots(backend) == [0, 4 << 10, 16 << 10]
    assert {"megakernel", *OTHERS} <= set(times.ran)
    report = products.run().report
    assert report.strategy == "megakernel"
    ((body,),) = (stage.kernel.body for stage in report.plan.stages)
    sizes = {"megakernel": 0, "megakernel-4k": 4 << 10, "megakernel-16k": 16 << 10}
    assert body.slot_bytes == sizes[fastest]
    choice = str(report.choice)
    with_slots = f" with slots of {body.slot_bytes:,} bytes" if body.slot_bytes else ""
    assert f"auto runs a persistent kernel{with_slots}, by the times of real runs" in choice
    assert all(f"{name} " in choice for name in OTHERS)


@pytest.mark.usefixtures("rings")
def test_the_next_process_has_the_choice_and_its_plan(
    background: Immediate, times: Times, products: Products, backend: Any
) -> None:
    times["megakernel-4k"] = 0.5
    assert products.chosen() == "megakernel-4k"
    (record,) = list_record.RECORDS._records.values()
    record.poll()
    list_record.RECORDS.clear()
    PLANS._plans.clear()  # programs of this backend are not kept
    background.asked.clear()
    another = Products(backend.queue)
    assert another.chosen() == "megakernel-4k" and not background.asked
    (record,) = list_record.RECORDS._records.values()
    assert set(OTHERS) < set(record.trials.contenders)
    ((body,),) = (stage.kernel.body for stage in another.run().report.plan.stages)
    assert body.slot_bytes == 4 << 10


@pytest.mark.usefixtures("rings")
@pytest.mark.parametrize("behind", [1.4, 1.6])
def test_they_are_not_made_where_the_kernel_itself_is_far_behind(
    behind: float, background: Immediate, times: Times, products: Products
) -> None:
    times.update(auto=1.0, megakernel=behind, **{OTHERS[0]: 0.9})
    is_near = behind < 1.5
    assert products.chosen() == (OTHERS[0] if is_near else "auto")
    assert [name for name in background.asked if name in OTHERS] == (OTHERS if is_near else [])


def test_a_later_comparison_that_the_kernel_wins_brings_them() -> None:
    trials = Trials("auto", ["megakernel"])
    trials.ready("megakernel")
    trials.variants["megakernel"] = ("megakernel-4k",)
    for name, seconds in (("auto", 1.0), ("megakernel", 2.0)) * 3:
        if trials.chosen is None and trials.next()[0] == name:
            trials.add(name, seconds)
    assert trials.chosen == "auto" and "megakernel-4k" not in trials.contenders
    trials._change("megakernel")
    assert trials.contenders["megakernel-4k"].state == "awaited"
    assert trials.is_open, "it has not been compared"


def test_lists_without_rings_have_no_more_candidates(
    background: Immediate, times: Times, products: Products
) -> None:
    """Their tables are small, so that there are many workers."""
    assert products.chosen() == "megakernel"
    assert not any(name in background.asked for name in OTHERS)
    assert products.run().report.plan.other_slots == ()


@pytest.mark.usefixtures("rings")
@pytest.mark.parametrize("streams_rows", [True, False])
def test_tuning_measures_them_too(
    streams_rows: bool, products: Products, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.target = replace(TARGET, device=replace(H100, streams_rows=streams_rows))
    by_slots = {0: 3.0, 4 << 10: 1.0, 16 << 10: 2.0}

    def measured(backend: Any, pending: Any, submissions: Any, candidates: Any, fp: Any) -> Any:
        plans = [built.plan for built in candidates]
        seconds = [
            by_slots[plan.stages[0].kernel.body[0].slot_bytes]
            if plan.strategy == "megakernel" else 9.0
            for plan in plans
        ]  # fmt: skip
        return dict(enumerate(seconds)), []

    monkeypatch.setattr(autotune, "_measure", measured)
    plan = products.run(tune=True).report.plan
    found = [(m.strategy, m.slot_bytes, m.seconds) for m in plan.measured]
    if not streams_rows:
        assert found[0] == ("megakernel", 0, 3.0)
        assert [name for name, *_ in found].count("megakernel") == 1
        return
    assert found[:3] == [
        ("megakernel", 4 << 10, 1.0), ("megakernel", 16 << 10, 2.0), ("megakernel", 0, 3.0),
    ]  # fmt: skip
    assert "1000000 µs as a megakernel with slots of 4,096 bytes, the fastest" in str(plan.choice)
    assert plan.stages[0].kernel.body[0].slot_bytes == 4 << 10
    again = products.run().report.plan
    assert again.measured and again.stages == plan.stages, "who does not ask has it, too"


@pytest.mark.usefixtures("rings")
def test_the_worker_makes_them_of_the_plan_that_there_is(
    disk_cache: Path, products: Products, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is built differs in nothing else, and to plan long lists takes seconds."""
    submissions = products.run(strategy="sequence").report.submissions
    monkeypatch.setattr(background_worker, "_backend", lambda device: backend)
    monkeypatch.setattr(background_worker, "measured_target", lambda backend: TARGET)
    made: list[str] = []
    plan = compile_.planned_in_time

    def counted(backend: Any, submissions: Any, options: FusionOptions, *others: Any, **more: Any):  # type: ignore[no-untyped-def]
        made.append(options.strategy)
        return plan(backend, submissions, options, *others, **more)

    monkeypatch.setattr(compile_, "planned_in_time", counted)
    store = disk_store()
    assert store is not None

    def answered(name: str, *beside: str) -> str | None:
        key = keep_request(store, backend, submissions, FusionOptions())
        told: Any = {
            "key": key, "strategy": name, "beside": [*beside],
            "directory": str(store.directory), "max_bytes": 1 << 26,
        }  # fmt: skip
        return answer(told).reason

    assert answered("megakernel", "auto") is None and made == ["megakernel", "auto"]
    made.clear()
    assert answered("megakernel-4k", "auto", "megakernel") is None and not made
    assert slots(backend)[-2:] == [0, 4 << 10]
    kept = [options_of(name) for name in ("megakernel", "megakernel-4k")]
    found = [kept_plans(submissions, options, backend.target) for options in kept]
    assert [plan.stages[0].kernel.body[0].slot_bytes for (plan,) in found] == [0, 4 << 10]


def options_of(name: Any) -> FusionOptions:
    return FusionOptions().of_candidate(name)
