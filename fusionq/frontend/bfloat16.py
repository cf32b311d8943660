"""bfloat16 in the IR: computed in float32, each result rounded.

This is type legalisation, as compilers call it.  The front end computes with bfloat16 as with any
type; what it made becomes operations on float32 between conversions.  Sums, differences, products,
quotients and square roots are then the correctly rounded ones of bfloat16, since float32 has more
than twice its digits and two more (Figueroa, When is double rounding innocuous?, SIGNUM Newsletter
30, 1995); other functions are float32's, rounded.  Conversions from and to other types go through
float32 too, as in SYCL (extension sycl_ext_oneapi_bfloat16) and ml_dtypes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fusionq.ir.nodes import Binary, Call, Cast, Compare, Const, Expr, Stmt, Unary
from fusionq.ir.types import BFLOAT16, FLOAT32
from fusionq.ir.walk import expressions, rewrite_body


def legalised(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """``body`` with bfloat16 only loaded, stored, assigned, chosen, and converted from and to
    float32."""
    return rewrite_body(body, _legal) if _has_bfloat16(body) else body


def _has_bfloat16(body: Iterable[Stmt]) -> bool:
    return any(expr.type == BFLOAT16 for expr in expressions(body))


def _legal(expr: Expr) -> Expr:
    match expr:
        case Unary(op="pos") if expr.type == BFLOAT16:
            return expr.operand
        case Unary() if expr.type == BFLOAT16:
            return Cast(BFLOAT16, Unary(FLOAT32, expr.op, _widened(expr.operand)))
        case Binary() if expr.type == BFLOAT16:
            result = Binary(FLOAT32, expr.op, _widened(expr.lhs), _widened(expr.rhs))
            return Cast(BFLOAT16, result)
        case Compare() if expr.lhs.type == BFLOAT16:
            return replace(expr, lhs=_widened(expr.lhs), rhs=_widened(expr.rhs))
        case Call() if expr.type == BFLOAT16:
            arguments = tuple(map(_widened, expr.args))
            return Cast(BFLOAT16, replace(expr, type=FLOAT32, args=arguments))
        case Call():  # a predicate
            return replace(expr, args=tuple(map(_widened, expr.args)))
        case Cast() if expr.operand.type == BFLOAT16:
            operand = _widened(expr.operand)
            return operand if expr.type == FLOAT32 else replace(expr, operand=operand)
        case Cast() if expr.type == BFLOAT16 and expr.operand.type != FLOAT32:
            return replace(expr, operand=Cast(FLOAT32, expr.operand))
        case _:
            return expr


def _widened(expr: Expr) -> Expr:
    """The same number as a float32, if it is a bfloat16."""
    if expr.type != BFLOAT16:
        return expr
    return Const(FLOAT32, expr.value) if isinstance(expr, Const) else Cast(FLOAT32, expr)
