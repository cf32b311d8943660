"""Rows of a persistent kernel's tiles that no condition bounds, in whole vectors without masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.kernels.library import Array
from tests.e2e.kernels import flipped

LENGTHS = (1, 7, 15, 16, 17, 31, 32, 33, 47, 200)


@fq.kernel
def inside(item: fq.Item, a: Array, b: Array, hits: Array) -> None:
    i = item.get_id(0) + 1
    b[i] = a[i - 1] + 2 * a[i] - a[i + 1]


@fq.kernel
def in_place(item: fq.Item, a: Array, b: Array, hits: Array) -> None:
    i = item.get_id(0) + 1
    b[i] = b[i] * 3 + a[i - 1]


@fq.kernel
def counted(item: fq.Item, a: Array, b: Array, hits: Array) -> None:
    i = item.get_id(0) + 1
    fq.AtomicRef(hits, i).fetch_add(1)
    b[i] = a[i] + 1


@fq.kernel
def where_odd(item: fq.Item, a: Array, b: Array, hits: Array) -> None:
    i = item.get_id(0) + 1
    if a[i] % 2 == 1:
        b[i] = a[i + 1]


@fq.kernel
def by_rows(item: fq.Item, a: Array, b: Array, hits: Array) -> None:
    i = item.get_id(0)
    b[(i // 7) * 7 + i % 7 + 1] = a[i + 2] * (i // 7 + 1)


def run(queue: fq.FusionQueue, kernel: Any, n: int, strategy: Any) -> tuple[list[Array], str]:
    values = (np.arange(n + 2, dtype=np.int32) * 37 + 11) % 101 - 50
    a, b, c, hits = (fq.Buffer(x.copy()) for x in (values, values, values[::-1], 0 * values))
    with fq.fusion(queue, strategy=strategy, barriers="none") as fused:
        queue.submit(flipped, n + 2, a, b)
        queue.submit(kernel, n, b, c, hits)
        queue.submit(flipped, n + 2, c, a)
    assert strategy == "unfused" or fused.report.strategy == "megakernel"
    return [x.numpy().copy() for x in (a, c, hits)], fused.report.device_source


@pytest.mark.slow
@pytest.mark.parametrize("kernel", (inside, in_place, counted, where_odd, by_rows))
def test_each_work_item_is_done_once_or_as_if(
    sycl_queue: fq.FusionQueue, reference: fq.FusionQueue, kernel: Any
) -> None:
    for n in LENGTHS:
        found, source = run(sycl_queue, kernel, n, "megakernel")
        expected, _ = run(reference, kernel, n, "unfused")
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    stage = next(s for s in source.split("static void fq_stage_")[1:] if f"// {kernel.name}" in s)
    assert "fq_inner" in stage
    assert ("fq_turn" in stage) == (kernel not in (in_place, counted))


@fq.kernel
def cube(item: fq.Item, a: Array, b: Array) -> None:
    i, j, k = item.get_id(0) + 1, item.get_id(1) + 1, item.get_id(2) + 1
    b[i, j, k] = a[i - 1, j, k] - a[i + 1, j, k] + a[i, j + 1, k] + a[i, j, k - 1] * a[i, j, k + 1]


@pytest.mark.slow
def test_the_inside_of_a_box(sycl_queue: fq.FusionQueue, reference: fq.FusionQueue) -> None:
    for shape in ((3, 3, 3), (4, 3, 50), (5, 6, 18), (7, 4, 35)):
        results = []
        for queue, strategy in ((sycl_queue, "megakernel"), (reference, "unfused")):
            a = fq.Buffer(np.arange(np.prod(shape), dtype=np.int32).reshape(shape) % 13)
            b = fq.Buffer(np.ones(shape, np.int32))
            with fq.fusion(queue, strategy=strategy, barriers="none"):
                for _ in range(3):
                    queue.submit(cube, tuple(n - 2 for n in shape), a, b)
                    a, b = b, a
            results.append((a.numpy().copy(), b.numpy().copy()))
        for found, expected in zip(*results, strict=True):
            np.testing.assert_array_equal(found, expected)
