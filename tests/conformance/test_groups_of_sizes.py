"""Kernels over work-groups of several sizes, which join where these are one."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq

pytestmark = pytest.mark.usefixtures("group_functions")


@fq.kernel
def by_blocks(item: fq.NdItem, a, b, n):
    i = item.get_group().get_group_id(0) * item.get_local_range(0) + item.get_local_id(0)
    if i >= n:
        return
    b[i] = a[i] * 2 + a[max(i - 1, 0)] + item.get_group().get_group_range(0)


@fq.kernel
def counted(item: fq.NdItem, b, count):
    i = item.get_global_id(0)
    if i < b.shape[0] and b[i] > 50:
        fq.AtomicRef(count, item.get_local_range(0) % 2).fetch_add(1)


@fq.kernel
def turned(item: fq.Item, b, c):
    i = item.get_id(0)
    c[i] = b[b.shape[0] - 1 - i]


@fq.kernel
def planes(item: fq.NdItem, a, b):
    x, y = item.get_global_id(0), item.get_global_id(1)
    if x > 0 and x < a.shape[1] - 1 and y < a.shape[0]:
        b[y, x] = a[y, x - 1] + a[y, x + 1]


@fq.kernel
def sums_of_groups(item: fq.NdItem, a, out):
    total = fq.reduce_over_group(item.get_group(), a[item.get_global_id(0)], "add")
    if item.get_local_id(0) == 0:
        out[item.get_group().get_group_id(0)] = total


@pytest.mark.parametrize("strategy", ["unfused", "fused", "megakernel", "overlap"])
@pytest.mark.parametrize("n", [1, 63, 300, 1025])
def test_lines(queue: fq.FusionQueue, n: int, strategy: fq.Strategy) -> None:
    values = np.random.default_rng(n).integers(0, 40, n).astype(np.int32)
    a, b, c = fq.Buffer(values), fq.Buffer(n, np.int32), fq.Buffer(n, np.int32)
    count = fq.Buffer(np.zeros(2, np.int32))
    whole = -(-n // 64) * 64
    with fq.fusion(queue, strategy=strategy):
        queue.submit(by_blocks, fq.NdRange(whole, 64), a, b, n)
        queue.submit(counted, fq.NdRange(whole, 32), b, count)
        queue.submit(counted, fq.NdRange(n, 1), b, count)
        queue.submit(turned, n, b, c)
    expected = values * 2 + values[np.maximum(np.arange(n) - 1, 0)] + whole // 64
    np.testing.assert_array_equal(b.numpy(), expected)
    np.testing.assert_array_equal(c.numpy(), expected[::-1])
    np.testing.assert_array_equal(count.numpy(), [(expected > 50).sum()] * 2)


@pytest.mark.parametrize("shape", [(3, 5), (33, 70), (40, 257)])
def test_planes_whose_first_id_is_the_column(queue: fq.FusionQueue, shape) -> None:
    values = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    a, b = fq.Buffer(values), fq.Buffer(np.full(shape, -1.0, np.float32))
    columns, rows = -(-shape[1] // 16) * 16, -(-shape[0] // 8) * 8
    queue.submit(planes, fq.NdRange((columns, rows), (16, 8)), a, b)
    expected = np.full(shape, -1.0, np.float32)
    expected[:, 1:-1] = values[:, :-2] + values[:, 2:]
    np.testing.assert_array_equal(b.numpy(), expected)


@pytest.mark.parametrize("strategy", ["unfused", "fused", "megakernel"])
def test_beside_groups_that_do_something_together(queue, strategy: fq.Strategy) -> None:
    n = 256
    values = np.arange(n, dtype=np.int32)
    a, b, out = fq.Buffer(values), fq.Buffer(n, np.int32), fq.Buffer(4, np.int32)
    count = fq.Buffer(np.zeros(2, np.int32))
    with fq.fusion(queue, strategy=strategy):
        queue.submit(by_blocks, fq.NdRange(n, 64), a, b, n)
        queue.submit(sums_of_groups, fq.NdRange(n, 64), b, out)
        queue.submit(counted, fq.NdRange(n, 128), b, count)
    expected = values * 2 + values[np.maximum(values - 1, 0)] + 4
    np.testing.assert_array_equal(out.numpy(), expected.reshape(4, 64).sum(1))
    np.testing.assert_array_equal(count.numpy(), [(expected > 50).sum(), 0])


def test_the_report_names_the_users_size(queue: fq.FusionQueue) -> None:
    a, b = fq.Buffer(np.ones((64, 4), np.int32)), fq.Buffer(np.zeros((64, 4), np.int32))
    with fq.fusion(queue, strategy="fused") as f:
        for size in ((8, 4), (16, 2)):
            queue.submit(planes, fq.NdRange((64, 4), size), a, b)
    assert [stage.work_group for stage in f.report.stages] == [(8, 4), (16, 2)]
    assert not any(stage.work_group_chosen for stage in f.report.stages)


@fq.kernel
def doubled(item: fq.NdItem, a, b):
    i, j = item.get_global_id(0), item.get_global_id(1)
    b[i, j] = a[i, j] * 2


@pytest.mark.parametrize("strategy", ["unfused", "fused", "overlap"])
@pytest.mark.parametrize("shape, size", [((10, 6), (5, 3)), ((3, 250), (1, 50)), ((7, 1), (7, 1))])
def test_nothing_is_done_beyond_the_range(
    queue: fq.FusionQueue, strategy: fq.Strategy, shape: tuple[int, int], size: tuple[int, int]
) -> None:
    rows, columns = shape
    values = np.arange(12 * 300, dtype=np.int32).reshape(12, 300)
    whole = [fq.Buffer(values), fq.Buffer(values * 0 - 1), fq.Buffer(values * 0 - 1)]
    a, b, c = (buffer[:rows, :columns] for buffer in whole)
    with fq.fusion(queue, strategy=strategy):
        queue.submit(doubled, fq.NdRange(shape, size), a, b)
        queue.submit(doubled, fq.NdRange(shape, size), b, c)
    for buffer, factor in zip(whole[1:], (2, 4), strict=True):
        expected = np.full_like(values, -1)
        expected[:rows, :columns] = values[:rows, :columns] * factor
        np.testing.assert_array_equal(buffer.numpy(), expected)
