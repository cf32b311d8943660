"""Loops in rows of a persistent kernel's tiles whose turns several vectors share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.kernels.library import Array
from tests.in_turn import is_whole, one_in

LENGTHS = (1, 31, 64, 65, 128, 143, 300, 1031)
ROWS = 5


@fq.kernel
def turned(item: fq.Item, a: Array, b: Array) -> None:
    """Makes the next stage wait."""
    i, j = item.get_id(0), item.get_id(1)
    b[i, j] = a[a.shape[0] - 1 - i, a.shape[1] - 1 - j] + 1


@fq.kernel
def product(item: fq.Item, x: Array, a: Array, out: Array) -> None:
    i, j = item.get_id(0), item.get_id(1)
    total = a.dtype.type(0)
    for k in range(i, min(i + 3, a.shape[0])):
        total += x[k] * a[k, j]
    out[i, j] = total


@fq.kernel
def linear(item: fq.Item, x: Array, a: Array, out: Array) -> None:
    i, j = item.get_linear_id() // a.shape[1], item.get_linear_id() % a.shape[1]
    total = out[i, j]
    if j > 0:
        for k in range(i, min(i + 3, a.shape[0])):
            total += x[k] * a[k, j] + a[k, j - 1]
    out[i, j] = total


@fq.kernel
def inside_in_place(item: fq.Item, x: Array, a: Array, out: Array) -> None:
    i, j = item.get_id(0), item.get_id(1) + 1
    if j < a.shape[1] - 1:
        total = out[i, j]
        for k in range(a.shape[0] - 1, -1, -2):
            total += a[k, j - 1] - x[k] * a[k, j + 1]
        out[i, j] += total


@fq.kernel
def stored_in_turns(item: fq.Item, x: Array, a: Array, out: Array) -> None:
    i, j = item.get_id(0), item.get_id(1)
    older, newer = a.dtype.type(1), x[i]
    for k in range(a.shape[0]):
        for m in range(k):
            newer += a[m, j] * x[k]
            older = newer - older * 2
        out[i, j] = out[i, j] * newer + older


@fq.kernel
def of_a_row(item: fq.Item, x: Array, a: Array, out: Array) -> None:
    i, j = item.get_id(0), item.get_id(1)
    value = a[i, j]
    if i % 2 == 1:
        first = i * 2
        for k in range(a.shape[0]):
            value = max(value, a[k, j] + x[(first + k) % x.shape[0]])
    else:
        value = value if value > 3 else x[i]
        for k in range(2):
            value -= a[k, j]
    out[i, j] = value


@fq.kernel
def to_the_id(item: fq.Item, x: Array, a: Array, out: Array) -> None:
    i, j = item.get_id(0), item.get_id(1)
    total = a.dtype.type(0)
    for k in range(min(j, a.shape[0])):
        total += a[k, j]
    for k in range(a.shape[0]):
        if a[k, j] > 0:
            total += a[k, j]
    out[i, j] = total


@fq.kernel
def histogram(item: fq.Item, x: Array, a: Array, out: Array) -> None:
    i, j = item.get_id(0), item.get_id(1)
    for k in range(a.shape[0]):
        fq.AtomicRef(out, (i, j % 4)).fetch_add(a[k, j] + x[i])


def run(queue: fq.FusionQueue, kernel: Any, n: int, dtype: Any, strategy: Any) -> tuple[Any, str]:
    values = (np.arange(ROWS * n).reshape(ROWS, n) * 37 + 11) % 19 - 5
    a, b, out = (fq.Buffer(v.astype(dtype)) for v in (values, values[::-1], values * 3))
    x = fq.Buffer((np.arange(ROWS) * 3 + 1).astype(dtype))
    with fq.fusion(queue, strategy=strategy, barriers="none") as fused:
        queue.submit(turned, (ROWS, n), a, b)
        queue.submit(kernel, ROWS * n if kernel is linear else (ROWS, n), x, b, out)
        queue.submit(turned, (ROWS, n), out, a)
    assert strategy == "unfused" or fused.report.strategy == "megakernel"
    return [v.numpy().copy() for v in (a, out)], fused.report.device_source


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("kernel", "dtype", "jams"),
    [
        *((product, dtype, True) for dtype in (np.float32, np.float64, np.int16)),
        *((linear, dtype, True) for dtype in one_in(2, (np.float32, np.float64))),
        *((inside_in_place, dtype, True) for dtype in one_in(2, (np.float64, np.float32))),
        *((stored_in_turns, dtype, True) for dtype in one_in(2, (np.int16, np.float64))),
        (of_a_row, np.float32, True),
        (to_the_id, np.float32, False),
        (histogram, np.int32, False),
    ],
)
def test_each_work_item_does_what_it_does_alone(
    sycl_queue: fq.FusionQueue,
    reference: fq.FusionQueue,
    kernel: Any,
    dtype: Any,
    jams: bool,
) -> None:
    every = kernel is product and dtype is np.float32
    for n in LENGTHS if every or is_whole() else LENGTHS[::3]:
        found, source = run(sycl_queue, kernel, n, dtype, "megakernel")
        expected, _ = run(reference, kernel, n, dtype, "unfused")
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))
    stage = next(s for s in source.split("static void fq_stage_")[1:] if f"// {kernel.name}" in s)
    assert ("Several work-items at once" in stage) == jams
