"""Closed forms of a persistent kernel on the host, for many tiles at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fusionq.ir.nodes import Binary, Call, Const, Expr, ItemQuery, Param

Integers: TypeAlias = npt.NDArray[np.int64]


def evaluate(
    expr: Expr,
    params: Mapping[str, int],
    first: tuple[Integers, ...] = (),
    last: tuple[Integers, ...] = (),
) -> Any:
    """The value of an extent or bound: an int, or an array over the tiles that ``first`` and
    ``last`` (their first and last work-items) describe."""
    match expr:
        case Const():
            return int(expr.value)
        case Param():
            return int(params[expr.name])
        case ItemQuery("tile_first", dim):
            return first[dim]
        case ItemQuery("tile_last", dim):
            return last[dim]
        case Binary(_, op, lhs, rhs):
            a, b = (evaluate(e, params, first, last) for e in (lhs, rhs))
            if op == "add":
                return a + b
            if op == "mul":
                return a * b
            if op == "floordiv":
                return a // b
        case Call(_, "maximum", (lhs, rhs)):
            return np.maximum(*(evaluate(e, params, first, last) for e in (lhs, rhs)))
        case Call(_, "minimum", (lhs, rhs)):
            return np.minimum(*(evaluate(e, params, first, last) for e in (lhs, rhs)))
    raise AssertionError(f"no closed form has {expr}")
