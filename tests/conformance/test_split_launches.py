"""Launches of more work-items than the device takes at once: the same bits as one launch.

The limit of the device is set to a few work-groups, so that every launch is many.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.target import LaunchShape
from fusionq.execution.split_launch import MOST_PARTS, parts


@fq.kernel
def of_items(item: fq.Item, out, x, factor):
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    out[i, j, k, 0] = (i * item.get_range(1) + j) * item.get_range(2) + k
    out[i, j, k, 1] = item.get_linear_id() * factor + item.get_linear_range()
    for d in range(j):
        out[i, j, k, 2] += x[item.get_linear_id() % x.shape[0]] * d


@fq.kernel
def of_groups(item: fq.NdItem, out, x, local):
    """A sum over each work-group by way of local memory, and all ids."""
    group = item.get_group()
    i, j = item.get_global_id(0), item.get_global_id(1)
    at = item.get_local_linear_id()
    local[at] = x[i, j]
    fq.group_barrier(group)
    total = local[at] + 10 * local[group.get_local_linear_range() - 1 - at]
    out[i, j, 0] = total
    out[i, j, 1] = group.get_group_id(0) * 1_000 + group.get_group_id(1)
    out[i, j, 2] = group.get_group_range(0) * 1_000 + group.get_group_range(1)
    out[i, j, 3] = group.get_group_linear_id() * 1_000 + item.get_local_id(1)
    out[i, j, 4] = item.get_global_linear_id() * 1_000 + item.get_global_range(0)


@fq.kernel
def doubled(item: fq.Item, x, y):
    i = item.get_id(0)
    y[i] = x[i] * 2 + i


@fq.kernel
def turned(item: fq.Item, y, z):
    """Needs ``y`` of the whole group of 50."""
    i = item.get_id(0)
    z[i] = y[i // 50 * 50 + 49 - i % 50] + item.get_range(0)


@pytest.fixture
def split_queue(queue: fq.FusionQueue) -> fq.FusionQueue:
    """``queue``, on a device that takes no more than 64 work-items at once."""
    backend = queue._state.launcher.backend
    backend.target = replace(backend.target, largest_launch=64)
    return queue


def test_ids_ranges_scalars_and_other_memory(split_queue: fq.FusionQueue, target: str) -> None:
    x, shape = np.arange(7), (3, 13, 10)

    def run(queue: fq.FusionQueue) -> list[bytes]:
        outs = [fq.Buffer(np.zeros((*shape, 3), np.int64)) for _ in range(2)]
        held = fq.Buffer(x)
        for factor in (3, 5):
            for out in outs:
                queue.submit(of_items, shape, out, held, factor)
        return [out.numpy().tobytes() for out in outs]

    with fq.FusionQueue(target) as whole:
        assert run(split_queue) == run(whole)


def test_work_groups(split_queue: fq.FusionQueue, target: str) -> None:
    x = fq.Buffer(np.arange(8 * 60).reshape(8, 60) % 37)

    def run(queue: fq.FusionQueue, **options: bool) -> bytes:
        out, local = fq.Buffer(np.zeros((8, 60, 5), np.int64)), fq.LocalAccessor(24, np.int64)
        with fq.fusion(queue, **options):
            queue.submit(of_groups, fq.NdRange((8, 60), (2, 12)), out, x, local)
        return bytes(out.numpy().tobytes())

    with fq.FusionQueue(target) as whole:
        wanted = run(whole)
    assert run(split_queue) == run(split_queue, check=True) == wanted


@pytest.mark.parametrize("flag", ["promote_local", "internal"])
def test_fused_lists(split_queue: fq.FusionQueue, target: str, flag: str) -> None:
    x = fq.Buffer(np.arange(1_000))

    def run(queue: fq.FusionQueue) -> tuple[bytes, int]:
        y = fq.Buffer(1_000, np.int64, **{flag: True})
        z, few = fq.Buffer(1_000, np.int64), fq.Buffer(30, np.int64)
        with fq.fusion(queue, strategy="fused") as f:
            queue.submit(doubled, 1_000, x, y)
            queue.submit(turned, 1_000, y, z)
            queue.submit(doubled, 30, x, few)
        first = z.numpy().tobytes() + few.numpy().tobytes()
        z.write(np.zeros(1_000, np.int64))
        f.replay()
        assert z.numpy().tobytes() + few.numpy().tobytes() == first
        return first, len(f.report.stages)

    with fq.FusionQueue(target) as whole:
        assert run(split_queue) == run(whole)


def test_too_many_parts_are_refused(split_queue: fq.FusionQueue) -> None:
    held = fq.Buffer(64 * MOST_PARTS + 1, np.int64)
    with pytest.raises(fq.DeviceError, match=r"takes 64 in one launch.*at most 1,024 of one"):
        split_queue.submit(doubled, 64 * MOST_PARTS + 1, held, held)


@pytest.mark.parametrize(
    ("items", "local"),
    [((1_000,), (10,)), ((6, 40), (2, 8)), ((4, 6, 8), (1, 2, 4)), ((9, 2), (3, 2))],
)
@pytest.mark.parametrize("most", [1, 16, 50, 64, 10_000])
def test_parts_are_the_whole(items: tuple[int, ...], local: tuple[int, ...], most: int) -> None:
    groups = np.zeros([n // m for n, m in zip(items, local, strict=True)], int)
    for first, shape in parts(LaunchShape(items, local), most):
        assert prod(shape.global_range) <= max(most, prod(local))
        assert shape.local_range == local
        ends = [f + n // m for f, n, m in zip(first, shape.global_range, local, strict=True)]
        groups[tuple(slice(f, e) for f, e in zip(first, ends, strict=True))] += 1
    assert (groups == 1).all()
