"""Elements from the other end of an array, of a row, or of a work-group."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.in_turn import one_in

SIZES = (0, 1, 15, 16, 17, 33, 1000)


@fq.kernel
def loaded(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[a.shape[0] - 1 - i] + a[-1 - i] * a[i]


@fq.kernel
def stored(item: fq.Item, a, b, n):
    i = item.get_id(0)
    b[n - (i + 1)] = a[i] + b[n - 1 - i]


@fq.kernel
def swapped(item: fq.Item, a):
    """Both ends, of one array."""
    i = item.get_id(0)
    other = a.shape[0] - 1 - i
    first, last = a[i], a[other]
    a[i] = last
    a[other] = first


@fq.kernel
def filtered(item: fq.Item, a, b):
    i = item.get_id(0)
    s = a.dtype.type(0)
    for k in range(5):
        j = a.shape[0] - 1 - i - k
        if j >= 0:
            s += a[j]
    b[i] = s


@pytest.mark.parametrize("strategy", ["unfused", "fused", "megakernel"])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "float64"])
def test_lines(queue: fq.FusionQueue, dtype: str, strategy: fq.Strategy) -> None:
    for n in one_in(2, SIZES):
        a, b = np.random.default_rng(n).integers(0, 9, (2, n)).astype(dtype)
        first, second = fq.Buffer(a), fq.Buffer(b)
        with fq.fusion(queue, strategy=strategy):
            queue.submit(loaded, n, first, second)
            queue.submit(stored, n, second, first, n)
            queue.submit(swapped, n // 2, second)
            queue.submit(filtered, n, second, first)
            queue.submit(swapped, n // 2, first)
        b = (a[::-1] + a[::-1] * a)[::-1]  # turned over by swapping
        expected = np.zeros_like(a)
        for k in range(min(5, n)):
            expected[: n - k] += b[: n - k][::-1]
        np.testing.assert_array_equal(second.numpy(), b)
        np.testing.assert_array_equal(first.numpy(), expected[::-1])


@fq.kernel
def turned(item: fq.Item, a, b):
    """A half turn, with neighbours inside."""
    y, x = item.get_id(0), item.get_id(1)
    h, w = a.shape[0], a.shape[1]
    if x > 0 and x < w - 1:
        b[h - 1 - y, w - 1 - x] = a[y, x - 1] + a[y, w - 1 - x]
    else:
        b[h - 1 - y, w - 1 - x] = a[y, x]


@fq.kernel
def turned_flat(item: fq.Item, a, b, w):
    i = item.get_id(0)
    b[i // w * w + w - 1 - i % w] = a[i // w, i % w]


@pytest.mark.parametrize("strategy", ["unfused", "megakernel"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 40), (5, 257), (2, 16)])
def test_planes(queue: fq.FusionQueue, shape: tuple[int, int], strategy: fq.Strategy) -> None:
    a = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
    first, second, third = fq.Buffer(a), fq.Buffer(shape, np.int32), fq.Buffer(a.size, np.int32)
    with fq.fusion(queue, strategy=strategy):
        queue.submit(turned, shape, first, second)
        queue.submit(turned_flat, a.size, second, third, shape[1])
    expected = a.copy()
    expected[:, 1:-1] = a[:, :-2] + a[:, ::-1][:, 1:-1]
    np.testing.assert_array_equal(second.numpy(), expected[::-1, ::-1])
    np.testing.assert_array_equal(third.numpy().reshape(shape), expected[::-1])


@fq.kernel
def turned_in_groups(item: fq.NdItem, a, s: fq.LocalAccessor, b):
    own, size = item.get_local_id(0), item.get_local_range(0)
    s[size - 1 - own] = a[item.get_global_id(0)]
    fq.group_barrier(item.get_group())
    b[item.get_global_range(0) - 1 - item.get_global_id(0)] = s[own]


@pytest.mark.usefixtures("group_functions")
@pytest.mark.parametrize("size", [1, 16, 20, 33])
def test_work_groups(queue: fq.FusionQueue, size: int) -> None:
    a = np.arange(3 * size, dtype=np.float32)
    found = fq.Buffer(a.size, np.float32)
    tile = fq.LocalAccessor(size, np.float32)
    queue.submit(turned_in_groups, fq.NdRange(a.size, size), fq.Buffer(a), tile, found)
    np.testing.assert_array_equal(found.numpy(), a.reshape(3, size)[::-1].ravel())
