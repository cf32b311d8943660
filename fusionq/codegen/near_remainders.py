"""Remainders of sums that are hardly ever more than one divisor away from the remainder.

    (x + w - 1) % w    →    (x - 1) % w

Programs on a torus find neighbours so.  As Python defines remainders, multiples of the divisor
make no difference to them where no sum wraps; without those the sum fits into 32 bits if ids and
extents do, and is compared with the divisor in place of a division (``Scalars.near_remainder``).
"""

from __future__ import annotations

from fusionq.codegen.intervals import Intervals
from fusionq.ir.index_sums import index_terms, sum_of
from fusionq.ir.nodes import Binary, Cast, Const, Expr, Extent, ItemQuery, Param, Unary, Var
from fusionq.ir.types import INT64
from fusionq.ir.walk import subexpressions


def without_divisors(expr: Expr, intervals: Intervals) -> Expr:
    """``expr``; of a remainder of int64, without the multiples of the divisor in its dividend."""
    match expr:
        case Binary(type, "mod", lhs, Var() | Param() | Extent() | ItemQuery() as divisor) if (
            type == INT64 and divisor in subexpressions(lhs) and not _wraps(lhs, intervals)
        ):
            terms, constant = index_terms(lhs)
            rest = sum_of([one for one in terms if one[0] != divisor], constant)
            return expr if _wraps(rest, intervals) else Binary(INT64, "mod", rest, divisor)
    return expr


def _wraps(expr: Expr, intervals: Intervals) -> bool:
    """Whether arithmetic in ``expr`` may wrap."""
    return any(
        isinstance(e, (Unary, Binary)) and e.type == INT64 and intervals.wraps(e)
        for e in subexpressions(expr)
    )


def is_near(expr: Binary) -> bool:
    """Whether a remainder is of a sum without products, by what is no constant."""
    lhs = expr.lhs
    while isinstance(lhs, Cast) and lhs.operand.type.is_integer:
        lhs = lhs.operand
    if expr.op != "mod" or expr.type.kind != "i" or isinstance(expr.rhs, Const):
        return False
    if not (isinstance(lhs, Binary) and lhs.op in ("add", "sub")):
        return False
    return all(
        not isinstance(e, Binary) or e.op in ("add", "sub", "mod") for e in subexpressions(lhs)
    )
