"""Integers as something and a constant that is added to it."""

from __future__ import annotations

from fusionq.ir.nodes import Binary, Const, Expr
from fusionq.ir.types import INT64


def split_offset(expr: Expr) -> tuple[Expr, int]:
    """``expr``, of int64, as an expression and the constant that is added to it; of a constant the
    expression is 0."""
    match expr:
        case Const(_, value):
            return Const(INT64, 0), int(value)
        case Binary(_, "add", lhs, Const(_, value)):
            base, offset = split_offset(lhs)
            return base, offset + int(value)
        case Binary(_, "add", Const(_, value), rhs):
            base, offset = split_offset(rhs)
            return base, offset + int(value)
        case Binary(_, "sub", lhs, Const(_, value)):
            base, offset = split_offset(lhs)
            return base, offset - int(value)
    return expr, 0
