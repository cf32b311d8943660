"""A dependence through several accesses is as wide as the widest of them in every direction."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.kernels.library import Array


@fq.kernel
def five_point(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i > 0 and i < a.shape[0] - 1 and j > 0 and j < a.shape[1] - 1:
        b[i, j] = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]
    else:
        b[i, j] = a[i, j]


@fq.kernel
def near_and_far(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    b[i] = a[i - i % 2] + a[item.get_range(0) - 1 - i]


@pytest.mark.parametrize("shape", [(37, 53), (8, 600), (3, 7)])
def test_neighbours_in_both_dimensions(queue: fq.FusionQueue, shape: tuple[int, int]) -> None:
    first = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    found = []
    for strategy in ("unfused", "auto"):
        a, b = fq.Buffer(first), fq.Buffer(np.zeros(shape, np.float32))
        with fq.fusion(queue, strategy=strategy):  # type: ignore[arg-type]  # one of the two
            for _ in range(3):
                queue.submit(five_point, shape, a, b)
                a, b = b, a
        found.append((a.numpy().copy(), b.numpy().copy()))
    for expected, got in zip(*found, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_neighbour_in_the_group_and_one_across(queue: fq.FusionQueue) -> None:
    n = 4096
    a = fq.Buffer(np.arange(n, dtype=np.float32))
    b, c = fq.Buffer(n, np.float32), fq.Buffer(n, np.float32)
    with fq.fusion(queue, strategy="sequence") as f:
        queue.submit(near_and_far, n, a, b)
        queue.submit(near_and_far, n, b, c)
    assert len(f.report.stages) == 2
    i = np.arange(n)
    expected = a.numpy()
    for _ in range(2):
        expected = expected[i - i % 2] + expected[::-1]
    np.testing.assert_array_equal(c.numpy(), expected)
