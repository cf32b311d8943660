"""Which rows are read ahead, and how far."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.ir.printer import print_expr
from fusionq.passes.read_ahead import arrays_of, rows_ahead
from tests.unit.lists import submission

N = 16
F = np.float32


@fq.kernel
def five_points(item: fq.Item, a, b):
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    b[i, j] = a[i, j] + a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]


@fq.kernel
def turned(item: fq.Item, a, b):
    i = item.get_id(0)
    j = item.get_id(1)
    b[i, j] = a[j, i] + a[i, N - 1 - j]


@fq.kernel
def by_row(item: fq.Item, a, b):
    i = item.get_id(0)
    j = item.get_id(1)
    if a[i, 0] > F(0):
        b[i, j] = a[int(b[i, j]), j]


@fq.kernel
def at_the_edge(item: fq.Item, a, b):
    i = item.get_id(0)
    j = item.get_id(1)
    if i > 0:
        b[i, j] = a[i - 1, j]
    else:
        b[i, j] = a[N - 1, j]


@fq.kernel
def in_a_line(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[i] + a[i + 1]


@fq.kernel
def seven_points(item: fq.Item, a, b):
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    k = item.get_id(2) + 1
    b[i, j, k] = a[i - 1, j, k] + a[i + 1, j, k] + a[i, j + 1, k] + a[i, j, k + 1]


def found(kernel, box):
    arrays = [np.zeros((N,) * len(box), F) for _ in range(2)]
    ir = submission(kernel, tuple(n - 2 for n in arrays[0].shape), *arrays).ir
    return rows_ahead(ir, ir.body, box)


def text(ahead):
    return [f"{row.array}[{', '.join(map(print_expr, row.indices))}]" for row, _ in ahead.rows]


def test_of_each_array_the_row_that_comes_last():
    ahead = found(five_points, (32, 384))
    assert text(ahead) == [
        "a[item.get_id(0) + 2, item.get_id(1) + 1]",
        "b[item.get_id(0) + 1, item.get_id(1) + 1]",
    ]
    assert {nbytes for _, nbytes in ahead.rows} == {4}


def test_planes():
    rows = text(found(seven_points, (8, 8, 256)))
    assert rows[0].startswith("a[item.get_id(0) + 2, item.get_id(1) + 1")


def test_rows_of_each_side_of_a_condition():
    assert len(text(found(at_the_edge, (32, 384)))) == 3  # two of `a`, at i - 1 and at N - 1


@pytest.mark.parametrize("kernel", [turned, by_row])
def test_what_is_no_row_of_the_work_items_is_left_out(kernel):
    assert [row.split("[")[0] for row in text(found(kernel, (32, 384)))] == ["b"]


def test_what_the_edges_of_rows_touch_beside():
    arrays = [np.zeros((N, N), F) for _ in range(2)]
    ir = submission(at_the_edge, (N, N), *arrays).ir
    assert arrays_of(ir.body) == {"a", "b"}
    ahead = rows_ahead(ir, ir.body, (32, 384), {"b"})
    assert {row.array for row, _ in ahead.rows} == {"a"}
    assert rows_ahead(ir, ir.body, (32, 384), {"a", "b"}) is None


def test_nothing_in_one_dimension():
    assert found(in_a_line, (4096,)) is None


@pytest.mark.parametrize(
    ("box", "dim", "steps"),
    [
        ((32, 384), 0, 3),  # 1,536 bytes a row
        ((32, 4096), 0, 1),
        ((64, 16), 0, 16),  # a quarter of the tile at most
        ((2, 16), 0, 1),
        ((8, 8, 256), 0, 1),  # more rows than a quarter of a plane: the next plane
        ((8, 32, 256), 1, 4),
        ((8, 32, 2048), 1, 1),
    ],
)
def test_how_far(box, dim, steps):
    ahead = found(five_points if len(box) == 2 else seven_points, box)
    assert (ahead.dim, ahead.steps) == (dim, steps)
