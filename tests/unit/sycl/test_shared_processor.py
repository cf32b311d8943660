"""Persistent kernels whose workers share one processor."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends import processors
from fusionq.backends.sycl.backend import SyclBackend
from fusionq.execution import fitting_workers

RUNS, STEPS, POINTS = 40, 16, 4096


@fq.kernel
def blur(item: fq.Item, a, b):
    i = item.get_id(0)
    if i > 0 and i < a.shape[0] - 1:
        b[i] = (a[i - 1] + a[i] + a[i + 1]) * np.float32(0.333)
    else:
        b[i] = a[i]


def steps(queue: fq.FusionQueue, strategy: str, a: fq.Buffer, b: fq.Buffer) -> fq.Fusion:
    with fq.fusion(queue, strategy=strategy) as fusion:
        for _ in range(STEPS):
            queue.submit(blur, POINTS, a, b)
            a, b = b, a
    fusion.event.wait()
    return fusion


@pytest.fixture(autouse=True)
def _all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single worker would not have to share."""
    monkeypatch.setattr(
        fitting_workers, "workers_for", lambda kernel, bindings, target: target.resident_workers
    )


@pytest.fixture
def together() -> Iterator[None]:
    """The threads that wait run where one of the runtime's does."""
    bound = processors.bound_to() if os.path.isdir(processors.THREADS) else set()
    waiting = {thread: os.sched_getaffinity(thread) for thread in processors._kept_apart}
    if not (bound and waiting):
        pytest.skip("no thread of the runtime is bound to a processor")
    for thread in waiting:
        os.sched_setaffinity(thread, {min(bound)})
    yield
    for thread, before in waiting.items():
        os.sched_setaffinity(thread, before)


@pytest.fixture
def has_run(device: SyclBackend) -> fq.Buffer:
    """What the steps give, by a persistent kernel for which the runtime has started its threads."""
    start = np.random.default_rng(3).random(POINTS, np.float32)
    a, b = fq.Buffer(start), fq.Buffer(POINTS, np.float32)
    queue = fq.FusionQueue()
    for _ in range(4):
        a.write(start)
        report = steps(queue, "megakernel", a, b).report
    assert report.strategy == "megakernel"
    expected = a.numpy().copy()
    a.write(start)
    steps(queue, "unfused", a, b)
    assert a.numpy().tobytes() == expected.tobytes()
    a.write(start)
    return a


def test_results_are_the_same(has_run: fq.Buffer, together: None) -> None:
    start = has_run.numpy().copy()
    queue, b = fq.FusionQueue(), fq.Buffer(POINTS, np.float32)
    steps(queue, "unfused", has_run, b)
    expected = has_run.numpy().tobytes()
    for _ in range(RUNS):
        has_run.write(start)
        steps(queue, "megakernel", has_run, b)
        assert has_run.numpy().tobytes() == expected


def test_kernels_give_way_where_the_driver_lets_them(device: SyclBackend) -> None:
    """Intel's on Linux; the target says so, and programs are kept by it."""
    from fusionq.codegen.kernel_source import generate
    from fusionq.codegen.opencl import OPENCL_C
    from tests.unit.megakernel.cases import CASES
    from tests.unit.megakernel.plans import persistent

    kernel = persistent(*next(iter(CASES.values()))(24)).stage.kernel
    text = generate(kernel, "strict", device.target, OPENCL_C).text
    assert ("sched_yield();" in text) == device.info.yields_processor
    assert device.build(kernel, "strict").kernel is kernel
