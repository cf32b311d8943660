"""Rows of a persistent kernel's tiles whose conditions are decided beforehand: nothing changes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.kernels.library import Array
from tests.e2e.kernels import flipped
from tests.in_turn import one_in

EXTREMES = (0, 1, -1, 7, 16, 17, 40, 1 << 40, -(1 << 40), (1 << 63) - 1, -(1 << 63))


@fq.kernel
def edges_first(item: fq.Item, a: Array, b: Array, s: np.int64) -> None:
    i = item.get_id(0)
    n = a.shape[0]
    if i == 0:
        b[i] = a[i] * 2
    elif i == n - 1:
        b[i] = a[i] * 3
    elif i >= n - 2 or i < 3:
        b[i] = a[i] * 5
    else:
        b[i] = a[i - 1] + a[i + 1]


@fq.kernel
def clamped(item: fq.Item, a: Array, b: Array, s: np.int64) -> None:
    i = item.get_id(0)
    n = a.shape[0]
    b[i] = a[max(i - 2, 0)] + a[min(i + 3, n - 1)]


@fq.kernel
def clamped_twice(item: fq.Item, a: Array, b: Array, s: np.int64) -> None:
    i = item.get_id(0)
    last = a.shape[0] - 1
    total = a[min(max(i - 2, 0), last)] + 2 * a[max(min(3 + i, last), 0)]
    for k in range(-3, 4, 2):
        total += (k + 5) * a[min(max(i + k, 0), last)]
    b[i] = total + a[max(min(last, 140 - i), 0)]


@fq.kernel
def in_nested_loops(item: fq.Item, a: Array, b: Array, s: np.int64) -> None:
    i = item.get_id(0)
    total = a[i] * 0
    m = i
    for k in range(3, -1, -1):
        for q in range(2):
            m = i - k - 2 * q
            p = k - i + q
            if m >= 0:
                total += a[m] * (k + 1)
            if p < 0:
                total = total * 3 + q
    for k in range(s):
        if i + k < 4:
            total += k
    b[i] = total + m


@fq.kernel
def periodic(item: fq.Item, a: Array, b: Array, s: np.int64) -> None:
    i = item.get_id(0)
    n = a.shape[0]
    b[i] = a[(i - 1) % n] + 2 * a[(i + 1) % n] + a[(199 - i) % n]


@fq.kernel
def chosen(item: fq.Item, a: Array, b: Array, s: np.int64) -> None:
    i = item.get_id(0)
    value = a[i] if i > s else -a[i]
    b[i] = value if not (i < 3) else value + 7


@fq.kernel
def by_scalar(item: fq.Item, a: Array, b: Array, s: np.int64) -> None:
    i = item.get_id(0)
    if i + 1 < s:
        b[i] = a[i] + 1
    if s <= i - 1 and s != 3:
        b[i] = a[i] + 2
    if 20 - i >= s:
        b[i] += 4
    if s < 4 - i:
        b[i] += 8
    if i + s > 3:
        b[i] += 16


@fq.kernel
def named(item: fq.Item, a: Array, b: Array, s: np.int64) -> None:
    i = item.get_id(0)
    last = a.shape[0] - 1
    inside = i != 0 and not (i >= last)
    if inside and a[i] > 0:
        b[i] = a[i - 1] * a[i + 1]
    else:
        b[i] = -1


@fq.kernel
def in_a_loop(item: fq.Item, a: Array, b: Array, s: np.int64) -> None:
    i = item.get_id(0)
    total = a[i] * 0
    for k in range(-2, 3):
        if 0 <= i + k < a.shape[0]:
            if i > 2:
                total += a[i + k]
            else:
                total -= a[i + k]
    b[i] = total


@fq.kernel
def early(item: fq.Item, a: Array, b: Array, s: np.int64) -> None:
    i = item.get_id(0)
    if i < 2:
        return
    if i >= a.shape[0] - 5:
        return
    b[i] = a[i - 2] + a[i + 5]


@fq.kernel
def first_few(item: fq.Item, a: Array, b: Array, s: np.int64) -> None:
    i = item.get_id(0)
    n = a.shape[0]
    total = a[(5 - i) % n] + 2 * a[max(min(n - 1, 3 - i), 0)]
    if i < 4:
        total += a[(i + 4) % n]
    b[i] = total + a[(i + 1) % n] * (i % 8)


@fq.kernel
def window(item: fq.Item, a: Array, b: Array, s: np.int64) -> None:
    i = item.get_id(0)
    total = a[i] * 0
    for k in range(max(i - 3, 0), min(i + 4, a.shape[0])):
        total = total * 3 + a[k] * (k - i + 5)
        if k < 2:
            total += 1
    b[i] = total


@fq.kernel
def windows(item: fq.Item, a: Array, b: Array, s: np.int64) -> None:
    """Backwards, by steps, one in another, left early, and one that begins at no id."""
    i = item.get_id(0)
    n = a.shape[0]
    total = a[i] * 0
    for k in range(min(i + 6, n - 1), max(i - 3, -1), -2):
        if a[k] > 45:
            break
        for m in range(max(i - 1, 0), min(i + 2, n)):
            if m == k:
                continue
            total = total * 3 + a[m] * (k - m)
    for k in range(max(i - 40, 0), i):
        total += k % 3
    for k in range(i + 2, i + 1):
        total += 1000 + k
    for k in range(max(i - 2, 0), 3):
        total += 100 * k
    b[i] = total


@fq.kernel
def window_up_to_a_scalar(item: fq.Item, a: Array, b: Array, s: np.int64) -> None:
    i = item.get_id(0)
    total = a[i] * 0
    for k in range(max(i - 2, s), min(i + 3, 30)):
        total = total * 3 + k
    for k in range(max(i - 2, -9), min(i + 3, s)):
        total = total * 5 + k
    b[i] = total


KERNELS = (
    edges_first, clamped, clamped_twice, periodic, chosen, by_scalar, named, in_a_loop,
    in_nested_loops, early, first_few, window, windows, window_up_to_a_scalar,
)  # fmt: skip


def run(queue: fq.FusionQueue, kernel: Any, n: int, s: int, strategy: Any) -> tuple[Array, str]:
    values = (np.arange(n, dtype=np.int32) * 37 + 11) % 101 - 50
    a, b = fq.Buffer(values.copy()), fq.Buffer(np.zeros(n, np.int32))
    c = fq.Buffer(np.full(n, 1000, np.int32))
    with fq.fusion(queue, strategy=strategy, barriers="none") as fused:
        queue.submit(flipped, n, a, b)
        queue.submit(kernel, n, b, c, np.int64(s))
        queue.submit(flipped, n, c, a)
    assert strategy == "unfused" or n == 1 or fused.report.strategy == "megakernel"
    return a.numpy().copy(), fused.report.device_source


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_rows_in_parts_are_right(
    sycl_queue: fq.FusionQueue, reference: fq.FusionQueue, kernel: Any
) -> None:
    for n in one_in(2, (1, 5, 16, 33, 200), first=KERNELS.index(kernel) % 2):
        found, _ = run(sycl_queue, kernel, n, 5, "megakernel")
        expected, _ = run(reference, kernel, n, 5, "unfused")
        np.testing.assert_array_equal(found, expected)


BY_SCALARS = (chosen, by_scalar, window_up_to_a_scalar)


@pytest.mark.parametrize("kernel", BY_SCALARS, ids=lambda k: k.__name__)
def test_bounds_do_not_wrap(
    sycl_queue: fq.FusionQueue, reference: fq.FusionQueue, kernel: Any
) -> None:
    n = 40
    for s in one_in(2, EXTREMES, first=BY_SCALARS.index(kernel) % 2):
        found, _ = run(sycl_queue, kernel, n, s, "megakernel")
        expected, _ = run(reference, kernel, n, s, "unfused")
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kernel", (*KERNELS[:5], named, early, window), ids=lambda k: k.__name__)
def test_the_inner_part_has_no_conditions(sycl_queue: fq.FusionQueue, kernel: Any) -> None:
    _, source = run(sycl_queue, kernel, 100, 5, "megakernel")
    stages = source.split("static void fq_stage_")[1:]
    stage = next(s for s in stages if f"// {kernel.name}" in s)
    inner = re.split("fq_start < fq_(?:outer|end)", stage)[1]
    text = inner[: inner.index("\n}")]
    assert text.count("if (") == (1 if kernel is named else 0), text
    assert " ? " not in text
    assert "fq_mod" not in text
    assert "fq_minimum" not in text and "fq_pym" not in text


@fq.kernel
def plane(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i == 0 or j == 0 or i > a.shape[0] - 2 or j > a.shape[1] - 2:
        b[i, j] = -a[i, j]
    else:
        b[i, j] = a[i - 1, j] + a[i + 1, j + 1] + a[i, j - 1]


def test_rows_at_the_edge_of_a_plane(sycl_queue: fq.FusionQueue, reference: fq.FusionQueue) -> None:
    for shape in ((1, 1), (1, 40), (40, 1), (2, 17), (33, 47), (70, 16), (5, 200)):
        compare_planes(sycl_queue, reference, shape)


def compare_planes(
    sycl_queue: fq.FusionQueue, reference: fq.FusionQueue, shape: tuple[int, int]
) -> None:
    results = []
    for queue, strategy in ((sycl_queue, "megakernel"), (reference, "unfused")):
        a = fq.Buffer(np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape))
        b = fq.Buffer(np.zeros(shape, np.int32))
        with fq.fusion(queue, strategy=strategy, barriers="none"):
            for _ in range(3):
                queue.submit(plane, shape, a, b)
                a, b = b, a
        results.append((a.numpy().copy(), b.numpy().copy()))
    for found, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(found, expected)
