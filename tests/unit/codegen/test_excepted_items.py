"""One work-item of a row that does more: the interior is on the side of it that other conditions
leave."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.codegen.interior import Interior, interior_of
from fusionq.ir.nodes import Binary, Call, Const, Expr, If, Param
from fusionq.ir.types import INT64
from fusionq.ir.walk import statements
from tests.unit.lists import submission

A = np.zeros((9, 4096))


@fq.kernel
def from_it_on(item: fq.Item, t, a, b):
    j = item.get_id(1)
    if j >= t:
        a[item.get_id(0), j] = 1
        if j == t:
            b[item.get_id(0), 0] = 2


@fq.kernel
def up_to_it(item: fq.Item, t, a, b):
    j = item.get_id(1)
    if j <= t:
        a[item.get_id(0), j] = 1
        if j == t:
            b[item.get_id(0), 0] = 2


@fq.kernel
def everywhere(item: fq.Item, t, a, b):
    j = item.get_id(1)
    a[item.get_id(0), j] = 1
    if j == t:
        b[item.get_id(0), 0] = 2


def interior(kernel) -> Interior:
    lowered = submission(kernel, (9, 4096), 5, A, A).kernel
    found = interior_of(lowered)
    assert found is not None
    assert not any(isinstance(s, If) for s in statements(found.body))
    return found


def beside(steps: int) -> Expr:
    """``t`` and so many ``steps``, where ``t`` is near enough to be added to."""
    least, most = Const(INT64, -(1 << 62)), Const(INT64, 1 << 62)
    near = Call(INT64, "minimum", (Call(INT64, "maximum", (Param(INT64, "t"), least)), most))
    return near if not steps else Binary(INT64, "add", near, Const(INT64, steps))


@pytest.mark.parametrize(
    "kernel, low, high",
    (
        (from_it_on, 1, None),
        (up_to_it, None, -1),
        (everywhere, None, -1),
    ),
)
def test_the_side_that_is_left(kernel, low: int | None, high: int | None) -> None:
    found = interior(kernel)
    if low is None:
        assert not found.lows
    else:
        assert beside(low) in found.lows
    if high is None:
        assert not found.highs
    else:
        assert beside(high) in found.highs
