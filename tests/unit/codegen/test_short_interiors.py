"""What constants bound by the first few items of a row is no interior of it."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.codegen.interior import interior_of
from fusionq.ir.nodes import Binary, Const, If
from fusionq.ir.walk import expressions, statements
from tests.unit.lists import submission

A = np.zeros((9, 4096))


@fq.kernel
def of_eight(item: fq.Item, a, b):
    i = item.get_id(0)
    j = item.get_id(1)
    b[i, j] = a[i, j // 8 * 8] * a[i, j % 8]


@fq.kernel
def around(item: fq.Item, a, b):
    i = item.get_id(0)
    j = item.get_id(1)
    b[i, j] = a[i, (j + 1) % a.shape[1]]


@fq.kernel
def backwards(item: fq.Item, a, b):
    i = item.get_id(0)
    j = item.get_id(1)
    b[i, j] = a[i, (5 - j) % a.shape[1]]


@fq.kernel
def clamped_low(item: fq.Item, a, b):
    i = item.get_id(0)
    j = item.get_id(1)
    b[i, j] = a[i, min(j, 7)] - a[i, max(j - 1, 0)]


@fq.kernel
def first_few(item: fq.Item, a, b):
    i = item.get_id(0)
    j = item.get_id(1)
    if j < 4:
        s = a[i, j]
        for k in range(5):
            s += a[i, j + k] * k
        b[i, j] = s
    else:
        b[i, j] = 1


@fq.kernel
def beyond_a_few(item: fq.Item, a, b):
    i = item.get_id(0)
    j = item.get_id(1)
    if j >= 4:
        b[i, j] = 1
    else:
        s = a[i, j]
        for k in range(5):
            s += a[i, j + k] * k
        b[i, j] = s


@fq.kernel
def half(item: fq.Item, a, b):
    i = item.get_id(0)
    j = item.get_id(1)
    if j < 2048:
        b[i, j] = a[i, j]


def interior(kernel):
    return interior_of(submission(kernel, (9, 4096), A, A.copy()).ir)


def test_remainders_of_small_constants_stay() -> None:
    assert interior(of_eight) is None


def test_rows_that_wrap_around_have_an_interior() -> None:
    found = interior(around)
    assert found is not None
    assert found.highs
    assert not any(isinstance(e, Binary) and e.op == "mod" for e in expressions(found.body))


def test_remainders_below_zero_stay_behind_the_first_few() -> None:
    """``5 - j`` is its own remainder up to the sixth item only."""
    assert interior(backwards) is None


def test_a_clamp_that_holds_for_most_decides_none_that_does_not() -> None:
    found = interior(clamped_low)
    assert found is not None
    assert not found.highs
    assert len(found.lows) == 1


@pytest.mark.parametrize("kernel", [first_few, beyond_a_few])
def test_the_interior_is_behind_the_first_few(kernel) -> None:
    """However much these have to do."""
    found = interior(kernel)
    assert found is not None
    (low,) = found.lows
    assert isinstance(low, Const)
    assert low.value == 4
    assert not found.highs
    assert not any(isinstance(s, If) for s in statements(found.body))


def test_what_is_long_enough_is_an_interior() -> None:
    found = interior(half)
    assert found is not None
    (high,) = found.highs
    assert isinstance(high, Const)
    assert high.value == 2047 >= CODE_LIMITS.shortest_interior
