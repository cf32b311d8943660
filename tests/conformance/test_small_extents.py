"""Points, pixels and small matrices, whose last extents are constants: one plan serves one of them,
and other extents get their own."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq


@fq.kernel
def squares(item: fq.Item, points, out):
    i = item.get_id(0)
    total = np.float32(0)
    for k in range(points.shape[1]):
        total += points[i, k] * points[i, k]
    out[i] = total + points.shape[1]


@fq.kernel
def moved(item: fq.Item, points, speeds, out):
    i = item.get_id(0)
    for k in range(points.shape[1]):
        points[i, k] += speeds[i, k] * out[i]


@fq.kernel
def multiplied(item: fq.Item, a, b, out):
    i = item.get_id(0)
    for j in range(a.shape[1]):
        for k in range(b.shape[2]):
            total = np.float32(0)
            for m in range(a.shape[2]):
                total += a[i, j, m] * b[i, m, k]
            out[i, j, k] = total


@fq.kernel
def turned(item: fq.Item, pixels, out, other):
    """Stores to pixels, some of which it loads again, and a mean of neighbours."""
    y, x = item.get_id(0), item.get_id(1)
    for c in range(pixels.shape[2]):
        out[y, x, c] = 255 - pixels[y, max(x - 1, 0), c]
    out[y, x, 0] += out[y, x, 1]
    for c in range(1, out.shape[2]):
        other[y, x, c - 1] = out[y, x, c] - out[y, x, 0]


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "float64"])
@pytest.mark.parametrize("strategy", ["unfused", "auto", "overlap", "megakernel"])
def test_pixels(queue, strategy, dtype):
    rng = np.random.default_rng(5)
    for shape in ((6, 40, 3), (5, 33, 4), (6, 40, 2)):
        pixels = rng.integers(0, 100, shape).astype(dtype)
        a, b, c = (fq.Buffer(pixels) for _ in range(3))
        with fq.fusion(queue, strategy=strategy):
            queue.submit(turned, shape[:2], a, b, c)
            queue.submit(turned, shape[:2], b, c, a)

        def step(pixels, other):
            out = (255 - np.concatenate((pixels[:, :1], pixels[:, :-1]), axis=1)).astype(dtype)
            out[..., 0] += out[..., 1]
            other[..., :-1] = out[..., 1:] - out[..., :1]
            return out

        first = step(pixels, pixels.copy())
        last = pixels.copy()
        second = step(first, last)
        np.testing.assert_array_equal(b.numpy(), first)
        np.testing.assert_array_equal(c.numpy(), second)
        np.testing.assert_array_equal(a.numpy(), last)


@pytest.mark.parametrize("strategy", ["unfused", "auto", "megakernel"])
def test_points_of_other_dimensions(queue, strategy):
    rng = np.random.default_rng(3)
    for n, dims in ((70, 3), (70, 4), (33, 3), (5, 2), (3, 3), (70, 7), (64, 1), (70, 3)):
        points, speeds = (rng.integers(-8, 8, (n, dims)).astype(np.float32) for _ in range(2))
        a, b, out = fq.Buffer(points), fq.Buffer(speeds), fq.Buffer(n, np.float32)
        with fq.fusion(queue, strategy=strategy):
            queue.submit(squares, n, a, out)
            queue.submit(moved, n, a, b, out)
            queue.submit(squares, n, a, out)
        sums = (points * points).sum(1) + dims
        points = points + speeds * sums[:, None]
        np.testing.assert_array_equal(a.numpy(), points)
        np.testing.assert_array_equal(out.numpy(), (points * points).sum(1) + dims)


def test_small_matrices_of_other_extents(queue):
    rng = np.random.default_rng(4)
    for n, rows, inner, columns in ((50, 3, 3, 3), (50, 2, 4, 3), (50, 3, 2, 4), (9, 3, 3, 3)):
        a = rng.integers(-8, 8, (n, rows, inner)).astype(np.float32)
        b = rng.integers(-8, 8, (n, inner, columns)).astype(np.float32)
        buffers = fq.Buffer(a), fq.Buffer(b), fq.Buffer((n, rows, columns), np.float32)
        queue.submit(multiplied, n, *buffers)
        np.testing.assert_array_equal(buffers[2].numpy(), a @ b)


def test_views_of_one_buffer_that_are_contiguous_and_not(queue):
    data = np.arange(40 * 3, dtype=np.float32).reshape(40, 3)
    whole, out = fq.Buffer(data), fq.Buffer(20, np.float32)
    for view in (np.s_[:20], np.s_[20:], np.s_[::2], np.s_[::-2]):
        queue.submit(squares, 20, whole[view], out)
        np.testing.assert_array_equal(out.numpy(), (data[view] ** 2).sum(1) + 3)
