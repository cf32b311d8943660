"""Conditions that are one for all work-items of a group, made of conditions on ids.

    id < n          →      first + size <= n: all of the group is inside
                           first < n: some of it is

In a tile of a persistent kernel, the work-items that a worker's lanes do together are a group.
"""

from __future__ import annotations

from dataclasses import replace

from fusionq.codegen.scoping import Body
from fusionq.ir.comparisons import MIRRORED
from fusionq.ir.nodes import (
    Binary,
    Compare,
    CompareOp,
    Const,
    Expr,
    Fence,
    If,
    ItemQuery,
    Logical,
    Stmt,
)
from fusionq.ir.range_guard import is_global_id, is_same_for_all, limited_id
from fusionq.ir.types import INT64
from fusionq.ir.walk import expressions, has_barrier

FENCE = Fence("relaxed", "work_item")
"""It orders nothing, and compilers do not look behind it."""

_SMALL = 1 << 32
"""What is added to an id up to here does not wrap."""


def inside(guard: Expr) -> Expr | None:
    """Whether all work-items of a group pass ``guard``; None where it is not that ids are below
    bounds which are the same for all."""
    if isinstance(guard, Logical) and guard.op == "and":
        lhs, rhs = inside(guard.lhs), inside(guard.rhs)
        return None if lhs is None or rhs is None else replace(guard, lhs=lhs, rhs=rhs)
    limited = limited_id(guard)
    if limited is None:
        return None
    dim, limit = limited
    end = Binary(INT64, "add", _first(dim), ItemQuery("local_range", dim))
    return Compare("le", end, limit)


def begins(cond: Expr, lanes: int, rows_only: bool = False) -> Expr | None:
    """What holds for the work-items of a group that are side by side in dimension ``lanes`` if one
    of them passes ``cond``; None where nothing is known.  ``rows_only``: of the dimensions before
    that one, whose ids are one for all of them."""
    if isinstance(cond, Logical):
        lhs, rhs = (begins(operand, lanes, rows_only) for operand in (cond.lhs, cond.rhs))
        if lhs is not None and rhs is not None:
            return replace(cond, lhs=lhs, rhs=rhs)
        return None if cond.op == "or" else lhs or rhs
    if not isinstance(cond, Compare) or cond.op == "ne":
        return None
    op: CompareOp = cond.op
    id, limit = _id_of(cond.lhs), cond.rhs
    if id is None:
        op, id, limit = MIRRORED[op], _id_of(cond.rhs), cond.lhs
    if id is None or limit.type != INT64 or not is_same_for_all(limit):
        return None
    dim, added = id
    if dim < lanes:
        return cond
    if rows_only:
        return None
    least, greatest = _plus(_first(dim), added), _plus(_last(dim), added)
    if op == "eq":
        return Logical("and", Compare("le", least, limit), Compare("ge", greatest, limit))
    return Compare(op, least if op in ("lt", "le") else greatest, limit)


def last_dimension(body: Body) -> int:
    """The last one of which ``body`` has ids: that of lanes, or one before."""
    dims = (e.dim for e in expressions(body) if isinstance(e, ItemQuery) and is_global_id(e))
    return max(dims, default=0)


def skipped_outside(
    body: Body, between: Body = (), lanes: int | None = None, rows_only: bool = False
) -> Body:
    """``body``, in which groups, and rows of them, that are outside a condition do not run what it
    holds under masks: a masked access to a page that is not there is a microcode assist.
    ``between``: what keeps a compiler from making one condition of the group's and the
    work-item's.  ``lanes``: as of ``begins``; else the ``last_dimension``.  ``rows_only``: where
    work-items are no part of a group of the kernel's."""
    if lanes is None:
        lanes = last_dimension(body)
    return tuple([_skipped_outside(stmt, between, lanes, rows_only) for stmt in body])


def _skipped_outside(stmt: Stmt, between: Body, lanes: int, rows_only: bool) -> Stmt:
    # Of conditions with two branches the second would be there twice: see ``group_guards``.
    if not isinstance(stmt, If) or stmt.orelse or has_barrier(stmt.then):
        return stmt
    begun = begins(stmt.cond, lanes, rows_only)
    return stmt if begun is None else If(begun, (*between, stmt), (), stmt.span)


def _id_of(expr: Expr) -> tuple[int, int] | None:
    """The dimension of the global id that ``expr`` is, and what is added to it."""
    match expr:
        case ItemQuery("global_id", dim):
            return dim, 0
        case Binary(type, "add", lhs, Const(_, value)) | Binary(type, "add", Const(_, value), lhs):
            sign = 1
        case Binary(type, "sub", lhs, Const(_, value)):
            sign = -1
        case _:
            return None
    if type != INT64 or not isinstance(lhs, ItemQuery) or not is_global_id(lhs):
        return None
    return (lhs.dim, sign * int(value)) if abs(int(value)) < _SMALL else None


def _first(dim: int) -> Expr:
    """The id of a group's first work-item.  The last group of a dimension may be smaller than the
    others, so that the number of a group and its size do not give it."""
    return Binary(INT64, "sub", ItemQuery("global_id", dim), ItemQuery("local_id", dim))


def _last(dim: int) -> Expr:
    """Of its last one."""
    end = Binary(INT64, "add", _first(dim), ItemQuery("local_range", dim))
    return Binary(INT64, "sub", end, Const(INT64, 1))


def _plus(expr: Expr, added: int) -> Expr:
    return Binary(INT64, "add", expr, Const(INT64, added)) if added else expr
