"""Guards and users' conditions on ids are decided for whole work-groups.

    if i < n:                       if first + size <= n:
        inner                           inner
    if i < m:              →        else if first < n:
        other                           if i < n:
                                            inner
                                    …

Intel's CPU compiler makes a bound of its loop over work-items of a guard that holds a whole kernel.
Of others it makes masks, with which all work-items run what a guard holds.  Those beyond an array's
memory are costly, since a masked access to a page that is not there is a microcode assist: twenty
kernels of an optimiser's step over five ranges in one take 31 ms, decided for whole groups 0.79;
``if i < m`` over a million work-items and arrays of 4,096 elements 19.7 ms and 0.05.
Beside barriers the masks cost, too: a sum of 16.7 million floats takes 7.3 ms, without the guard
2.2; there a barrier in the rare branch keeps the compiler from making masks of it (2.5 ms).
"""

from __future__ import annotations

from dataclasses import replace

from fusionq.codegen.group_conditions import begins, inside, skipped_outside
from fusionq.codegen.scoping import Body
from fusionq.ir.nodes import (
    Barrier,
    If,
    Stmt,
)
from fusionq.ir.range_guard import range_guard
from fusionq.ir.walk import expressions, has_barrier

MOST_NODES = 400
"""Expressions of the largest guarded part that is worth having twice."""

_BARRIER = Barrier(global_memory=False)


def decided_for_groups(body: Body) -> Body:
    """``body`` with the parts under guards twice: for work-groups inside the range, and for those
    at its edge; other work-groups run neither."""
    whole = None if has_barrier(body) else range_guard(body)
    if whole is not None:
        inner = replace(whole.guard, then=skipped_outside(whole.guard.then))
        return (*whole.before, inner)
    return tuple(_split(stmt, has_barrier(body)) for stmt in body)


def _split(stmt: Stmt, beside_barrier: bool) -> Stmt:
    if not isinstance(stmt, If) or has_barrier((stmt,)):
        return stmt
    if stmt.orelse:
        return stmt if beside_barrier else skipped_outside((stmt,))[0]
    begun = begins(stmt.cond)
    if begun is None:
        return stmt
    edge = stmt if beside_barrier else If(begun, (stmt,), (), stmt.span)
    whole = inside(stmt.cond)
    if whole is None or sum(1 for _ in expressions(stmt.then)) > MOST_NODES:
        return stmt if beside_barrier else edge
    return If(whole, stmt.then, (edge, _BARRIER) if beside_barrier else (edge,), stmt.span)
