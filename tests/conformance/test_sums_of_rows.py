"""Launches of few work-items that go along rows, which begin anywhere in memory: the bits of the
reference backend."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq

pytestmark = pytest.mark.usefixtures("printed")

ROWS = 37


@fq.kernel
def sums(item: fq.Item, a, out):
    i = item.get_id(0)
    own = a.dtype.type(0)
    for j in range(a.shape[1]):
        own += a[i, j]
    out[i] = own


@fq.kernel
def products(item: fq.Item, a, x, out):
    """From the second element on, of what the work-item itself has stored before."""
    i = item.get_id(0)
    a[i, 1] = a[i, 0]
    a[i, a.shape[1] - 1] = a[i, 0]
    own = a.dtype.type(0)
    for j in range(1, a.shape[1]):
        own += a[i, j] * x[j]
    out[i] = own


@fq.kernel
def every_other(item: fq.Item, a, x, out):
    i = item.get_id(0)
    own = a.dtype.type(0)
    for j in range(0, a.shape[1], 2):
        own += a[i, j] - x[j]
    out[i] += own


def run(queue: fq.FusionQueue, dtype: str, columns: int, offset: int, strategy: str) -> list:
    rng = np.random.default_rng(columns)
    whole = fq.Buffer(rng.integers(0, 9, (ROWS, columns + offset)).astype(dtype))
    vector = fq.Buffer(rng.integers(0, 9, columns + offset).astype(dtype))
    flat = fq.Buffer(rng.integers(0, 9, (ROWS, columns)).astype(dtype))
    out = [fq.Buffer(np.zeros(ROWS, dtype)) for _ in range(4)]
    a, x = whole[:, offset:], vector[offset:]
    with fq.fusion(queue, strategy=strategy) as f:
        queue.submit(sums, ROWS, a, out[0])
        queue.submit(products, ROWS, a, x, out[1])
        queue.submit(products, ROWS, flat, x, out[2])
        queue.submit(every_other, ROWS, a, x, out[2])
        queue.submit(sums, ROWS, flat, out[3])
    f.event.wait()
    return [np.array(buffer.numpy()) for buffer in (*out, whole, flat)]


@pytest.mark.parametrize("dtype", ("float32", "float64", "int64", "uint32", "int16"))
@pytest.mark.parametrize("columns, offset", ((3, 0), (128, 0), (200, 1), (261, 2), (264, 4)))
def test_bits_are_those_of_the_reference_backend(
    queue: fq.FusionQueue, dtype: str, columns: int, offset: int
) -> None:
    with fq.FusionQueue("reference") as reference:
        expected = run(reference, dtype, columns, offset, "unfused")
    for strategy in ("unfused", "sequence", "fused"):
        found = run(queue, dtype, columns, offset, strategy)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))
