"""The ids of a work-item in variables, which a kernel computes once, behind its guards.

    if global_id(0) < n:            if global_id(0) < n:
        if a[global_id(0)] > 0:         id = global_id(0)
            o[global_id(0)] = 1    →    if a[id] > 0:
                                            o[id] = 1

Intel's OpenCL CPU compiler (runtime 2026.21.7) computes products of ids wrong, for all but the
first vector of a work-group, in some kernels that ask for an id again in several branches, and
makes slow masks of others: a stencil with an ``else`` takes 51 µs so, 14 otherwise (262,144
floats).  The guards that hold all of a kernel do ask: the compiler makes bounds of its loop over
work-items of guards that call the function, and of no others (a guarded stencil 12.5 and 20 µs).

Between barriers the compiler makes such a loop of each part of a kernel, and keeps variables that
are used in several in memory, by work-item.  So each part has variables of its own, and its guards
ask, too: nine kernels of a pyramid over ranges of all sizes in three take 0.23 ms so, 0.52 with the
variables of the first part (0.25 where every expression asks).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise, takewhile

from fusionq.codegen.group_conditions import inside
from fusionq.codegen.scoping import Body, assignments
from fusionq.ir.nodes import (
    Assign,
    Barrier,
    Block,
    Expr,
    Fence,
    If,
    ItemQuery,
    Kernel,
    Query,
    Stmt,
    Var,
)
from fusionq.ir.types import ScalarType
from fusionq.ir.walk import expressions, rewrite_body

IDS: tuple[Query, ...] = ("global_id", "local_id", "local_linear_id")
"""What differs from work-item to work-item."""


def with_id_variables(kernel: Kernel, body: Body) -> Kernel:
    """``kernel`` with ``body``, which has no nested blocks, and its ids in variables."""
    variables: dict[str, ScalarType] = {}
    parts: list[Stmt] = []
    between = list(_between_barriers(body))
    for place, part in enumerate(between):
        behind = None if len(between) == 1 else f" behind {place}" if place else ""
        parts += _asked_once(part, variables, behind)
    return replace(kernel, body=tuple(parts), variables=(*kernel.variables, *variables.items()))


def _between_barriers(body: Body) -> Iterator[Body]:
    """The parts of ``body``: all but the first begin with a barrier."""
    starts = [k for k, stmt in enumerate(body) if isinstance(stmt, Barrier)]
    for start, end in pairwise([0, *starts, len(body)]):
        yield body[start:end]


def _asked_once(body: Body, variables: dict[str, ScalarType], behind: str | None) -> Body:
    """``body``, a part of a kernel, with its ids in ``variables`` of names that end in ``behind``;
    None where there are no other parts."""
    guard = body[-1] if body else None
    alone = all(isinstance(stmt, (Block, Fence, Barrier)) for stmt in body[:-1])
    if isinstance(guard, If) and not guard.orelse and alone:
        return (*body[:-1], replace(guard, then=_asked_once(guard.then, variables, behind)))
    own = tuple(takewhile(lambda stmt: _is_variable_of_id(stmt, body), body))
    names = {stmt.value: stmt.name for stmt in own if isinstance(stmt, Assign)}
    rest = body[len(own) :]
    asked = sorted({e for e in expressions(rest) if _is_id(e) and e not in names}, key=_name)
    for id in asked:
        names[id] = _name(id) + (behind or "")
        variables[names[id]] = id.type
    barrier = int(bool(rest) and isinstance(rest[0], Barrier))
    return (
        *own,
        *rest[:barrier],
        *(Assign(names[id], id) for id in asked),
        *_rewritten(rest[barrier:], lambda e: Var(e.type, names[e]) if _is_id(e) else e, behind),
    )


def _rewritten(body: Body, rewrite: Callable[[Expr], Expr], behind: str | None) -> Iterator[Stmt]:
    """``body`` with its expressions rewritten, but for the guards of one of several parts."""
    for stmt in body:
        if behind is not None and isinstance(stmt, If):
            then = tuple(_rewritten(stmt.then, rewrite, behind))
            orelse = tuple(_rewritten(stmt.orelse, rewrite, behind))
            own = replace(stmt, then=(), orelse=())
            if inside(stmt.cond) is None:
                (rewritten,) = rewrite_body((own,), rewrite)
                assert isinstance(rewritten, If)
                own = rewritten
            yield replace(own, then=then, orelse=orelse)
        else:
            yield from rewrite_body((stmt,), rewrite)


def _is_variable_of_id(stmt: Stmt, body: Body) -> bool:
    """Whether ``stmt`` gives an id to a variable which keeps it."""
    return isinstance(stmt, Assign) and _is_id(stmt.value) and assignments(body, stmt.name) == 1


def _is_id(expr: Expr) -> bool:
    return isinstance(expr, ItemQuery) and expr.query in IDS


def _name(id: Expr) -> str:
    """A name that no variable of a user has."""
    assert isinstance(id, ItemQuery)
    words = id.query.replace("_", " ")
    return words if id.query == "local_linear_id" else f"{words} {id.dim}"
