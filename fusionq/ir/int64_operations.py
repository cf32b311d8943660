"""Operations on int64, of which indices, ids and bounds are made."""

from __future__ import annotations

from fusionq.ir.nodes import Binary, BinaryOp, Expr
from fusionq.ir.types import INT64


def int64(op: BinaryOp, lhs: Expr, rhs: Expr) -> Binary:
    """An operation on two int64."""
    return Binary(INT64, op, lhs, rhs)
