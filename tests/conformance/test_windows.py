"""Loops over windows that are clamped at the ends of rows: what Python's ranges give, with the bits
of the reference backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from tests.in_turn import is_whole

pytestmark = pytest.mark.usefixtures("printed")


@fq.kernel
def weighted(item: fq.Item, x, w, out):
    i = item.get_id(0)
    half = w.shape[0] // 2
    total = x.dtype.type(0)
    for k in range(max(0, i - half), min(x.shape[0], i + half + 1)):
        total += x[k] * w[k - i + half]
    out[i] = total


@fq.kernel
def boxes(item: fq.Item, x, out):
    i, j = item.get_id(0), item.get_id(1)
    total = x.dtype.type(0)
    for a in range(max(0, i - 2), min(x.shape[0], i + 3)):
        for b in range(max(j - 3, 0), min(j + 4, x.shape[1]), 2):
            if x[a, b] > 1:
                continue
            total += x[a, b]
    out[i, j] = total


@fq.kernel
def of_radius(item: fq.Item, x, r, out):
    i, j = item.get_id(0), item.get_id(1)
    first, last = max(0, j - r), min(x.shape[1], j + r + 1)
    total = x.dtype.type(0)
    for k in range(first, last):
        total += x[i, k]
    out[i, j] = total * (last - first)


def run(queue: fq.FusionQueue, n: int, strategy: str) -> list[Any]:
    rng = np.random.default_rng(n)
    x = fq.Buffer(rng.standard_normal(n).astype(np.float32))
    w = fq.Buffer(rng.standard_normal(9).astype(np.float32))
    matrix = fq.Buffer(rng.standard_normal((7, n)))
    means, smooth = fq.Buffer(np.zeros(n, np.float32)), fq.Buffer(np.zeros((7, n)))
    again = fq.Buffer(np.zeros((7, n)))
    wide = [fq.Buffer(np.zeros((7, n))) for _ in range(5)]
    with fq.fusion(queue, strategy=strategy) as f:
        queue.submit(weighted, n, x, w, means)
        queue.submit(boxes, (7, n), matrix, smooth)
        queue.submit(boxes, (7, n), smooth, again)
        for r, out in zip((2, 40, -1, 1 << 33, -(1 << 63)), wide, strict=True):
            queue.submit(of_radius, (7, n), matrix, r, out)
    f.event.wait()
    return [np.array(b.numpy()) for b in (means, smooth, again, *wide)]


STRATEGIES = ("unfused", "fused", "megakernel")
"""Each at one size, one of the last two at each other one."""


@pytest.mark.parametrize("n", (1, 4, 130, pytest.param(300, marks=pytest.mark.slow), 17))
def test_bits_are_those_of_the_reference_backend(queue: fq.FusionQueue, n: int) -> None:
    with fq.FusionQueue("reference") as reference:
        expected = run(reference, n, "unfused")
    for strategy in STRATEGIES if is_whole() or n == 130 else STRATEGIES[n % 2 + 1 :][:1]:
        for one, other in zip(run(queue, n, strategy), expected, strict=True):
            np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))
