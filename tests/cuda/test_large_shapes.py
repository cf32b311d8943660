"""Grids and local memory beyond what a launch takes without more ado."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq


@fq.kernel
def numbers(item: fq.Item, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = i * 10 + j


@fq.kernel
def numbers_in_groups(item: fq.NdItem, out):
    i, j, k = item.get_global_id(0), item.get_global_id(1), item.get_global_id(2)
    group = item.get_group()
    out[i, j, k] = (
        (group.get_group_id(0) * 100_000 + group.get_group_id(1)) * 10 + group.get_group_id(2)
    )
    if i + j + k == 0:
        out[0, 0, 0] = group.get_group_range(0) + group.get_group_range(1)


@fq.kernel
def reversed_in_groups(item: fq.NdItem, a, local, out):
    i, n = item.get_local_id(0), item.get_local_range(0)
    for k in range(i, local.shape[0], n):
        local[k] = a[item.get_global_id(0)] + k
    fq.group_barrier(item.get_group())
    out[item.get_global_id(0)] = local[local.shape[0] - 1 - i]


def test_many_rows(queue):
    rows = 300_000
    out = fq.Buffer((rows, 3), np.int32)
    queue.submit(numbers, (rows, 3), out)
    assert np.array_equal(out.numpy(), np.arange(rows)[:, None] * 10 + np.arange(3))


@pytest.mark.parametrize("shape", [(70_000, 2, 3), (2, 70_000, 3), (3, 2, 70_000)])
def test_many_groups_in_each_dimension(queue, shape):
    out = fq.Buffer(shape, np.int64)
    queue.submit(numbers_in_groups, fq.NdRange(shape, (1, 1, 1)), out)
    i, j, k = np.ogrid[tuple(map(slice, shape))]
    expected = (i * 100_000 + j) * 10 + k
    expected[0, 0, 0] = shape[0] + shape[1]
    assert np.array_equal(out.numpy(), expected)


def test_a_fused_list_over_many_rows(queue):
    rows = 200_000
    a, b = fq.Buffer((rows, 2), np.int32), fq.Buffer((rows, 2), np.int32)
    with fq.fusion(queue) as f:
        queue.submit(numbers, (rows, 2), a)
        queue.submit(numbers, (rows, 2), b)
    f.replay()
    assert np.array_equal(a.numpy(), b.numpy())


def test_a_group_takes_most_of_the_shared_memory(queue):
    most = queue.device.local_memory_bytes // 4
    assert most * 4 > 48 << 10
    n, values = 512, np.random.default_rng(1).integers(0, 99, 1024).astype(np.int32)
    for elements in (1000, 13_000, most):
        out = fq.Buffer(1024, np.int32)
        local = fq.LocalAccessor(elements, np.int32)
        queue.submit(reversed_in_groups, fq.NdRange(1024, n), fq.Buffer(values), local, out)
        place = elements - 1 - np.arange(n)
        expected = np.concatenate([values[g * n + place % n] + place for g in range(2)])
        assert np.array_equal(out.numpy(), expected)
    with pytest.raises(fq.ArgumentError, match="bytes of local memory"):
        local = fq.LocalAccessor(most + 1, np.int32)
        queue.submit(reversed_in_groups, fq.NdRange(1024, n), fq.Buffer(values), local, out)
