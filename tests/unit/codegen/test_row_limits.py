"""Work-items of a row that do nothing, by the conditions around all that does anything."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.codegen.row_forms import RowForms
from fusionq.codegen.row_limits import RowLimits, row_limits
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.printer import print_expr
from tests.unit.lists import submission

A = np.zeros((9, 64))


@fq.kernel
def inside(item: fq.Item, t, a, b):
    i, j = item.get_id(0), item.get_id(1)
    if i > 0 and not (j == 0 or j == t):
        a[i, j] = 1


@fq.kernel
def returned(item: fq.Item, t, a, b):
    j = item.get_id(1)
    if j < 3:
        return
    value = b[item.get_id(0), j]
    if j + 2 > t:
        return
    a[item.get_id(0), j] = value


@fq.kernel
def one(item: fq.Item, t, a, b):
    if item.get_id(1) == t:
        a[item.get_id(0), item.get_id(1)] = 1


@fq.kernel
def mirrored(item: fq.Item, t, a, b):
    if 7 >= 9 - item.get_id(1):  # noqa: SIM300
        a[item.get_id(0), item.get_id(1)] = 1


@fq.kernel
def triangle(item: fq.Item, t, a, b):
    if item.get_id(1) <= item.get_id(0):
        a[item.get_id(0), item.get_id(1)] = 1


@fq.kernel
def both(item: fq.Item, t, a, b):
    j = item.get_id(1)
    if j > 4 and j < t:
        a[item.get_id(0), j] = 1
    if j < t:
        for k in range(3):
            b[item.get_id(0), j] = k


@fq.kernel
def other_side(item: fq.Item, t, a, b):
    j = item.get_id(1)
    if j > 4:
        a[item.get_id(0), j] = 1
    else:
        a[item.get_id(0), j] = 2


@fq.kernel
def either(item: fq.Item, t, a, b):
    j = item.get_id(1)
    if j > 4 or j < t:
        a[item.get_id(0), j] = 1


@fq.kernel
def behind(item: fq.Item, t, a, b):
    j = item.get_id(1)
    if j > 4:
        a[item.get_id(0), j] = 1
    b[item.get_id(0), j] = 1


@fq.kernel
def by_memory(item: fq.Item, t, a, b):
    j = item.get_id(1)
    if j < b[0, 0]:
        a[item.get_id(0), j] = 1


@fq.kernel
def of_loops(item: fq.Item, t, a, b):
    j = item.get_id(1)
    for k in range(3):
        if j + k > 4:
            a[item.get_id(0), j] = k


@fq.kernel
def at_distance(item: fq.Item, t, a, b):
    if item.get_id(1) + t > 4:  # which wraps for large t
        a[item.get_id(0), item.get_id(1)] = 1


@fq.kernel
def reassigned(item: fq.Item, t, a, b):
    j = item.get_id(1)
    if t > 3:
        j = 63 - j
    if j > 4:
        a[item.get_id(0), j] = 1


@fq.kernel
def multiples(item: fq.Item, t, a, b):
    j = item.get_id(1)
    if 2 * j >= 5 and j * 3 < 61 and 4 - 2 * j < -1 and 5 * j <= t and (j + 2) * -2 > -99:
        a[item.get_id(0), j] = 1


@fq.kernel
def equal_multiple(item: fq.Item, t, a, b):
    if 2 * item.get_id(1) == t:
        a[item.get_id(0), item.get_id(1)] = 1


@fq.kernel
def large_multiple(item: fq.Item, t, a, b):
    if 4097 * item.get_id(1) > 5:
        a[item.get_id(0), item.get_id(1)] = 1


T = "min(max(t, -4611686018427387904), 4611686018427387904)"


def limits(kernel) -> tuple[list[str], list[str], list[str]]:
    lowered = submission(kernel, (9, 64), 5, A, A).kernel
    found = row_limits(flatten_blocks(lowered.body), RowForms(lowered, ()))
    texts = ([print_expr(e).replace("np.", "").replace("imum", "") for e in each] for each in found)
    lows, highs, others = texts
    return lows, highs, others


@pytest.mark.parametrize(
    "kernel, lows, highs, others",
    (
        (inside, ["1"], [], [T]),
        (returned, ["3"], [f"{T} + -2"], []),
        (one, [T], [T], []),
        (mirrored, ["2"], [], []),
        (triangle, [], ["min(max(item.get_id(0), -4611686018427387904), 4611686018427387904)"], []),
        (both, [], [f"{T} + -1"], []),
        (multiples, ["3"], ["20", f"{T} // 5", "47"], []),
    ),
)
def test_limits(kernel, lows: list[str], highs: list[str], others: list[str]) -> None:
    assert limits(kernel) == (lows, highs, others)


@pytest.mark.parametrize(
    "kernel",
    (
        other_side, either, behind, by_memory, of_loops, at_distance, reassigned, equal_multiple,
        large_multiple,
    ),
)
def test_none_where_others_do_something_or_may(kernel) -> None:
    assert not any(limits(kernel))


def test_nothing_is_done_at_all() -> None:
    assert row_limits((), RowForms(submission(one, (9, 64), 5, A, A).kernel, ())) == RowLimits()
