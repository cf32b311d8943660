"""Reductions of a whole range: each work-group stores a partial result of its own.

    total = total + a[i]    →    total = 0.0
                                 if i < range_0:
                                     total = total + a[i]
                                 r_group = reduce_over_group(total, "add")
                                 if local_linear_id == 0:
                                     r[group_linear_id] = r_group

The condition stands where the kernel's own range is smaller than that of the work-groups.  Where
one work-group is the whole range, it combines with what the result was.  The functions of the
work-groups have one order of operations on every device (``GroupCall.in_order``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from fusionq.base.frozen import dataclass
from fusionq.ir.conjunctions import conjunction
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Binary,
    Cast,
    Compare,
    Const,
    Expr,
    GroupCall,
    GroupOp,
    If,
    ItemQuery,
    Kernel,
    Load,
    Param,
    ScalarParam,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.types import INT64, ScalarType
from fusionq.ir.walk import rewrite_body
from fusionq.language.combine import identity
from fusionq.passes.group_functions import combination, linear_local_id

Result: TypeAlias = Literal["partial", "combined", "initialized"]
"""What a work-group stores: its own partial result; or, where it is the whole range, the result:
combined with what was there, or instead of it."""


@dataclass(frozen=True, slots=True)
class GroupReduction:
    """A reduction by ``op``: ``total`` is the variable in which a work-item combines values of
    ``type``, ``array`` the parameter that takes the work-groups' results, of ``element``."""

    op: GroupOp
    type: ScalarType
    total: str
    array: str
    element: ScalarType
    result: Result


def reduce_by_groups(
    kernel: Kernel,
    reductions: Sequence[GroupReduction],
    local_range: Sequence[int],
    extents: Sequence[str],
) -> Kernel:
    """``kernel``, for work-groups of ``local_range``, with the ``reductions``.  ``extents``: names
    for parameters that hold the extents of the kernel's own range, none where that is the range of
    the work-groups."""
    body = _inside_range(kernel.body, extents)
    before: list[Stmt] = []
    behind: list[Stmt] = []
    variables = dict(kernel.variables)
    first = Compare("eq", linear_local_id(local_range), Const(INT64, 0))
    for r in reductions:
        start = Const(r.type, identity(r.op, r.type.dtype).item())
        before.append(Assign(r.total, start, kernel.span))
        found = f"{r.total}_of_group"
        variables |= {r.total: r.type, found: r.type}
        total = Var(r.type, r.total)
        behind.append(
            GroupCall("reduce", r.op, total, None, found, kernel.span, in_order=True)
        )
        behind.append(If(first, (_store(r, Var(r.type, found), kernel),), span=kernel.span))
    arrays = [ArrayParam(r.array, r.element, 1) for r in reductions]
    return replace(
        kernel,
        params=(*kernel.params, *arrays, *[ScalarParam(name, INT64) for name in extents]),
        variables=tuple(variables.items()),
        body=(*before, *body, *behind),
    )

def _inside_range(body: tuple[Stmt, ...], extents: Sequence[str]) -> tuple[Stmt, ...]:
    """``body`` for the work-items inside the range of these extents."""
    if not extents:
        return body
    own = [Param(INT64, name) for name in extents]

    def expr(e: Expr) -> Expr:
        is_extent = isinstance(e, ItemQuery) and e.query == "global_range"
        return own[e.dim] if is_extent else e  # type: ignore[union-attr]  # it is an ItemQuery

    inside: list[Expr] = [
        Compare("lt", ItemQuery("global_id", d), extent) for d, extent in enumerate(own)
    ]
    return (If(conjunction(inside), rewrite_body(body, expr)),)


def _store(r: GroupReduction, total: Expr, kernel: Kernel) -> Stmt:
    """The store of what a work-group has combined."""
    if r.result == "partial":
        place: Expr = ItemQuery("group_id", 0)
        for d in range(1, kernel.ndim):
            row = Binary(INT64, "mul", place, ItemQuery("group_range", d))
            place = Binary(INT64, "add", row, ItemQuery("group_id", d))
    else:
        place = Const(INT64, 0)
    if r.result == "combined":
        present = _converted(Load(r.element, r.array, (place,), kernel.span), r.type)
        total = combination(r.type, r.op, present, total)
    return Store(r.array, (place,), _converted(total, r.element), kernel.span)


def _converted(value: Expr, type: ScalarType) -> Expr:
    if value.type == type:
        return value
    if type.is_bool:
        return Compare("ne", value, Const(value.type, value.type.dtype.type(0).item()))
    return Cast(type, value)
