"""Which conditions on ids hold for most work-items of a row."""

from __future__ import annotations

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.ir.comparisons import MIRRORED
from fusionq.ir.nodes import Compare, Const, Expr, ItemQuery, Logical, Param, Unary
from fusionq.ir.types import INT64
from fusionq.ir.walk import subexpressions


def is_few(bound: int | float) -> bool:
    """Whether the work-items below ``bound`` are no interior."""
    return bound < CODE_LIMITS.shortest_interior


def likely(cond: Expr, bigger: bool | None) -> bool | None:
    """What a condition is for most work-items; None if there is no telling.  ``bigger``: what holds
    where more is done, if that says anything."""
    match cond:
        case Compare(op=op, lhs=lhs, rhs=rhs) if not has_ids(lhs) and has_ids(rhs):
            return likely(Compare(MIRRORED[op], rhs, lhs), bigger)
        case Compare(op="eq"):
            return False
        case Compare(op="ne"):
            return True
        case Compare(op=op, rhs=Const(type, value)) if type == INT64 and is_few(value):
            return op in ("gt", "ge")
        case Compare(op=op, rhs=limit):
            # Arguments that ids are above are widths of edges, what is computed the last ids.
            most = op in ("lt", "le") or isinstance(limit, Param)
            return most if bigger is None else bigger
        case Unary(op="not"):
            inner = likely(cond.operand, None if bigger is None else not bigger)
            return None if inner is None else not inner
        case Logical(op=op):
            sides = {likely(side, op == "and") for side in (cond.lhs, cond.rhs)}
            return op == "and" if sides == {op == "and"} else None
    return None


def has_ids(expr: Expr) -> bool:
    """Whether ids are in ``expr``."""
    return any(isinstance(e, ItemQuery) for e in subexpressions(expr))
