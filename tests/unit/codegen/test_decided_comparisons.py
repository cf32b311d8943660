"""Comparisons of integers whose result their intervals tell: ``Intervals.decided``."""

from __future__ import annotations

import numpy as np
import pytest

from fusionq.codegen.intervals import Intervals
from fusionq.ir.nodes import ArrayParam, Call, Compare, CompareOp, Const, Kernel, Load
from fusionq.ir.types import FLOAT32, INT8, ScalarType

OPERATORS = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip
EVERY = np.arange(-128, 128)


def loaded(type: ScalarType) -> Load:
    return Load(type, "a", (Const(INT8, 0),))


def decided(expr: Compare) -> bool | None:
    parameter = ArrayParam("a", expr.lhs.type, 1)
    return Intervals(Kernel("k", 1, (parameter,), (), ())).decided(expr)


@pytest.mark.parametrize("op", OPERATORS)
def test_it_is_what_all_values_give(op: CompareOp) -> None:
    x = loaded(INT8)
    for least in (-128, -1, 0, 3, 127):
        for other in (-128, -127, -2, -1, 0, 1, 3, 4, 126, 127):
            expr = Compare(op, Call(INT8, "maximum", (Const(INT8, least), x)), Const(INT8, other))
            given = OPERATORS[op](np.maximum(EVERY, least), other)
            assert decided(expr) == (bool(given[0]) if (given == given[0]).all() else None)


def test_not_what_values_tell() -> None:
    x = loaded(INT8)
    assert decided(Compare("lt", x, Const(INT8, 3))) is None
    assert decided(Compare("eq", x, x)) is None
    assert decided(Compare("lt", Const(FLOAT32, 1.0), Const(FLOAT32, 2.0))) is None
    absolute = Call(INT8, "abs", (Call(INT8, "maximum", (Const(INT8, 3), x)),))
    assert decided(Compare("ge", absolute, Const(INT8, -128))) is None
