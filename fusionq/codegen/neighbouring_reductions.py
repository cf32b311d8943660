"""Reductions of work-groups that stand side by side, of values that are known before the first one:

    r = reduce(a); x = r; s = reduce(b); y = s   →   r, s = reduce(a, b); x = r; y = s

A group of threads then waits for itself once, not once for each.  Every value is combined in the
order in which it would be alone, so the bits are the same.
"""

from __future__ import annotations

from collections.abc import Callable

from fusionq.codegen.scoping import Body
from fusionq.ir.nodes import Assign, Expr, GroupCall, Stmt, Var
from fusionq.ir.types import ScalarType
from fusionq.ir.walk import reads_memory, subexpressions


def side_by_side(body: Body, most: Callable[[ScalarType], int]) -> dict[int, list[int]]:
    """By the place of the first of some reductions in ``body`` those of all of them, as many as are
    to be done together at ``most``; what stands between them may as well stand behind the last."""
    found: dict[int, list[int]] = {}
    start = 0
    while start < len(body):
        places = _from(body, start, most)
        if len(places) > 1:
            found[start] = places
        start = max([start, *places]) + 1
    return found


def _from(body: Body, start: int, most: Callable[[ScalarType], int]) -> list[int]:
    first = body[start]
    if not _is_plain(first):
        return []
    assert isinstance(first, GroupCall)
    places, assigned = [start], {first.result}
    for place in range(start + 1, len(body)):
        stmt = body[place]
        match stmt:
            case GroupCall() if _is_plain(stmt) and _kind(stmt) == _kind(first):
                names = {stmt.result, *_variables(stmt.value)}
                if names & assigned or len(places) == most(first.value.type):
                    break
                assigned.add(stmt.result)
                places.append(place)
            case Assign(name, Var(_, of)) if of in assigned and name not in assigned:
                assigned.add(name)
            case _:
                break
    return places


def _is_plain(stmt: Stmt) -> bool:
    """Whether ``stmt`` reduces a value over a work-group that no other work-item can change."""
    match stmt:
        case GroupCall("reduce", op, value, None, sub_group=None, values=None) if op is not None:
            return not reads_memory(value)
    return False


def _kind(call: GroupCall) -> tuple[str | None, ScalarType]:
    return call.op, call.value.type


def _variables(value: Expr) -> set[str]:
    return {e.name for e in subexpressions(value) if isinstance(e, Var)}
