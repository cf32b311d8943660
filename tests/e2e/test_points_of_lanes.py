"""Kernels over the parts of points on CPUs, whose lanes do points: nothing changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.kernels.library import Array

SHAPES = ((1, 32, 3), (5, 33, 2), (3, 64, 4), (7, 100, 3), (2, 41, 1), (3, 40, 5), (4, 8, 3))


@pytest.fixture
def queue(sycl_queue: fq.FusionQueue) -> Iterator[fq.FusionQueue]:
    """A queue of a CPU with lanes."""
    if not sycl_queue._state.launcher.backend.target.device.jams_rows:
        pytest.skip("work-items are no lanes of vectors")
    yield sycl_queue


def run(
    queue: fq.FusionQueue, steps: Any, arrays: Any, strategy: Any = "auto", **more: Any
) -> fq.Report:
    """The report of a list of ``steps``, each a kernel, a range and the numbers of its arrays: they
    become what the reference backend makes of them, bit for bit."""
    results = []
    for own in (fq.FusionQueue("reference"), queue):
        buffers = [fq.Buffer(array.copy()) for array in arrays]
        way = {"strategy": strategy, **more} if own is queue else {"strategy": "unfused"}
        with fq.fusion(own, **way) as f:
            for kernel, items, *which in steps:
                own.submit(kernel, items, *(buffers[k] for k in which))
        results.append([buffer.numpy().copy() for buffer in buffers])
        report = f.report
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    return report


def are_points(report: fq.Report) -> bool:
    return all(stage.extents for stage in report.plan.stages)


def numbers(shape: tuple[int, ...], dtype: str = "float32") -> Array:
    return np.random.default_rng(shape[0]).integers(0, 99, shape).astype(dtype)


@fq.kernel
def scaled(item: fq.Item, a: Array, b: Array) -> None:
    y, x, c = item.get_id(0), item.get_id(1), item.get_id(2)
    b[y, x, c] = a[y, x, c] * 2 + b[y, x, c]


@fq.kernel
def guarded(item: fq.Item, a: Array, b: Array) -> None:
    y, x, c = item.get_id(0), item.get_id(1), item.get_id(2)
    if y < 1 or y >= a.shape[0] - 1:
        return
    if x < 1 or x >= a.shape[1] - 1:
        return
    b[y, x, c] = a[y, x - 1, c] + a[y, x + 1, c] + a[y - 1, x, c] - a[y + 1, x, c]


@fq.kernel
def by_memory(item: fq.Item, a: Array, b: Array) -> None:
    y, x, c = item.get_id(0), item.get_id(1), item.get_id(2)
    value = a[y, x, c]
    if value > 50:
        b[y, x, c] = value // 2
    else:
        b[y, x, c] = value + a[y, x, 0] + c


@fq.kernel
def by_part(item: fq.Item, a: Array, b: Array) -> None:
    y, x, c = item.get_id(0), item.get_id(1), item.get_id(2)
    k = a.shape[2] - 1 - c
    if c > 0:
        b[y, x, k] = a[y, x, c] * item.get_range(2)
    if x + c > 3:
        b[y, x, k] += 1


@fq.kernel
def clamped(item: fq.Item, a: Array, b: Array) -> None:
    y, x, c = item.get_id(0), item.get_id(1), item.get_id(2)
    b[y, x, c] = a[y, max(x - 1, 0), c] + a[y, min(x + 1, a.shape[1] - 1), c]


@fq.kernel
def summed(item: fq.Item, a: Array, b: Array) -> None:
    y, x, c = item.get_id(0), item.get_id(1), item.get_id(2)
    for k in range(a.shape[2]):
        b[y, x, c] += a[y, x, k]


POINTS = (scaled, guarded, by_memory)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_kernels_over_parts(queue: fq.FusionQueue, dtype: str) -> None:
    for kernel in (*POINTS, by_part):
        for shape in SHAPES:
            report = run(queue, [(kernel, shape, 0, 1)], [numbers(shape, dtype)] * 2)
            may_be = kernel in POINTS and shape[1] >= 32 and 1 < shape[2] <= 4
            assert are_points(report) == may_be


def test_what_is_left_alone(queue: fq.FusionQueue) -> None:
    shape = 5, 40, 3
    for kernel in POINTS:  # no vectors are made of parts of eight bytes
        assert not are_points(run(queue, [(kernel, shape, 0, 1)], [numbers(shape, "float64")] * 2))
    for kernel in (clamped, summed, by_part):
        assert not are_points(run(queue, [(kernel, shape, 0, 1)], [numbers(shape)] * 2))
    steps = [(scaled, shape, 0, 1), (clamped, shape, 1, 0)]
    for strategy in ("fused", "unfused"):
        assert not are_points(run(queue, steps, [numbers(shape)] * 2, strategy))


def test_one_dimension_of_points(queue: fq.FusionQueue) -> None:
    for n in (31, 32, 100, 1000):
        report = run(queue, [(moved, (n, 3), 0, 1)], [numbers((n, 3)), numbers((n, 3))])
        assert are_points(report) == (n >= 32)


@fq.kernel
def moved(item: fq.Item, a: Array, b: Array) -> None:
    i, k = item.get_id(0), item.get_id(1)
    b[i, k] += a[i, k] * 3 + item.get_linear_id()


@fq.kernel
def gray(item: fq.Item, a: Array, g: Array) -> None:
    y, x = item.get_id(0), item.get_id(1)
    g[y, x] = (a[y, x, 0] * 2 + a[y, x, 1] * 5 + a[y, x, 2]) // 8


STRATEGIES = ("auto", "fused", "unfused", "megakernel", "overlap")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_lists(queue: fq.FusionQueue, strategy: Any) -> None:
    for shape in ((1, 32, 3), (9, 47, 3), (4, 100, 3)):
        arrays = [numbers(shape), numbers(shape), numbers(shape[:2])]
        steps = [(scaled, shape, 0, 1), (guarded, shape, 1, 0), (by_memory, shape, 0, 1)]
        run(queue, steps, arrays, strategy)
        steps = [(scaled, shape, 0, 1), (by_memory, shape, 1, 0), (gray, shape[:2], 0, 2)]
        report = run(queue, steps, arrays, strategy)
        if strategy == "fused":
            assert len(report.stages) == 1


def test_no_work_items(queue: fq.FusionQueue) -> None:
    for shape in ((0, 40, 3), (3, 0, 3), (3, 40, 0)):
        run(queue, [(scaled, shape, 0, 1)], [np.zeros(shape, "float32")] * 2)


def test_a_plan_serves_points_of_as_many_parts(queue: fq.FusionQueue) -> None:
    for shape in ((5, 40, 3), (6, 50, 3), (6, 50, 4), (6, 31, 4), (6, 50, 2), (50, 3, 3)):
        report = run(queue, [(scaled, shape, 0, 1)], [numbers(shape)] * 2)
        assert are_points(report) == (shape[1] >= 32)


def test_views(queue: fq.FusionQueue) -> None:
    whole = numbers((20, 80, 6))
    views = (
        (whole[:, :, :3], whole[:, :, 3:]), (whole[::2, ::2, ::2], whole[1::2, 1::2, 1::2]),
        (whole[:10, :, :3], whole[10:, :, :3]), (whole[:, ::-1, :3], whole[:, :, 3:]),
    )  # fmt: skip
    for a, b in views:
        results, before = [], whole.copy()
        for own in (fq.FusionQueue("reference"), queue):
            whole[...] = before
            own.submit(scaled, fq.Range(*a.shape), a, b).wait()
            results.append(whole.copy())
        np.testing.assert_array_equal(*results)
