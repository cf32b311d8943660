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
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from fusionq.codegen.scoping import Body, assignments
from fusionq.ir.nodes import Assign, Block, Expr, Fence, If, ItemQuery, Kernel, Query, Stmt, Var
from fusionq.ir.types import ScalarType
from fusionq.ir.walk import expressions, rewrite_body

IDS: tuple[Query, ...] = ("global_id", "local_id", "local_linear_id")
"""What differs from work-item to work-item."""


def with_id_variables(kernel: Kernel, body: Body) -> Kernel:
    """``kernel`` with ``body``, which has no nested blocks, and its ids in variables."""
    variables: dict[str, ScalarType] = {}
    body = _asked_once(body, variables)
    return replace(kernel, body=body, variables=(*kernel.variables, *variables.items()))


def _asked_once(body: Body, variables: dict[str, ScalarType]) -> Body:
    guard = body[-1] if body else None
    alone = all(isinstance(stmt, (Block, Fence)) for stmt in body[:-1])
    if isinstance(guard, If) and not guard.orelse and alone:
        return (*body[:-1], replace(guard, then=_asked_once(guard.then, variables)))
    own = tuple(takewhile(lambda stmt: _is_variable_of_id(stmt, body), body))
    names = {stmt.value: stmt.name for stmt in own if isinstance(stmt, Assign)}
    rest = body[len(own) :]
    asked = sorted({e for e in expressions(rest) if _is_id(e) and e not in names}, key=_name)
    for id in asked:
        names[id] = _name(id)
        variables[_name(id)] = id.type
    return (
        *own,
        *(Assign(_name(id), id) for id in asked),
        *rewrite_body(rest, lambda e: Var(e.type, names[e]) if _is_id(e) else e),
    )


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
