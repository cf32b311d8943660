"""Stencils on a torus, whose neighbours are remainders: waits of persistent kernels for both ends,
and remainders that are near their dividends."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fusionq as fq

Array = npt.NDArray[Any]


@fq.kernel
def by_extents(item: fq.Item, a: Any, b: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    h, w = a.shape
    b[i, j] = a[(i - 1) % h, j] + 2 * a[(i + 1) % h, j] + 3 * a[i, (j - 1) % w] - a[i, (j + 1) % w]


@fq.kernel
def by_ranges(item: fq.Item, a: Any, b: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    h, w = item.get_range(0), item.get_range(1)
    up, left = (i + h - 1) % h, (j + w - 1) % w
    b[i, j] = a[up, left] + 2 * a[(i + 1) % h, j] + 3 * a[i, (j + 1) % w] - a[i, j]


@fq.kernel
def by_scalars(item: fq.Item, a: Any, b: Any, h: Any, w: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    b[i, j] = a[(i + h - 1) % h, j] + 2 * a[(i + 1) % h, (w + j - 1) % w] - a[i, (j + 1) % w]


@fq.kernel
def far(item: fq.Item, a: Any, b: Any) -> None:
    """Neighbours further away than small sizes are long."""
    i, j = item.get_id(0), item.get_id(1)
    h, w = a.shape
    b[i, j] = a[(i - 5) % h, (j + 70) % w] + 2 * a[(i + 66) % h, (j - 2) % w]


def stepped(name: str, a: Array) -> Array:
    """A step of the kernel by NumPy."""

    def at(up: int, left: int) -> Array:
        """Each element's neighbour so many rows and columns before it."""
        return np.roll(a, (up, left), (0, 1))

    if name == "by_extents":
        return at(1, 0) + 2 * at(-1, 0) + 3 * at(0, 1) - at(0, -1)
    if name == "by_ranges":
        return at(1, 1) + 2 * at(-1, 0) + 3 * at(0, -1) - a
    if name == "by_scalars":
        return at(1, 0) + 2 * at(-1, 1) - at(0, -1)
    return at(5, -70) + 2 * at(-66, 2)


SHAPES = [(1, 1), (1, 7), (2, 3), (3, 64), (5, 131), (65, 4), (131, 5), (200, 33), (257, 3)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kernel", [by_extents, by_ranges, by_scalars, far], ids=lambda k: k.name)
@pytest.mark.parametrize("strategy", ["unfused", "megakernel", "overlap"])
def test_steps_on_a_torus(
    queue: fq.FusionQueue, strategy: Any, kernel: fq.Kernel, shape: tuple[int, int]
) -> None:
    a = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape) % 101
    first, second = fq.Buffer(a), fq.Buffer(shape, np.int32)
    more = shape if kernel is by_scalars else ()
    with fq.fusion(queue, strategy=strategy):
        for _ in range(2):
            queue.submit(kernel, shape, first, second, *more)
            queue.submit(kernel, shape, second, first, *more)
    expected = a
    for _ in range(4):
        expected = stepped(kernel.name, expected)
    np.testing.assert_array_equal(first.numpy(), expected)


def test_a_torus_of_other_sizes_than_those_of_the_plan(queue: fq.FusionQueue) -> None:
    """What a list waits for rests on the scalars, and on which sizes have their values."""
    for shape, more in [
        ((130, 70), (130, 70)), ((131, 70), (131, 70)), ((130, 70), (90, 60)),
        ((90, 60), (90, 60)), ((131, 70), (130, 70)), ((70, 130), (70, 130)),
    ]:  # fmt: skip
        a = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape) % 97
        results = []
        for strategy in ("unfused", "megakernel"):
            first, second = fq.Buffer(a), fq.Buffer(shape, np.int32)
            with fq.fusion(queue, strategy=strategy):
                for _ in range(2):
                    queue.submit(by_scalars, shape, first, second, *more)
                    queue.submit(by_scalars, shape, second, first, *more)
            results.append(first.numpy().copy())
        np.testing.assert_array_equal(results[0], results[1])


@fq.kernel
def remainders(item: fq.Item, x: Any, n: Any, out: Any) -> None:
    i = item.get_id(0)
    out[0, i] = (x[i] + n - 1) % n
    out[1, i] = (i - 150 + n) % n
    out[2, i] = (n - i) % n
    out[3, i] = (x[i] - n) % n
    out[4, i] = (i + x[i] - n - n) % n


@pytest.mark.parametrize("n", [0, 1, -1, 2, 3, -7, 64, 149, 150, 151, -300, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_remainders_of_sums(queue: fq.FusionQueue, dtype: Any, n: int) -> None:
    ids = np.arange(300)
    x = np.r_[ids[:290] - 200, np.array([-1, 1, -2, 2, 0]) * (2**31 - 1), [7] * 5].astype(dtype)
    out = fq.Buffer((5, 300), np.int64)
    queue.submit(remainders, 300, fq.Buffer(x), np.int64(n), out)
    wide = x.astype(np.int64)
    sums = np.stack([wide + n - 1, ids - 150 + n, n - ids, wide - n, ids + wide - 2 * n])
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(out.numpy(), np.remainder(sums, n))
