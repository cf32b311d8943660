"""Guards are decided for whole work-groups, beside barriers and where there are several.

    if i < n:                       if first + size <= n:
        inner                           inner
    if i < m:              →        else if first < n:
        other                           if i < n:
                                            inner
                                    …

Intel's CPU compiler makes a bound of its loop over work-items of a guard that holds a whole kernel.
Of others it makes masks, with which all work-items run what a guard holds.  Those beyond an array's
memory are costly, since a masked access to a page that is not there is a microcode assist: twenty
kernels of an optimiser's step over five ranges in one take 31 ms, decided for whole groups 0.79.
Beside barriers the masks cost, too: a sum of 16.7 million floats takes 7.3 ms, without the guard
2.2; there a barrier in the rare branch keeps the compiler from making masks of it (2.5 ms).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fusionq.codegen.scoping import Body
from fusionq.ir.nodes import (
    Barrier,
    Binary,
    Compare,
    Const,
    Expr,
    Extent,
    If,
    ItemQuery,
    Logical,
    Param,
    Stmt,
)
from fusionq.ir.range_guard import range_guard
from fusionq.ir.types import INT64
from fusionq.ir.walk import expressions, has_barrier, subexpressions

MOST_NODES = 400
"""Expressions of the largest guarded part that is worth having twice."""

_BARRIER = Barrier(global_memory=False)


def decided_for_groups(body: Body) -> Body:
    """``body`` with the parts under guards twice: for work-groups inside the range, and for those
    at its edge; other work-groups run neither."""
    if not has_barrier(body) and range_guard(body) is not None:
        return body
    return tuple(_split(stmt, has_barrier(body)) for stmt in body)


def _split(stmt: Stmt, beside_barrier: bool) -> Stmt:
    if not isinstance(stmt, If) or stmt.orelse or has_barrier(stmt.then):
        return stmt
    begins = _of_group(stmt.cond, _begins)
    if begins is None:
        return stmt
    edge = stmt if beside_barrier else If(begins, (stmt,), (), stmt.span)
    inside = _of_group(stmt.cond, _inside)
    if inside is None or sum(1 for _ in expressions(stmt.then)) > MOST_NODES:
        return stmt if beside_barrier else edge
    return If(inside, stmt.then, (edge, _BARRIER) if beside_barrier else (edge,), stmt.span)


def _of_group(cond: Expr, decided: Callable[[Compare, int], Expr | None]) -> Expr | None:
    """What ``decided`` makes of the comparisons with ids that ``cond`` consists of; None where
    there are others, or it makes nothing of one."""
    if isinstance(cond, Logical) and cond.op == "and":
        lhs, rhs = _of_group(cond.lhs, decided), _of_group(cond.rhs, decided)
        return None if lhs is None or rhs is None else Logical("and", lhs, rhs)
    if not isinstance(cond, Compare) or not isinstance(cond.lhs, ItemQuery):
        return None
    if cond.lhs.query != "global_id" or not _same_for_all(cond.rhs):
        return None
    return decided(cond, cond.lhs.dim)


def _inside(cond: Compare, dim: int) -> Expr | None:
    """Whether the id of each of a group's work-items is below the bound."""
    if cond.op != "lt":
        return None
    end = Binary(INT64, "add", _first(dim), ItemQuery("local_range", dim))
    return Compare("le", end, cond.rhs)


def _begins(cond: Compare, dim: int) -> Expr | None:
    """Whether the id of one of a group's work-items is below the bound, or is the first of all."""
    if cond.op != "lt" and (cond.op, cond.rhs) != ("eq", Const(INT64, 0)):
        return None
    return replace(cond, lhs=_first(dim))


def _first(dim: int) -> Expr:
    """The id of a group's first work-item.  The last group of a dimension may be smaller than the
    others, so that the number of a group and its size do not give it."""
    return Binary(INT64, "sub", ItemQuery("global_id", dim), ItemQuery("local_id", dim))


def _same_for_all(limit: Expr) -> bool:
    return all(isinstance(e, (Param, Extent, Const, Binary)) for e in subexpressions(limit))
