"""Multiples of an id beside an id that is subtracted, in launches and persistent kernels: as the
definition has them.

Intel's compiler for CPUs computes the ones from the others, wrongly, in loops inside each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq

SIZES = (17, 128, 1000)


@fq.kernel
def of_three(item: fq.Item, a: Any, b: Any, out: Any) -> None:
    i = item.get_id(0)
    n = a.shape[0]
    out[i] = a[(3 * i) % n] - a[i] + b[(n - 1 - i) // 16]


@fq.kernel
def of_branches(item: fq.Item, a: Any, b: Any, out: Any) -> None:
    i = item.get_id(0)
    n = a.shape[0]
    j = i + i + i
    if a[i] > 0:
        out[i] = a[(j + 2 * i) % n]
    else:
        out[i] = b[(~i + n) // 16]


@fq.kernel
def of_rows(item: fq.Item, a: Any, b: Any, out: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    n = a.shape[1]
    out[i, j] = a[i, 7 * j % n] - a[-1 - i, j] + b[i, (n - j) // 5]


@pytest.mark.parametrize("strategy", ["unfused", "megakernel", "overlap"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_rows(queue: fq.FusionQueue, dtype: str, size: int, strategy: fq.Strategy) -> None:
    i = np.arange(size)
    arrays = [np.random.default_rng(k).integers(-9, 10, size).astype(dtype) for k in range(3)]
    a, b, c = arrays
    for _ in range(3):
        c = a[3 * i % size] - a + b[(size - 1 - i) // 16]
        a, c = np.where(c > 0, c[5 * i % size], b[(size - 1 - i) // 16]), a
    given = [fq.Buffer(array) for array in arrays]
    with fq.fusion(queue, strategy=strategy):
        x, y, z = given
        for _ in range(3):
            queue.submit(of_three, size, x, y, z)
            queue.submit(of_branches, size, z, y, x)
    np.testing.assert_array_equal(given[0].numpy(), a)


@pytest.mark.parametrize("strategy", ["unfused", "megakernel"])
@pytest.mark.parametrize("shape", [(5, 33), (40, 128)])
def test_planes(queue: fq.FusionQueue, shape: tuple[int, int], strategy: fq.Strategy) -> None:
    columns = shape[1]
    i, j = np.indices(shape)
    arrays = [np.random.default_rng(k).integers(-9, 10, shape) for k in range(3)]
    a, b, c = arrays
    for _ in range(4):
        c = a[i, 7 * j % columns] - a[-1 - i, j] + b[i, (columns - j) // 5]
        a, c = c, a
    given = [fq.Buffer(array) for array in arrays]
    with fq.fusion(queue, strategy=strategy):
        x, y, z = given
        for _ in range(4):
            queue.submit(of_rows, shape, x, y, z)
            x, z = z, x
    np.testing.assert_array_equal(x.numpy(), a)


DOUBLED = np.arange(0, 12, 2, dtype=np.uint8)


@fq.kernel
def first_of(item: fq.Item, a: Any, gains: Any) -> None:
    gains[0] = a[a.shape[0] - 1, 0, 0]


@fq.kernel
def through_table(item: fq.Item, a: Any, gains: Any) -> None:
    y, x, k = item.get_id(0), item.get_id(1), item.get_id(2)
    gain = max(gains[1] if k == 0 else gains[0], 1)
    a[y, x, k] = DOUBLED[min(np.int64(a[y, x, k]) * gains[0] // gain, 5)]


@fq.kernel
def quarter_turn(item: fq.Item, a: Any, b: Any) -> None:
    y, x, k = item.get_id(0), item.get_id(1), item.get_id(2)
    b[x, a.shape[0] - 1 - y, k] = a[y, x, k]


@pytest.mark.parametrize("strategy", ["unfused", "megakernel"])
@pytest.mark.parametrize("size", [35, 64])
def test_pixels(queue: fq.FusionQueue, size: int, strategy: fq.Strategy) -> None:
    """The place of an element in rows of three is a multiple of an id, too."""
    values = np.random.default_rng(1).integers(0, 9, (size, size, 3)).astype(np.uint8)
    a, b = fq.Buffer(values), fq.Buffer(np.zeros_like(values))
    gains = fq.Buffer(np.full(2, 3))
    with fq.fusion(queue, strategy=strategy):
        queue.submit(first_of, 1, a, gains)
        queue.submit(through_table, values.shape, a, gains)
        queue.submit(quarter_turn, values.shape, a, b)
    first = int(values[-1, 0, 0])
    divisors = np.array([3, max(first, 1), max(first, 1)])
    expected = DOUBLED[np.minimum(values.astype(np.int64) * first // divisors, 5)]
    np.testing.assert_array_equal(a.numpy(), expected)
    np.testing.assert_array_equal(b.numpy(), np.rot90(expected, -1))
