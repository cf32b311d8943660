"""Rows of a persistent kernel's tiles that are cut where quotients of ids change, and where a part
of the work-items ends: nothing changes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.kernels.library import Array
from tests.e2e.kernels import flipped
from tests.in_turn import one_in

DIVISORS = (0, 1, -1, 7, 8, -8, 9, 16, 17, 40, 64, 1 << 40, (1 << 63) - 1, -(1 << 63))
ADDED = (0, -5, 3, 1 << 61, -(1 << 61), (1 << 63) - 20, -(1 << 63))


@fq.kernel
def places(item: fq.Item, a: Array, b: Array, m: np.int64, s: np.int64) -> None:
    n = item.get_id(0)
    i = n // m
    j = n % m
    b[n] = a[n] + i * 1_000_003 + j * 7
    if j > 0 and j + 1 < m and i != 1:
        b[n] += 5 - j
    if 12 - j > s:
        b[n] -= i * j


@fq.kernel
def places_behind(item: fq.Item, a: Array, b: Array, m: np.int64, s: np.int64) -> None:
    n = item.get_id(0)
    i = (n + s) // m
    j = (n + s) % m
    b[n] = a[n] + i * 1_000_003 + ((n + s) % m) * 7
    if j > 2 and i > 0 and j < m - 3:
        b[n] += j


@fq.kernel
def two_shapes(item: fq.Item, a: Array, b: Array, m: np.int64, s: np.int64) -> None:
    n = item.get_id(0)
    i = n // m
    j = n % m
    p = n // (m * 3)
    q = n // s % 5
    total = np.int64(0)
    for k in range(-1, 2):
        if j + k >= 0 and j + k < m:
            total += (j + k) * (k + 2)
    b[n] = a[n] * 3 + i + 31 * j + 57 * p + 91 * q + n % s + total


@fq.kernel
def part(item: fq.Item, a: Array, b: Array, c: Array) -> None:
    """For less than the others' range: joined with them where nothing is in the way."""
    n = item.get_id(0)
    c[n] = a[n] * 2


@fq.kernel
def rest(item: fq.Item, a: Array, b: Array, c: Array) -> None:
    n = item.get_id(0)
    if n > 0 and n < a.shape[0] - 1:
        b[n] = a[n - 1] - a[n + 1]


def run(queue: fq.FusionQueue, n: int, m: int, s: int, strategy: Any) -> tuple[Any, str]:
    a = fq.Buffer((np.arange(n) * 37 + 11) % 101 - 50)
    b, c, d = (fq.Buffer(np.full(n, k)) for k in range(3))
    with fq.fusion(queue, strategy=strategy, barriers="none") as fused:
        for kernel in (places, places_behind, two_shapes):
            queue.submit(flipped, n, a, b)
            queue.submit(kernel, n, b, c, np.int64(m), np.int64(s))
            queue.submit(flipped, n, c, a)
        queue.submit(part, max(n - 17, 1), a, b, c)
        queue.submit(rest, n, a, d, c)
        queue.submit(part, (n + 1) // 2, d, b, b)
        queue.submit(flipped, n, d, a)
    assert strategy == "unfused" or n == 1 or fused.report.strategy == "megakernel"
    source = fused.report.device_source if strategy == "megakernel" else ""
    return [array.numpy().copy() for array in (a, b, c, d)], source


@pytest.mark.slow
def test_quotients_of_ids_are_right(sycl_queue: fq.FusionQueue) -> None:
    reference = fq.FusionQueue("reference")
    with np.errstate(all="ignore"):
        for n, m, s in ((333, 17, 3), (40, 8, -5), (333, 0, 1 << 61)):
            compare(sycl_queue, reference, n, m, s)


@pytest.mark.slow
def test_quotients_by_extreme_divisors_are_right(sycl_queue: fq.FusionQueue) -> None:
    reference = fq.FusionQueue("reference")
    with np.errstate(all="ignore"):
        for k, m in one_in(2, enumerate(DIVISORS)):
            compare(sycl_queue, reference, (333, 40, 1)[k % 3], m, ADDED[k % 5])
        for s in one_in(2, ADDED):
            compare(sycl_queue, reference, 50, 17, s)


def compare(queue: fq.FusionQueue, reference: fq.FusionQueue, n: int, m: int, s: int) -> None:
    found, _ = run(queue, n, m, s, "megakernel")
    expected, _ = run(reference, n, m, s, "unfused")
    for number, arrays in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_array_equal(*arrays, err_msg=f"{n, m, s}, array {number}")


@pytest.mark.slow
def test_segments_divide_for_no_work_item(sycl_queue: fq.FusionQueue) -> None:
    _, source = run(sycl_queue, 333, 40, 3, "megakernel")
    stages = [s for s in source.split("static void fq_stage_")[1:] if "segment_first" in s]
    assert len(stages) >= 4
    for stage in stages:
        cut = stage.split("} else {")[0]
        assert not re.search(r"fq_(floordiv|mod)_i64\([^;,]*fq_id", cut), stage


@fq.kernel
def around(item: fq.Item, a: Array, b: Array) -> None:
    n = item.get_linear_id()
    i = n // a.shape[1]
    j = n % a.shape[1]
    if i > 0 and i < a.shape[0] - 1 and j > 0 and j < a.shape[1] - 1:
        b[i, j] = a[i - 1, j] + 2 * a[i + 1, j] + 3 * a[i, j - 1] + 5 * a[i, j + 1]
    else:
        b[i, j] = -a[i, j]


@pytest.mark.parametrize("linear", (True, False))
def test_rows_of_a_plane_by_linear_ids(sycl_queue: fq.FusionQueue, linear: bool) -> None:
    reference = fq.FusionQueue("reference")
    for shape in ((40, 1), (9, 130)):
        results = []
        for queue, strategy in ((sycl_queue, "megakernel"), (reference, "unfused")):
            start = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
            a, b = fq.Buffer(start), fq.Buffer(np.zeros(shape, np.int32))
            with fq.fusion(queue, strategy=strategy, barriers="none"):
                for _ in range(3):
                    queue.submit(around, shape[0] * shape[1] if linear else shape, a, b)
                    a, b = b, a
            results.append((a.numpy().copy(), b.numpy().copy()))
        for found, expected in zip(*results, strict=True):
            np.testing.assert_array_equal(found, expected)
