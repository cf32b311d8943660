"""Pairs of neighbouring elements of 64 bits, as complex numbers are, of all sizes."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq

SIZES = (0, 1, 15, 16, 33, 1000)


@fq.kernel
def rotated(item: fq.Item, a, b, c):
    i = item.get_id(0)
    c[i] = a[i] * b[i] + c[i]


@fq.kernel
def in_place(item: fq.Item, a):
    """Turns each pair over."""
    i = item.get_id(0)
    first, second = a[2 * i], a[2 * i + 1]
    a[2 * i] = second
    a[2 * i + 1] = first


@fq.kernel
def merged(item: fq.Item, a, b, n):
    i = item.get_id(0)
    if i < n:
        b[i] = a[2 * i + 1] - a[2 * i]


@fq.kernel
def pooled(item: fq.Item, a, b):
    y, x = item.get_id(0), item.get_id(1)
    most = a[2 * y, 2 * x]
    for i in range(2):
        for j in range(2):
            most = max(most, a[2 * y + i, 2 * x + j])
    b[y, x] = most


@pytest.mark.parametrize("strategy", ["unfused", "fused", "megakernel"])
def test_complex_numbers(queue: fq.FusionQueue, strategy: fq.Strategy) -> None:
    for n in SIZES:
        rng = np.random.default_rng(n)
        parts = rng.integers(-9, 9, (3, n, 2)).astype(np.float64)
        a, b, c = (p[:, 0] + 1j * p[:, 1] for p in parts)
        given = [fq.Buffer(x) for x in (a, b, c)]
        with fq.fusion(queue, strategy=strategy):
            queue.submit(rotated, n, *given)
            queue.submit(rotated, n, given[2], given[1], given[0])
        c = a * b + c
        np.testing.assert_array_equal(given[2].numpy(), c)
        np.testing.assert_array_equal(given[0].numpy(), c * b + a)


@pytest.mark.parametrize("strategy", ["unfused", "fused", "megakernel"])
@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64"])
def test_flat_pairs(queue: fq.FusionQueue, dtype: str, strategy: fq.Strategy) -> None:
    for n in SIZES:
        values = np.arange(2 * n + 1).astype(dtype) * 3
        if n and dtype == "float64":
            values[:3] = np.nan, -0.0, np.inf
        a, b = fq.Buffer(values), fq.Buffer(np.full(n, 7, dtype))
        few = n - n // 3
        with fq.fusion(queue, strategy=strategy):
            queue.submit(in_place, n, a)
            queue.submit(merged, n, a, b, few)
        pairs = values[: 2 * n].reshape(n, 2)[:, ::-1]
        expected = np.concatenate([pairs.ravel(), values[2 * n :]])
        assert a.numpy().tobytes() == expected.tobytes()
        expected = np.full(n, 7, dtype)
        expected[:few] = (pairs[:, 1] - pairs[:, 0])[:few]
        np.testing.assert_array_equal(b.numpy(), expected)


@pytest.mark.parametrize("shape", [(1, 1), (3, 17), (20, 33)])
def test_windows_and_views(queue: fq.FusionQueue, shape: tuple[int, int]) -> None:
    rows, columns = shape
    values = np.random.default_rng(3).standard_normal((2 * rows, 2 * columns))
    b = fq.Buffer(shape, np.float64)
    queue.submit(pooled, shape, fq.Buffer(values), b)
    expected = values.reshape(rows, 2, columns, 2).max((1, 3))
    np.testing.assert_array_equal(b.numpy(), expected)


@fq.kernel
def squares(item: fq.Item, a, b, s):
    i = item.get_id(0)
    s += a[i].real * b[i].real + a[i].imag * b[i].imag


@fq.kernel
def beside_barriers(item: fq.NdItem, a, t: fq.LocalAccessor, b):
    i, own = item.get_global_id(0), item.get_local_id(0)
    t[own] = a[2 * i] - a[2 * i + 1]
    fq.group_barrier(item.get_group())
    if i < b.shape[0]:
        b[i] = t[item.get_local_range(0) - 1 - own] + a[2 * i] * a[2 * i + 1]


@pytest.mark.usefixtures("group_functions")
@pytest.mark.parametrize("strategy", ["unfused", "megakernel"])
@pytest.mark.parametrize("n", [1, 255, 256, 600, 1024])
def test_reductions(queue: fq.FusionQueue, n: int, strategy: fq.Strategy) -> None:
    parts = np.random.default_rng(n).integers(-9, 9, (2, n, 2)).astype(np.float64)
    a, b = (p[:, 0] + 1j * p[:, 1] for p in parts)
    found = fq.Buffer(1, np.float64)
    with fq.fusion(queue, strategy=strategy):
        queue.submit(
            squares, n, fq.Buffer(a), fq.Buffer(b), fq.Reduction(found, "add", initialize=True)
        )
    assert found.numpy()[0] == (parts[0] * parts[1]).sum()


@pytest.mark.usefixtures("group_functions")
@pytest.mark.parametrize("size", [7, 16, 64])
def test_beside_barriers(queue: fq.FusionQueue, size: int) -> None:
    values = np.arange(6.0 * size)
    b = fq.Buffer(3 * size - 2, np.float64)
    tile = fq.LocalAccessor(size, np.float64)
    queue.submit(beside_barriers, fq.NdRange(3 * size, size), fq.Buffer(values), tile, b)
    first, second = values.reshape(-1, 2).T
    turned = (first - second).reshape(3, size)[:, ::-1].ravel()
    np.testing.assert_array_equal(b.numpy(), (turned + first * second)[: 3 * size - 2])
