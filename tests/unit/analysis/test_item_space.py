"""Which work-items of ranges of different shapes are one and the same."""

from __future__ import annotations

import islpy as isl
import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.item_relations import to_space
from fusionq.analysis.item_space import ItemSpace, common_space, largest, share_items
from fusionq.analysis.list_analysis import analyse
from fusionq.language.ranges import NdRange
from tests.unit.lists import submissions


@fq.kernel
def one(item: fq.Item, a):
    a[item.get_id(0)] = 1


@fq.kernel
def two(item: fq.Item, a):
    a[item.get_id(0), item.get_id(1)] = 1


@fq.kernel
def three(item: fq.Item, a):
    a[item.get_id(0), item.get_id(1), item.get_id(2)] = 1


@fq.kernel
def grouped(item: fq.NdItem, a):
    a[item.get_global_id(0), item.get_global_id(1)] = 1


def over(*ranges):
    kernels = {1: one, 2: two, 3: three}
    calls = []
    for range_ in ranges:
        shape = range_ if isinstance(range_, tuple) else (range_,)
        calls.append((kernels[len(shape)], range_, np.zeros(shape)))
    return submissions(*calls)


@pytest.mark.parametrize(
    ("ranges", "mode", "ndim"),
    (
        ((8, 5, 0), "ids", 1),
        (((4, 6), (9, 6)), "ids", 2),
        (((4, 6), (4, 3)), "ids", 2),
        (((4, 6), (4, 3), (2, 6)), "ids", 2),
        (((4, 6), (6, 4)), "linear", 1),
        (((4, 6), (6, 4), (6, 6)), "ids", 2),
        (((4, 6), 6), "last", 2),
        (((4, 6), 4), "first", 2),
        (((4, 4), 4), "last", 2),
        (((4, 6), 6, 1), "last", 2),
        (((4, 6), 4, 1), "first", 2),
        (((4, 6), 4, 6), "last", 2),  # each of the two alone would be another
        (((4, 6), 5), "linear", 1),
        (((4, 6), 24), "linear", 1),
        (((0, 6), 6), "linear", 1),
        (((4, 0), 4), "linear", 1),
        (((2, 3, 4), (2, 3, 1)), "ids", 3),
        (((2, 3, 4), 4), "linear", 1),
        (((2, 3, 4), (3, 4)), "linear", 1),
    ),
)
def test_common_spaces(ranges, mode, ndim):
    assert common_space(over(*ranges)) == ItemSpace(mode, ndim, None)
    assert common_space(over(*reversed(ranges))) == ItemSpace(mode, ndim, None)


def test_explicit_work_groups_need_equal_shapes():
    a = np.zeros((4, 6))
    given = submissions((grouped, NdRange((4, 6), (2, 3)), a), (two, (4, 3), a))
    assert common_space(given) == (
        "ranges (4, 6), (4, 3) have no common index space that keeps the explicit work-group size "
        "(2, 3)"
    )
    assert not share_items(given, "ids")


def test_a_pair_may_meet_in_another_way_beside_others():
    column, plane, row = over(4, (4, 6), 6)
    assert share_items((column, plane), "first")
    assert not share_items((column, plane), "last")
    assert share_items((row, plane), "last")
    assert not share_items((row, plane), "first")
    assert share_items((row, column), "last")
    narrow, flat = over((4, 3), (6, 4))
    assert share_items((plane, narrow), "first")
    assert not share_items((plane, narrow), "linear")
    assert not share_items((plane, flat), "ids")


def test_the_largest_holds_the_others():
    for ranges in (((1, 6), 6), (6, (1, 6)), ((4, 6), 6, (4, 1)), ((4, 3), (4, 6))):
        given = over(*ranges)
        found = ranges[largest(given, range(len(given)))]
        assert found in ((1, 6), (4, 6))


def test_which_work_item_of_a_kernel_is_which_of_the_fused_one():
    column, plane, cube = over(4, (4, 6), (2, 4, 6))
    symbols = analyse([column, plane, cube]).symbols

    def lies(submission, mode, text, pins=()):
        items, pinned = to_space(submission, symbols, mode)
        assert items.is_equal(isl.Map(f"[{', '.join(symbols.names)}] -> {{ {text} }}"))
        assert {symbols.values[name] for name in pinned} == set(pins)

    lies(column, "ids", "[i] -> [i]")
    lies(column, "first", "[i] -> [i, 0]")
    lies(column, "last", "[i] -> [0, i]")
    lies(plane, "first", "[i, j] -> [i, j]")
    lies(column, "linear", "[i] -> [i]")
    lies(plane, "linear", "[i, j] -> [6i + j]", [6])
    lies(cube, "linear", "[i, j, k] -> [24i + 6j + k]", [4, 6])
