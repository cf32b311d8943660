"""Conditions without short circuits: both operands are computed, and no branch is between them.

    a > b && c > d    →    (a > b) & (c > d)

Compilers for CPUs make a branch of ``&&``, so that what is behind it is done under masks: elements
of one or two bytes, of which AVX2 has no masked loads and stores, one by one.  Legal where the
right operand has no load, or its loads are certainly inside of their arrays (``interior``), and
reads no variable that has no value where the left one decides (``scoping.read_unassigned``):
nothing else that an expression does shows.  Conditions on 64-bit integers, which ids are, bound
loops over work-items, and compilers look for them as they are.

Source: LLVM, SimplifyCFG (speculative execution); Muchnick, Advanced Compiler Design (1997), 18.11.
"""

from __future__ import annotations

from fusionq.ir.functions import FLOAT_FUNCTIONS
from fusionq.ir.nodes import Binary, Call, Compare, Expr, Load, Logical, Var
from fusionq.ir.types import INT64
from fusionq.ir.walk import subexpressions

MOST_NODES = 24
"""Expressions of a right operand that takes no longer than a branch."""


def is_eager(condition: Logical, unassigned: frozenset[str]) -> bool:
    """Whether ``condition`` is computed whole, without a load that was not there, or a variable
    that is ``unassigned`` where the left operand decides."""
    right = list(subexpressions(condition.rhs))
    return (
        may_be_speculated(condition.rhs, unassigned)
        and not any(isinstance(e, Load) for e in right)
        and not _bounds(condition.lhs)
        and not _bounds(condition.rhs)
    )


def may_be_speculated(
    expr: Expr, unassigned: frozenset[str], most_nodes: int = MOST_NODES
) -> bool:
    """Whether ``expr``, of ``most_nodes`` at most, takes no longer than a branch, beside its loads,
    and reads no variable that is ``unassigned`` on some paths."""
    parts = list(subexpressions(expr))
    if any(isinstance(e, Var) and e.name in unassigned for e in parts):
        return False
    return len(parts) <= most_nodes and not any(map(_takes_long, parts))


def _takes_long(expr: Expr) -> bool:
    match expr:
        case Binary(op="truediv" | "floordiv" | "mod" | "pow"):
            return True
        case Call(function=function):
            return function in FLOAT_FUNCTIONS
    return False


def _bounds(expr: Expr) -> bool:
    """Whether ``expr`` is a comparison of 64-bit integers, or has one among its operands."""
    return any(isinstance(e, Compare) and e.lhs.type == INT64 for e in subexpressions(expr))
