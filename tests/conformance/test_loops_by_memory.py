"""Loops that go on as long as memory says, of which some devices make no vectors: the bits of the
reference backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from tests.in_turn import is_whole

pytestmark = pytest.mark.usefixtures("group_functions")


@fq.kernel
def product(item: fq.Item, first, column, value, x, y):
    """A sparse matrix (CSR) and a vector."""
    i = item.get_id(0)
    total = x.dtype.type(0)
    for k in range(first[i], first[i + 1]):
        total += value[k] * x[column[k]]
    y[i] = total


@fq.kernel
def dot(item: fq.Item, y, total):
    i = item.get_id(0)
    total += y[i] * y[i]


@fq.kernel
def scale(item: fq.Item, y, x):
    i = item.get_id(0)
    x[i] = y[i] / (abs(y[i]) + y.dtype.type(1))


@fq.kernel
def walk(item: fq.Item, follow, length):
    """How long a list is that begins at each place."""
    i = item.get_id(0)
    place, count = i, 0
    while place >= 0:
        place = int(follow[place])
        count += 1
    length[i] = count


@fq.kernel
def nearest(item: fq.Item, x, where):
    """The three places whose values are nearest to a work-item's, sorted by insertion."""
    i = item.get_id(0)
    best, at = fq.PrivateArray(3, x.dtype), fq.PrivateArray(3, np.int32)
    for k in range(3):
        best[k] = np.inf
        at[k] = -1
    for j in range(x.shape[0]):
        d = abs(x[j] - x[i])
        if d < best[2]:
            k = 2
            while k > 0 and best[k - 1] > d:
                best[k], at[k] = best[k - 1], at[k - 1]
                k -= 1
            best[k], at[k] = d, j
    for k in range(3):
        where[i, k] = at[k]


def run(queue: fq.FusionQueue, n: int, strategy: str) -> list[Any]:
    rng = np.random.default_rng(n)
    counts = rng.integers(0, 9, n)
    first = fq.Buffer(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    column = fq.Buffer(rng.integers(0, n, max(counts.sum(), 1)).astype(np.int32))
    value = fq.Buffer(rng.standard_normal(column.shape).astype(np.float32))
    x, y = fq.Buffer(rng.standard_normal(n).astype(np.float32)), fq.Buffer(n, np.float32)
    follow = fq.Buffer((np.arange(n) - rng.integers(1, 5, n)).astype(np.int64))
    length, where = fq.Buffer(n, np.int64), fq.Buffer((n, 3), np.int32)
    total = fq.Buffer(1, np.float32)
    with fq.fusion(queue, strategy=strategy) as f:
        for _ in range(2):
            queue.submit(product, n, first, column, value, x, y)
            queue.submit(dot, n, y, fq.Reduction(total, "add", initialize=True))
            queue.submit(scale, n, y, x)
        queue.submit(walk, n, follow, length)
        queue.submit(nearest, n, x, where)
    f.event.wait()
    return [np.array(b.numpy()) for b in (x, y, total, length, where)]


STRATEGIES = ("unfused", "fused", "megakernel")
"""Each at one size, one of the last two at each other one."""


@pytest.mark.parametrize("n", (1, 19, 130))
def test_bits_are_those_of_the_reference_backend(queue: fq.FusionQueue, n: int) -> None:
    with fq.FusionQueue("reference") as reference:
        expected = run(reference, n, "unfused")
    for strategy in STRATEGIES if is_whole() or n == 19 else STRATEGIES[n % 2 + 1 :][:1]:
        for one, other in zip(run(queue, n, strategy), expected, strict=True):
            np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))
