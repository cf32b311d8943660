"""A kernel over a plain range as one over another's work-groups (strip-mining, and a change of
basis): each work-group does neighbouring ids, or a row.

    add(a, b):  # over range(n)                  add(a, b):  # work-groups of 1 × 128
        a[i] = a[i] + b[i]              →            if l < 4:
                                                         a[4 * g + l] = a[4 * g + l] + b[4 * g + l]

    scale(a, b):  # over (rows, columns)         scale(a, b):  # work-groups of 1 × 128
        a[i, j] = a[i, j] * b[i]        →            for j in range(l, columns, 128):
                                                         a[g, j] = a[g, j] * b[g]

Here ``i`` and ``j`` are ids, ``g`` the number of the work-group and ``l`` the place in it.  Each
work-item of the range is done by one of the new ones, and by one only, where the range has as many
times ``each`` work-items, or as many rows, as there are work-groups.  So what a work-group has
computed together, such as the sums of some rows, is where the elements are that its work-items read
next.  Of one work-group all ids are a work-item's place, so that ``g`` is not there: isl takes
seconds for what ``5000 * g + l + 256 * t`` reaches, and a moment for ``l + 256 * t``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.int64_operations import int64
from fusionq.ir.nodes import (
    Compare,
    Const,
    Expr,
    For,
    If,
    ItemQuery,
    Kernel,
    Stmt,
    Var,
)
from fusionq.ir.types import INT64
from fusionq.ir.walk import rewrite_body, statements


def lanes_of(local: Sequence[int]) -> int | None:
    """The work-items of a work-group of ``local`` that stand in one row; None where work-groups are
    not rows."""
    rows = len(local) <= 2 and all(side == 1 for side in local[:-1])
    return local[-1] if rows else None


def items_of_groups(
    kernel: Kernel, local: Sequence[int], each: int, alone: bool = False
) -> Kernel:
    """``kernel``, of one dimension, over work-groups of ``local``, of which each does ``each``
    neighbouring work-items; ``alone``: there is one work-group.  It asks for global ids and ranges
    only, and no work-item waits for others."""
    assert kernel.ndim == 1 and each >= 1
    group, lane, groups = _places(local)
    if alone:
        group, groups = Const(INT64, 0), Const(INT64, 1)
    lanes = local[-1]
    if each > lanes:
        lane = ItemQuery("local_id", len(local) - 1)
        (place,) = loop_variables(kernel, 1)
        own: Expr = Var(INT64, place)
    else:
        place, own = "", lane
    factor = Const(INT64, each)
    id_ = int64("add", int64("mul", factor, group), own) if each > 1 else group
    count = int64("mul", factor, groups) if each > 1 else groups
    body = with_ids(kernel, (id_,), (count,))
    if place:
        made: Stmt = For(place, lane, factor, Const(INT64, lanes), body)
    else:
        made = If(Compare("lt", lane, factor), body)
    return replace(kernel, ndim=len(local), body=(made,))


def rows_of_groups(kernel: Kernel, local: Sequence[int], inner: Sequence[Expr]) -> Kernel:
    """``kernel``, of two dimensions or three, over work-groups of ``local``, of which each does one
    of its first dimension's ids; ``inner`` has the extents of the others.  It asks for global ids
    and ranges only, has no arrays of its own, and no work-item waits for others."""
    assert len(inner) == kernel.ndim - 1 >= 1
    group, _, groups = _places(local)
    lane = ItemQuery("local_id", len(local) - 1)
    names = loop_variables(kernel, len(inner))
    ids = group, *(Var(INT64, name) for name in names)
    body = with_ids(kernel, ids, (groups, *inner))
    starts: list[Expr] = [*[Const(INT64, 0)] * (len(inner) - 1), lane]
    steps = [1] * (len(inner) - 1) + [local[-1]]
    for name, start, stop, step in reversed(list(zip(names, starts, inner, steps, strict=True))):
        body = (For(name, start, stop, Const(INT64, step), body),)
    return replace(kernel, ndim=len(local), body=body)


def _places(local: Sequence[int]) -> tuple[Expr, Expr, Expr]:
    """The number of a work-item's work-group, its place in that, and how many there are."""
    lanes = lanes_of(local)
    assert lanes is not None
    if len(local) == 2:
        return ItemQuery("global_id", 0), ItemQuery("global_id", 1), ItemQuery("global_range", 0)
    id_, whole = ItemQuery("global_id", 0), Const(INT64, lanes)
    groups = int64("floordiv", ItemQuery("global_range", 0), whole)
    return int64("floordiv", id_, whole), int64("mod", id_, whole), groups


def loop_variables(kernel: Kernel, count: int) -> list[str]:
    """Names for so many loops around what ``kernel`` does."""
    taken = [name for name, _ in kernel.variables]
    taken += [s.var for s in statements(kernel.body) if isinstance(s, For)]
    taken += [each.name for each in (*kernel.params, *kernel.arrays)]
    names = FreshNames(taken)
    return [names.fresh("place") for _ in range(count)]


def with_ids(kernel: Kernel, ids: Sequence[Expr], ranges: Sequence[Expr]) -> tuple[Stmt, ...]:
    """The body of ``kernel`` with these as its global ids and ranges."""

    def expr(e: Expr) -> Expr:
        match e:
            case ItemQuery("global_id", dim):
                return ids[dim]
            case ItemQuery("global_range", dim):
                return ranges[dim]
        return e

    return rewrite_body(kernel.body, expr)
