"""Launches of few work-items, whose loops load for many iterations at once, compute what plain
submits do."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.code_limits import CODE_LIMITS

AT_ONCE = CODE_LIMITS.few_times_together * CODE_LIMITS.iterations_together
LENGTHS = (0, 1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 3 * AT_ONCE, 5 * AT_ONCE + 11, 4099)


@fq.kernel
def sums(item: fq.Item, n, a, x, out):
    i = item.get_id(0)
    own = a.dtype.type(0)
    for k in range(i % 3, n, 1 + i % 2):
        own += a[i, k] * x[k]
    out[i, 0] = own


@fq.kernel
def running(item: fq.Item, n, a, x, out):
    """Stores and guards."""
    i = item.get_id(0)
    own = a.dtype.type(1)
    if i % 5 != 1:
        for k in range(n):
            out[i, k] = own
            own = max(own - a[i, k], x[k])


@fq.kernel
def eliminated(item: fq.Item, n, a, x, out):
    """A recurrence, and its substitution from the end on."""
    i = item.get_id(0)
    for k in range(1, n):
        out[i, k] = (a[i, k] - out[i, k - 1]) / (x[k] * x[k] + a.dtype.type(1))
    for k in range(1, n):
        j = n - 1 - k
        out[i, j] = out[i, j + 1] * x[j] + a[i, j]


@fq.kernel
def accumulated(item: fq.Item, n, a, x, out):
    """In memory."""
    i = item.get_id(0)
    for k in range(n):
        out[i, 0] = out[i, 0] * x[k] + a[i, k]


@fq.kernel
def backwards(item: fq.Item, n, a, x, out):
    i = item.get_id(0)
    own = a.dtype.type(1)
    for k in range(n - 1, -1, -2):
        own = own + a[i, k] * x[k]
    out[i, 0] = own


@fq.kernel
def until_large(item: fq.Item, n, a, x, out):
    i = item.get_id(0)
    own = a.dtype.type(0)
    for k in range(n):
        if own > a.dtype.type(9):
            break
        own += a[i, k] * a[i, k]
    out[i, 0] = own


@fq.kernel
def pairs(item: fq.Item, n, a, x, out):
    """A loop in a loop."""
    i = item.get_id(0)
    for j in range(min(i, 3), 4):
        own = a.dtype.type(0)
        for k in range(n):
            own += a[i, k] * a[j, k]
        out[i, j] = own


@pytest.mark.parametrize(
    "kernel", [sums, running, eliminated, accumulated, backwards, until_large, pairs]
)
@pytest.mark.parametrize("items", [4, 33, 1000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_have_the_same_bits(queue, kernel, items: int, dtype: str) -> None:
    rng = np.random.default_rng(items)
    for n in LENGTHS:
        a, x = (rng.standard_normal(shape).astype(dtype) for shape in ((items, n), n))
        found = [fq.Buffer(np.ones((items, max(n, 4)), dtype)) for _ in range(2)]
        on_device = fq.Buffer(a), fq.Buffer(x)
        queue.submit(kernel, items, n, *on_device, found[0])
        with fq.fusion(queue, strategy="fused"):
            queue.submit(kernel, items, n, *on_device, found[1])
        queue.wait()
        expected = found[0].numpy()
        np.testing.assert_array_equal(found[1].numpy(), expected)
        if items * n < 10_000:
            out = np.ones_like(expected)
            with fq.FusionQueue("reference") as reference:
                reference.submit(kernel, items, n, a, x, out)
            np.testing.assert_array_equal(expected, out)


@fq.kernel
def products_of_rows(item: fq.Item, a, b, out):
    """Of all pairs, more work-items than few: neighbours go along rows of their own."""
    i = item.get_id(0) // out.shape[1]
    j = item.get_id(0) % out.shape[1]
    total = a.dtype.type(0)
    for k in range(a.shape[1]):
        total += a[i, k] * b[j, k]
    out[i, j] = total


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("first", [0, 1])
def test_rows_of_many_work_items(queue, dtype: str, first: int) -> None:
    """That begin at multiples of 16 bytes, and that do not."""
    rng = np.random.default_rng(7)
    for columns in (5, 8, 16, 17, 40, 300):
        a, b = (fq.Buffer((8 * rng.random((200, columns + 1))).astype(dtype)) for _ in range(2))
        rows = [x[:, first : first + columns] for x in (a, b)]
        found = [fq.Buffer(np.zeros((200, 200), dtype)) for _ in range(2)]
        queue.submit(products_of_rows, 40_000, *rows, found[0])
        with fq.fusion(queue, strategy="sequence"):
            queue.submit(products_of_rows, 40_000, *rows, found[1])
        queue.wait()
        np.testing.assert_array_equal(found[1].numpy(), found[0].numpy())
