"""Guard statements by a condition without putting a barrier inside it.

    x = a[i]                     if i < n: x = a[i]
    group_barrier(group)    →    group_barrier(group)
    b[i] = x                     if i < n: b[i] = x

Work-items outside the range take part in the barriers, and in loops and conditions around
them, whose bounds are therefore refused unless every work-item of the group can evaluate them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fusionq.ir.nodes import Block, Expr, For, GroupCall, If, ItemQuery, Load, Stmt, Var, While
from fusionq.ir.walk import has_barrier, statement_expressions, subexpressions


def guarded(body: Iterable[Stmt], condition: Expr) -> tuple[Stmt, ...]:
    """``body`` under ``condition``, barriers outside it."""
    result: list[Stmt] = []
    plain: list[Stmt] = []

    def flush() -> None:
        if plain:
            result.append(If(condition, tuple(plain)))
            plain.clear()

    for stmt in body:
        if not has_barrier((stmt,)):
            plain.append(stmt)
            continue
        flush()
        match stmt:
            case Block(label, inner):
                result.append(Block(label, guarded(inner, condition)))
            case For():
                result.append(replace(stmt, body=guarded(stmt.body, condition)))
            case If():
                result.append(
                    replace(
                        stmt,
                        then=guarded(stmt.then, condition),
                        orelse=guarded(stmt.orelse, condition),
                    )
                )
            case _:
                result.append(stmt)
    flush()
    return tuple(result)


def unguardable(body: Iterable[Stmt]) -> str | None:
    """Why the barriers in ``body`` cannot be taken out of a guard; None if they can."""
    for stmt in body:
        if not has_barrier((stmt,)):
            continue
        if isinstance(stmt, GroupCall):
            return (
                f"the group function at {stmt.span} cannot stand outside the guard of the smaller "
                "range, where work-items have no value for it"
            )
        if isinstance(stmt, While):
            return f"the loop at {stmt.span} holds a barrier and has no fixed number of iterations"
        if isinstance(stmt, (For, If)) and not all(
            _same_for_all(e) for e in statement_expressions(stmt)
        ):
            return f"the condition or bounds at {stmt.span} differ between work-items"
        for nested in (
            (stmt.then, stmt.orelse)
            if isinstance(stmt, If)
            else (stmt.body,)
            if isinstance(stmt, (For, Block))
            else ()
        ):
            reason = unguardable(nested)
            if reason is not None:
                return reason
    return None


def _same_for_all(expr: Expr) -> bool:
    """Whether every work-item can evaluate ``expr`` and gets the same value."""
    return not any(
        isinstance(e, (Load, Var))
        or (isinstance(e, ItemQuery) and e.query in ("global_id", "local_id"))
        for e in subexpressions(expr)
    )
