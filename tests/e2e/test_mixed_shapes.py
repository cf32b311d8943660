"""Rows, columns and planes in one kernel: what is computed is what the unfused run computes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import Strategy
from fusionq.kernels.library import Array
from tests.in_turn import one_in


@fq.kernel
def partial_sums(item: fq.Item, a: Array, partial: Array) -> None:
    row = item.get_id(0)
    lane = item.get_id(1)
    total = 0
    for j in range(lane, a.shape[1], partial.shape[1]):
        total += a[row, j]
    partial[row, lane] = total


@fq.kernel
def row_totals(item: fq.Item, partial: Array, total: Array) -> None:
    row = item.get_id(0)
    found = 0
    for lane in range(partial.shape[1]):
        found += partial[row, lane]
    total[row] = found


@fq.kernel
def less_row(item: fq.Item, a: Array, total: Array, out: Array) -> None:
    row = item.get_id(0)
    column = item.get_id(1)
    out[row, column] = 3 * a[row, column] - total[row]


@fq.kernel
def column_totals(item: fq.Item, a: Array, total: Array) -> None:
    column = item.get_id(0)
    found = 0
    for row in range(a.shape[0]):
        found += a[row, column]
    total[column] = found


@fq.kernel
def less_column(item: fq.Item, a: Array, total: Array, out: Array) -> None:
    row = item.get_id(0)
    column = item.get_id(1)
    out[row, column] = 5 * a[row, column] - total[column]


@fq.kernel
def diagonal(item: fq.Item, total: Array, a: Array) -> None:
    i = item.get_id(0)
    a[i, i] = total[i] + i


@fq.kernel
def increased(item: fq.Item, x: Array) -> None:
    x[item.get_id(0)] += 1


class Arrays:
    def __init__(self, shape: tuple[int, int]) -> None:
        rows, columns = shape
        self.shape = shape
        self.plane = fq.Buffer(np.arange(rows * columns, dtype=np.int32).reshape(shape) % 17)
        self.partial = fq.Buffer(np.full((rows, 3), -1, np.int32))
        self.row = fq.Buffer(np.full(rows, -1, np.int32))
        self.column = fq.Buffer(np.full(columns, -1, np.int32))
        self.out = fq.Buffer(np.full(shape, -1, np.int32))

    def contents(self) -> list[Array]:
        every = (self.plane, self.partial, self.row, self.column, self.out)
        return [buffer.numpy().copy() for buffer in every]


def rows(queue: fq.FusionQueue, a: Arrays) -> None:
    n, m = a.shape
    queue.submit(partial_sums, (n, 3), a.plane, a.partial)
    queue.submit(row_totals, n, a.partial, a.row)
    queue.submit(less_row, (n, m), a.plane, a.row, a.out)


def columns(queue: fq.FusionQueue, a: Arrays) -> None:
    n, m = a.shape
    queue.submit(less_column, (n, m), a.plane, a.column, a.out)
    queue.submit(column_totals, m, a.out, a.column)
    queue.submit(increased, m, a.column)
    queue.submit(less_column, (n, m), a.plane, a.column, a.out)


def both(queue: fq.FusionQueue, a: Arrays) -> None:
    rows(queue, a)
    columns(queue, a)


def across(queue: fq.FusionQueue, a: Arrays) -> None:
    """A one-dimensional range that touches what neither its row nor its column does."""
    n = min(a.shape)
    queue.submit(increased, n, a.row)
    queue.submit(diagonal, n, a.row, a.out)
    queue.submit(less_row, a.shape, a.out, a.row, a.plane)
    queue.submit(increased, n, a.row)


def independent(queue: fq.FusionQueue, a: Arrays) -> None:
    """Work that may go before what it has nothing to do with."""
    n, m = a.shape
    queue.submit(increased, n, a.row)
    queue.submit(partial_sums, (n, 3), a.plane, a.partial)
    queue.submit(column_totals, m, a.plane, a.column)
    queue.submit(increased, n, a.row)
    queue.submit(less_column, (n, m), a.plane, a.column, a.out)
    queue.submit(increased, n, a.row)


SHAPES = ((1, 9), (9, 1), (3, 3), (5, 300))
"""Of planes; a row of the last is longer than the work-groups that fusionq prefers."""
LISTS = (rows, columns, both, across, independent)
STRATEGIES: dict[str, tuple[Strategy, ...]] = {
    "reference": ("auto", "fused", "megakernel"),
    "sycl": ("auto", "megakernel"),
}


@pytest.mark.in_turn
@pytest.mark.parametrize("lists", LISTS)
def test_shapes_in_one_list(
    target: str | None, queue: fq.FusionQueue, lists: Callable[[fq.FusionQueue, Arrays], None]
) -> None:
    for shape in one_in(2, SHAPES, first=LISTS.index(lists) % 2):
        expected = Arrays(shape)
        with fq.fusion(queue, strategy="unfused"):
            lists(queue, expected)
        for strategy in STRATEGIES[target or "sycl"]:
            found = Arrays(shape)
            with fq.fusion(queue, strategy=strategy):
                lists(queue, found)
            for x, y in zip(found.contents(), expected.contents(), strict=True):
                np.testing.assert_array_equal(x, y, f"{shape} {strategy}")


def test_a_row_is_one_work_group(queue: fq.FusionQueue) -> None:
    a = Arrays((100, 300))
    with fq.fusion(queue) as fused:
        rows(queue, a)
    (stage,) = fused.report.stages
    assert stage.work_group is not None
    assert stage.work_group[0] == 1
    assert stage.barriers == 2


def test_independent_work_is_brought_together(queue: fq.FusionQueue) -> None:
    a = Arrays((4000, 30))
    flat = fq.Buffer(np.zeros(7777, np.int32))
    with fq.fusion(queue) as fused:
        queue.submit(increased, 7777, flat)
        queue.submit(less_row, a.shape, a.plane, a.row, a.out)
        queue.submit(increased, 7777, flat)
    assert [stage.submissions for stage in fused.report.stages] == [(0, 2), (1,)]
    assert (flat.numpy() == 2).all()


def test_what_depends_stays_behind(queue: fq.FusionQueue) -> None:
    a = Arrays((4000, 30))
    flat = np.zeros(120000, np.int32)
    with fq.fusion(queue) as fused:
        queue.submit(increased, 7777, flat)
        queue.submit(less_row, a.shape, a.plane, a.row, flat.reshape(a.shape))
        queue.submit(increased, 7777, flat)
    assert [stage.submissions for stage in fused.report.stages] == [(0,), (1,), (2,)]
    expected = (3 * a.plane.numpy() - a.row.numpy()[:, None]).ravel()
    expected[:7777] += 1
    fused.event.wait()
    np.testing.assert_array_equal(flat, expected)
