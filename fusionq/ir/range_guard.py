"""The condition around a kernel's body that keeps out the work-items beyond its range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusionq.base.frozen import dataclass
from fusionq.ir.conjunctions import conjuncts
from fusionq.ir.nodes import (
    Assign,
    Binary,
    Block,
    Cast,
    Compare,
    Const,
    Expr,
    Extent,
    If,
    ItemQuery,
    Logical,
    Param,
    Select,
    Stmt,
    Var,
)
from fusionq.ir.types import INT64
from fusionq.ir.walk import has_barrier, subexpressions


@dataclass(frozen=True, slots=True)
class RangeGuard:
    """``before`` computes ids, ``guard`` holds all the rest.  ``limits``: for each dimension that
    the guard asks about, what the id is below."""

    before: tuple[Stmt, ...]
    guard: If
    limits: dict[int, Expr]


def range_guard(body: Sequence[Stmt]) -> RangeGuard | None:
    """The guard that ``body`` begins with, if all of it but ids stands inside, and no barrier."""
    if not body:
        return None
    *before, last = body
    ids = {s.name: s.value for s in before if isinstance(s, Assign) and is_global_id(s.value)}
    if len(ids) < len(before) or not isinstance(last, If) or last.orelse or has_barrier((last,)):
        return None
    limits: dict[int, Expr] = {}
    for cond in conjuncts(last.cond):
        if isinstance(cond, Compare) and isinstance(cond.lhs, Var):
            cond = replace(cond, lhs=ids.get(cond.lhs.name, cond.lhs))
        limited = limited_id(cond)
        if limited is None or limited[0] in limits:
            return None
        limits[limited[0]] = limited[1]
    return RangeGuard(tuple(before), last, limits)


def whole_range(body: Sequence[Stmt], ndim: int) -> tuple[tuple[Stmt, ...], dict[int, Expr]] | None:
    """What a kernel of ``ndim`` dimensions, whose ``body`` has no nested blocks, does below limits
    in each of them, with its headings, and these limits; None where it does more, or less is
    limited."""
    labels = tuple(s for s in body if isinstance(s, Block))
    guard = range_guard([s for s in body if not isinstance(s, Block)])
    if guard is None or guard.before or set(guard.limits) != set(range(ndim)):
        return None
    return (*labels, *guard.guard.then), guard.limits


def limited_id(cond: Expr) -> tuple[int, Expr] | None:
    """The dimension of the global id of which ``cond`` asks whether it is below a limit that is the
    same for all, and that limit."""
    match cond:
        case Compare("lt", ItemQuery("global_id", dim), limit) if limit.type == INT64:
            return (dim, limit) if is_same_for_all(limit) else None
    return None


def is_global_id(expr: Expr) -> bool:
    """Whether it is a work-item's global id in some dimension."""
    return isinstance(expr, ItemQuery) and expr.query == "global_id"


def is_same_for_all(limit: Expr) -> bool:
    """Whether ``limit`` is made of arguments alone, and so the same wherever it is asked for."""
    return all(isinstance(e, _SAME) for e in subexpressions(limit))


_SAME = (Param, Extent, Const, Cast, Binary, Select, Compare, Logical)
