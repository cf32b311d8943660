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
    ``last`` (their first and last work-items) describe.  Sums and products wrap, as in kernels."""
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
                return _wrapped(a + b)
            if op == "mul":
                return _wrapped(a * b)
            if op == "floordiv":
                return a // b
        case Call(_, "maximum", (lhs, rhs)):
            return _plain(np.maximum(*(evaluate(e, params, first, last) for e in (lhs, rhs))))
        case Call(_, "minimum", (lhs, rhs)):
            return _plain(np.minimum(*(evaluate(e, params, first, last) for e in (lhs, rhs))))
    raise AssertionError(f"no closed form has {expr}")


def _wrapped(value: Any) -> Any:
    """A sum or product modulo two to the 64; arrays wrap by themselves."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63) if isinstance(value, int) else value


def _plain(value: Any) -> Any:
    """A single integer as an int, which overflows without a warning."""
    return int(value) if isinstance(value, np.integer) else value
