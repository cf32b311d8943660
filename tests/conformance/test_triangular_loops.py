"""Loops whose bounds move with the id: the bits of the reference backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from tests.in_turn import is_whole

pytestmark = pytest.mark.usefixtures("printed")


@fq.kernel
def product(item: fq.Item, lower, b, out):
    """The product of a lower triangle and the transpose of ``b``, a work-item an element."""
    j, i = item.get_id(0), item.get_id(1)
    total = lower.dtype.type(0)
    for k in range(i + 1):
        total += lower[i, k] * b[j, k]
    out[j, i] = total


@fq.kernel
def back_substitution(item: fq.Item, upper, b, x):
    """By rows from the last on: each work-item solves for one right-hand side."""
    c = item.get_id(0)
    n = upper.shape[0]
    for i in range(n - 1, -1, -1):
        total = b[i, c]
        for k in range(i + 1, n):
            total -= upper[i, k] * x[k, c]
        x[i, c] = total / upper[i, i]


@fq.kernel
def pairs(item: fq.Item, x, near, far):
    """What is before and behind each element, from both sides."""
    i = item.get_id(0)
    n = x.shape[0]
    before, behind = x.dtype.type(0), x.dtype.type(0)
    for j in range(i):
        before = before * x.dtype.type(0.5) + x[j]
    if x[i] > 0:
        for j in range(n - 1, i, -1):
            behind += x[j] * x[i]
            if behind > 100:
                behind -= x[j]
    for j in range(i - 1, -1, -1):
        before -= x[j] * x[n - 1 - j]
    for j in range(i // 3, min(n, 40)):
        behind += x[j]
    near[i], far[i] = before, behind


@fq.kernel
def by_linear_id(item: fq.Item, x, out):
    g = item.get_id(0)
    n = x.shape[1]
    i, j = g // n, g % n
    total = x.dtype.type(0)
    for k in range(i + 1):
        total += x[k, j]
    for k in range(j, n):
        total -= x[i, k]
    out[i, j] = total


@fq.kernel
def of_groups(item: fq.NdItem, x, shared, out):
    i, own = item.get_global_id(0), item.get_local_id(0)
    shared[own] = x[i]
    fq.group_barrier(item.get_group())
    total = 0.0
    for k in range(own + 1):
        total += shared[k]
    fq.group_barrier(item.get_group())
    shared[11 - own] = total
    fq.group_barrier(item.get_group())
    for k in range(own + 1, 12):
        total -= shared[k] * x[i]
    out[i] = total


def run(queue: fq.FusionQueue, n: int, strategy: str) -> list[Any]:
    rng = np.random.default_rng(n)

    def new(*shape: int, type: str = "float32") -> fq.Buffer:
        return fq.Buffer(rng.standard_normal(shape).astype(type))

    lower, b, c, x = new(n, n), new(5, n), new(5, n), new(n)
    upper = fq.Buffer(np.eye(n) * 4 + rng.random((n, n)))
    sides, solved = new(n, 19, type="float64"), new(n, 19, type="float64")
    near, far, linear = new(n), new(n), new(n, n)
    values, grouped = new(12 * n, type="float64"), new(12 * n, type="float64")
    tile = fq.LocalAccessor(12, np.float64)
    with fq.fusion(queue, strategy=strategy) as f:
        queue.submit(product, (5, n), lower, b, c)
        queue.submit(product, (5, n), lower, c, b)
        queue.submit(back_substitution, 19, upper, sides, solved)
        queue.submit(pairs, n, x, near, far)
        queue.submit(by_linear_id, n * n, lower, linear)
        queue.submit(of_groups, fq.NdRange(12 * n, 12), values, tile, grouped)
    f.event.wait()
    return [np.array(a.numpy()) for a in (b, c, solved, near, far, linear, grouped)]


STRATEGIES = ("unfused", "fused", "megakernel")
"""Each at one size, one of the last two at each other one."""


@pytest.mark.parametrize("n", (1, 7, 33, pytest.param(61, marks=pytest.mark.slow), 18))
def test_bits_are_those_of_the_reference_backend(queue: fq.FusionQueue, n: int) -> None:
    with fq.FusionQueue("reference") as reference:
        expected = run(reference, n, "unfused")
    for strategy in STRATEGIES if is_whole() or n == 33 else STRATEGIES[n % 2 + 1 :][:1]:
        for one, other in zip(run(queue, n, strategy), expected, strict=True):
            np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))
