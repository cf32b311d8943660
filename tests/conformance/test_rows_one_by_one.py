"""Stages of persistent kernels whose work-items read rows of their own, or as many elements as
memory says: one lane of a worker does them, and the bits are those of the reference backend."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.in_turn import is_whole, one_in

pytestmark = pytest.mark.usefixtures("printed")


@fq.kernel
def sums(item: fq.Item, a, x, out):
    i = item.get_id(0)
    own = a.dtype.type(0)
    for k in range(a.shape[1]):
        own += a[i, k] * x[k]
    out[i] = own


@fq.kernel
def nearest(item: fq.Item, a, x, out):
    """The first of three rows that is nearest."""
    i = item.get_id(0)
    least = a.dtype.type(0)
    at = 0
    for j in range(3):
        far = a.dtype.type(0)
        for k in range(a.shape[1]):
            far += (a[i, k] - a[j, k]) * (a[i, k] - a[j, k])
        if j == 0 or far < least:
            least = far
            at = j
    out[i] += a.dtype.type(at) + x[0]


@fq.kernel
def running(item: fq.Item, a, x, out):
    """What the work-item itself has stored in the iteration before, in a range of linear ids."""
    i = item.get_id(0)
    n = a.shape[1]
    for k in range(1, n):
        a[i, k] = a[i, k] + a[i, k - 1]
    if i % 2 == 0:
        out[i] = a[i, n - 1] + x[n - 1]
    else:
        out[i] = a[i, 0]


@fq.kernel
def red(item: fq.Item, a, x, out):
    """Every other element, in place, from where the row says; at its edge less."""
    i = item.get_id(0)
    n = a.shape[1]
    if i > 0 and i < a.shape[0] - 1:
        for k in range(1 + i % 2, n - 1, 2):
            a[i, k] = a[i - 1, k] + a[i + 1, k] + a[i, k - 1] - a[i, k + 1]
    out[i] = x[i % n]


@fq.kernel
def but_one(item: fq.Item, a, x, out):
    """All of a row but one element."""
    i = item.get_id(0)
    own = a.dtype.type(0)
    for k in range(a.shape[1]):
        if k != i:
            own += a[i, k] * x[k]
    out[i] = own


@fq.kernel
def until(item: fq.Item, first, values, out):
    """As many elements as memory says, to others that are not read."""
    i = item.get_id(0)
    k = first[i]
    own = values.dtype.type(0)
    while k < first[i + 1] and values[k] < 8:
        own += values[k]
        k += 1
    out[i] = own


@fq.kernel
def backwards(item: fq.Item, out, other):
    """Waits for all work-groups."""
    i = item.get_id(0)
    other[out.shape[0] - 1 - i] += out[i]


@fq.kernel
def segments(item: fq.Item, first, values, out):
    """As many elements as memory says."""
    i = item.get_id(0)
    own = values.dtype.type(0)
    for k in range(first[i], first[i + 1]):
        own += values[k]
        if values[k] > 8:
            break
    out[i] += own


@fq.kernel
def planes(item: fq.Item, a, out):
    """Rows of planes: a range of two dimensions."""
    i = item.get_id(0)
    j = item.get_id(1)
    own = a.dtype.type(0)
    for k in range(a.shape[2]):
        own += a[i, j, k]
    out[i, j] = own


def run(queue: fq.FusionQueue, dtype: str, rows: int, columns: int, strategy: str) -> list:
    rng = np.random.default_rng(rows * columns)

    def random(*shape: int) -> fq.Buffer:
        return fq.Buffer((9 * rng.random(shape)).astype(dtype))

    whole, vector = random(rows + 2, columns + 1), random(columns)
    lengths = rng.integers(0, 9, rows + 1)
    first = fq.Buffer(np.cumsum(lengths).astype(np.int32))
    values, cube = random(int(lengths.sum())), random(3, rows, columns)
    flat = fq.Buffer(np.zeros((3, rows), dtype))
    out = [fq.Buffer(np.zeros(rows, dtype)) for _ in range(2)]
    a = whole[1 : rows + 1, 1:]
    with fq.fusion(queue, strategy=strategy) as f:
        for kernel in (sums, nearest, running, red, but_one, sums):
            if kernel is nearest and rows < 3:
                continue
            queue.submit(kernel, rows, a, vector, out[0])
            queue.submit(backwards, rows, out[0], out[1])
        queue.submit(segments, rows, first, values, out[0])
        queue.submit(backwards, rows, out[0], out[1])
        queue.submit(until, rows, first, values, out[0])
        queue.submit(backwards, rows, out[0], out[1])
        queue.submit(planes, (3, rows), cube, flat)
    f.event.wait()
    return [np.array(buffer.numpy()) for buffer in (*out, whole, flat)]


STRATEGIES = ("unfused", "sequence", "fused", "megakernel")
"""Each for one set of parameters, two of them for each other one."""


@pytest.mark.parametrize(
    "rows, columns, dtype",
    one_in(
        2,
        [
            (rows, columns, dtype)
            for dtype in ("float32", "uint8")
            for rows, columns in ((1, 16), (3, 17), (37, 15), (131, 64), (70, 1))
        ],
    ),
)
def test_bits_are_those_of_the_reference_backend(
    queue: fq.FusionQueue, dtype: str, rows: int, columns: int
) -> None:
    with fq.FusionQueue("reference") as reference:
        expected = run(reference, dtype, rows, columns, "unfused")
    for strategy in STRATEGIES if is_whole() or rows == 37 else STRATEGIES[rows % 2 :: 2]:
        found = run(queue, dtype, rows, columns, strategy)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))
