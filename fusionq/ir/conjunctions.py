"""Conjunctions of conditions: made of them, and taken apart into them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from fusionq.ir.nodes import Const, Expr, Logical
from fusionq.ir.types import BOOL

TRUE: Expr = Const(BOOL, True)


def conjunction(conditions: Iterable[Expr]) -> Expr:
    """That all of ``conditions`` hold, evaluated in this order up to the first that does not;
    ``TRUE`` where there are none."""
    return reduce(_both, conditions, TRUE)


def _both(lhs: Expr, rhs: Expr) -> Expr:
    return rhs if lhs == TRUE else Logical("and", lhs, rhs)


def conjuncts(condition: Expr) -> list[Expr]:
    """The conditions that ``condition`` is the conjunction of; itself where it is none."""
    if isinstance(condition, Logical) and condition.op == "and":
        return [*conjuncts(condition.lhs), *conjuncts(condition.rhs)]
    return [condition]
