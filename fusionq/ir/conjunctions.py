"""Conjunctions of conditions: made of them, and taken apart into them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

from fusionq.ir.comparisons import NEGATED
from fusionq.ir.nodes import Compare, Const, Expr, Logical, Unary
from fusionq.ir.types import BOOL

TRUE: Expr = Const(BOOL, True)


def conjunction(conditions: Iterable[Expr]) -> Expr:
    """That all of ``conditions`` hold, evaluated in this order up to the first that does not;
    ``TRUE`` where there are none."""
    return reduce(_both, conditions, TRUE)


def _both(lhs: Expr, rhs: Expr) -> Expr:
    return rhs if lhs == TRUE else Logical("and", lhs, rhs)


def conjuncts(condition: Expr, holds: bool = True) -> list[Expr]:
    """The conditions that ``condition``, or that it does not hold, is the conjunction of: itself,
    or its negation, where it is none."""
    match condition:
        case Logical(op=op) if op == ("and" if holds else "or"):
            return [*conjuncts(condition.lhs, holds), *conjuncts(condition.rhs, holds)]
        case Unary(op="not"):
            return conjuncts(condition.operand, not holds)
        case Compare(op=op) if not holds and _are_integers(condition):
            return [replace(condition, op=NEGATED[op])]
    return [condition if holds else Unary(BOOL, "not", condition)]


def _are_integers(condition: Compare) -> bool:
    return condition.lhs.type.is_integer and condition.rhs.type.is_integer
