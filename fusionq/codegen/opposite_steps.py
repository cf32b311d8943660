"""Integers that rise by a multiple of what others fall by, from one vector to the next.

    3 * id, n - 1 - id        id by 16 an iteration: one rises by 48, the other falls by 16

Intel's compiler for CPUs (runtime 2026.21.7) computes the first from the second where loops stand
inside each other, four iterations at a time, and takes the first one's value for all four.  It does
not where it does not know by how much ids rise.
"""

from __future__ import annotations

from collections.abc import Iterable

from fusionq.ir.nodes import Binary, Const, Expr, ItemQuery, Load, Stmt, Unary, Var
from fusionq.ir.walk import expressions, subexpressions


def has_opposite_steps(body: Iterable[Stmt]) -> bool:
    """Whether integers in ``body`` may be such, by the form of the text: an id, or a variable, is
    subtracted or negated, and one is multiplied or added to another."""
    falls = rises = False
    for e in expressions(tuple(body)):
        if not e.type.is_integer:
            continue
        match e:
            case Binary(op="sub", rhs=operand) | Unary(op="neg", operand=operand):
                falls = falls or _varies(operand)
            case (
                Binary(op="mul", lhs=Const() as factor, rhs=operand)
                | Binary(op="mul", lhs=operand, rhs=Const() as factor)
            ):
                magnitude = abs(int(factor.value))
                rises = rises or (magnitude & (magnitude - 1) != 0 and _varies(operand))
                falls = falls or (factor.value < 0 and _varies(operand))
            case Binary(op="add", lhs=lhs, rhs=rhs):
                rises = rises or (_varies(lhs) and _varies(rhs))
        if falls and rises:
            return True
    return False


def _varies(expr: Expr) -> bool:
    """Whether it may be made of an id, and is not of memory."""
    every = list(subexpressions(expr))
    return any(isinstance(e, (ItemQuery, Var)) for e in every) and not any(
        isinstance(e, Load) for e in every
    )
