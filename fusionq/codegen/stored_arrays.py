"""Which arrays a kernel stores to in the eyes of a compiler, too: ``b[i] = b[i]`` is nothing, and
nobody writes ``b``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from fusionq.ir.nodes import (
    Assign,
    Atomic,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Kernel,
    Store,
    Unary,
    Var,
)
from fusionq.ir.walk import statements

_NEUTRAL = (0, 1, -1)
"""Operands with which an operation may be none."""


def surely_stored(kernel: Kernel) -> set[str]:
    """The arrays to which ``kernel`` stores more than what it has loaded: a compiler that finds
    nothing else takes them for arrays that nobody writes."""
    assigned: defaultdict[str, list[Expr]] = defaultdict(list)
    for stmt in statements(kernel.body):
        if isinstance(stmt, Assign):
            assigned[stmt.name].append(stmt.value)

    def computes(value: Expr, within: Collection[str] = ()) -> bool:
        match value:
            case Binary(_, _, lhs, rhs):
                return not any(isinstance(e, Const) and e.value in _NEUTRAL for e in (lhs, rhs))
            case Const() | Call() | Unary():
                return True
            case Cast():
                return computes(value.operand, within)
            case Var(_, name) if name not in within and assigned[name]:
                return all(computes(v, {*within, name}) for v in assigned[name])
        return False

    return {
        s.array
        for s in statements(kernel.body)
        if isinstance(s, Atomic) or (isinstance(s, Store) and computes(s.value))
    }
