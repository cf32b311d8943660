"""Loops that end only when somebody else has changed memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusionq.ir.functions import DEVICE_FUNCTIONS
from fusionq.ir.nodes import (
    Assign,
    Atomic,
    Block,
    Break,
    Call,
    Continue,
    Expr,
    Fence,
    If,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
    While,
)
from fusionq.ir.walk import (
    assigned_variable,
    statement_expressions,
    statements,
    subexpressions,
)


def awaited_arrays(loop: While) -> frozenset[str]:
    """The arrays that have to change for ``loop`` to end, once it has run twice: its body does
    nothing but load from them, and computes the same again from the same.  Empty where it may end
    by itself."""
    inside = list(statements(loop.body))
    if not all(_only_looks(statement) for statement in inside):
        return frozenset()
    own = frozenset(name for s in inside if (name := assigned_variable(s)) is not None)
    if _reads_earlier(loop.body, own, set()):
        return frozenset()
    loads = {s.array for s in inside if isinstance(s, Atomic)}
    for expr in (loop.cond, *(e for s in inside for e in statement_expressions(s))):
        for part in subexpressions(expr):
            if isinstance(part, Call) and part.function in DEVICE_FUNCTIONS:
                return frozenset()
            if isinstance(part, Load):
                loads.add(part.array)
    return frozenset(loads)


def loops_that_wait_for_other_items(kernel: Kernel) -> Iterator[tuple[While, str]]:
    """Loops that end only when another work-item has changed an array, with its name: one that
    this kernel writes to elsewhere."""
    every = list(statements(kernel.body))
    written = {
        s.array
        for s in every
        if isinstance(s, Store) or (isinstance(s, Atomic) and s.op != "load")
    }
    for loop in every:
        if isinstance(loop, While):
            yield from ((loop, array) for array in sorted(awaited_arrays(loop) & written))


def _only_looks(statement: Stmt) -> bool:
    if isinstance(statement, Atomic):
        return statement.op == "load"
    return isinstance(statement, Assign | If | Break | Continue | Block | Fence)


def _reads_earlier(body: Sequence[Stmt], own: frozenset[str], assigned: set[str]) -> bool:
    """Whether an iteration may read what an earlier one has assigned; adds to ``assigned`` what is
    certainly assigned behind ``body``."""
    for statement in body:
        if any(_reads(e, own - assigned) for e in statement_expressions(statement)):
            return True
        if isinstance(statement, If):
            then, orelse = set(assigned), set(assigned)
            if _reads_earlier(statement.then, own, then) or _reads_earlier(
                statement.orelse, own, orelse
            ):
                return True
            assigned |= then & orelse
        elif isinstance(statement, Block):
            if _reads_earlier(statement.body, own, assigned):
                return True
        elif (name := assigned_variable(statement)) is not None:
            assigned.add(name)
    return False


def _reads(expr: Expr, names: frozenset[str]) -> bool:
    return any(isinstance(part, Var) and part.name in names for part in subexpressions(expr))
