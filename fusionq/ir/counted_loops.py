"""Loops with a finite trip count, whatever memory holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusionq.ir.comparisons import MIRRORED, NEGATED
from fusionq.ir.nodes import (
    Assign,
    Binary,
    Break,
    Compare,
    CompareOp,
    Const,
    Continue,
    Expr,
    For,
    If,
    Load,
    Logical,
    Stmt,
    Unary,
    Var,
    While,
)
from fusionq.ir.walk import assigned_variable, statements, subexpressions


def ends_by_counting(loop: While) -> bool:
    """Whether ``loop`` goes on only while an induction variable that each iteration raises is below
    an invariant bound, or one that each iteration lowers is above it."""
    iteration = _every_iteration(loop)
    steps = {s.name: step for s in iteration if isinstance(s, Assign) and (step := _step(s))}
    changed = _changed(loop)
    for condition in _needed(loop.cond, iteration):
        for op, value, bound in _sides(condition):
            if not isinstance(value, Var) or changed.count(value.name) != 1:
                continue
            step = steps.get(value.name, 0)
            towards = (step > 0 and op in ("lt", "le")) or (step < 0 and op in ("gt", "ge"))
            if towards and _is_fixed(bound, changed):
                return True
    return False


def _every_iteration(loop: While) -> Sequence[Stmt]:
    """The statements that each iteration comes to, but for those that leave the loop."""
    found: list[Stmt] = []
    for statement in loop.body:
        if any(isinstance(s, Continue) for s in statements((statement,))):
            break
        found.append(statement)
    return found


def _changed(loop: While) -> list[str]:
    """The variables that an iteration assigns, as often as they are assigned."""
    every = list(statements(loop.body))
    loops = [s.var for s in every if isinstance(s, For)]
    return [*loops, *(name for s in every if (name := assigned_variable(s)) is not None)]


def _step(assign: Assign) -> int:
    """What is added to a variable; 0 if it is no constant, or something else happens to it."""
    match assign.value:
        case Binary(type, "add" | "sub" as op, Var(name=name), Const(value=int(step))) if (
            type.is_integer
        ):
            return 0 if name != assign.name else step if op == "add" else -step
    return 0


def _needed(condition: Expr, iteration: Sequence[Stmt]) -> Iterator[Expr]:
    """Conditions of a loop that goes on: its own, and that no break was reached."""
    yield from _parts(condition, "and")
    for statement in iteration:
        if isinstance(statement, If) and statement.then and isinstance(statement.then[-1], Break):
            yield from (_not(part) for part in _parts(statement.cond, "or"))


def _parts(condition: Expr, op: str) -> Iterator[Expr]:
    if isinstance(condition, Logical) and condition.op == op:
        yield from _parts(condition.lhs, op)
        yield from _parts(condition.rhs, op)
    elif isinstance(condition, Unary) and isinstance(condition.operand, Logical):  # De Morgan's law
        dual = "or" if op == "and" else "and"
        if condition.operand.op == dual:
            yield from map(_not, _parts(condition.operand, dual))
    else:
        yield condition


def _not(condition: Expr) -> Expr:
    return Unary(condition.type, "not", condition)


def _sides(condition: Expr) -> Iterator[tuple[CompareOp, Expr, Expr]]:
    """A comparison from both sides."""
    negated = False
    while isinstance(condition, Unary) and condition.op == "not":
        condition, negated = condition.operand, not negated
    if not isinstance(condition, Compare) or condition.op in ("eq", "ne"):
        return
    op = NEGATED[condition.op] if negated else condition.op
    yield op, condition.lhs, condition.rhs
    yield MIRRORED[op], condition.rhs, condition.lhs


def _is_fixed(bound: Expr, changed: Sequence[str]) -> bool:
    """Whether it is loop-invariant: all iterations find the same value."""
    return not any(
        isinstance(part, Load) or (isinstance(part, Var) and part.name in changed)
        for part in subexpressions(bound)
    )
