"""A kernel over a plain range as one over another's work-groups (strip-mining, and a change of
basis): each work-group's first work-items do neighbouring ids.

    add(a, b):  # over range(n)                  add(a, b):  # work-groups of 1 × 128
        a[i] = a[i] + b[i]              →            if l < 4:
                                                         a[4 * g + l] = a[4 * g + l] + b[4 * g + l]

Here ``i`` is the id, ``g`` the number of the work-group and ``l`` the place in it.  Each work-item
of the range is done by one of the new ones, and by one only, where the range has as many times
``each`` work-items as there are work-groups.  So what a work-group has computed together, such as
the sums of some rows, is where the elements are that its work-items read next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusionq.ir.nodes import Binary, BinaryOp, Compare, Const, Expr, If, ItemQuery, Kernel
from fusionq.ir.types import INT64
from fusionq.ir.walk import rewrite_body


def lanes_of(local: Sequence[int]) -> int | None:
    """The work-items of a work-group of ``local`` that stand in one row; None where work-groups are
    not rows."""
    rows = len(local) <= 2 and all(side == 1 for side in local[:-1])
    return local[-1] if rows else None


def items_of_groups(kernel: Kernel, local: Sequence[int], each: int) -> Kernel:
    """``kernel``, of one dimension, over work-groups of ``local``, of which each does ``each``
    neighbouring work-items, no more than ``lanes_of(local)``.  It asks for global ids and ranges
    only, and no work-item waits for others."""
    lanes = lanes_of(local)
    assert kernel.ndim == 1 and lanes is not None and 1 <= each <= lanes
    if len(local) == 1:
        whole = Const(INT64, lanes)
        group = _binary("floordiv", ItemQuery("global_id", 0), whole)
        lane = _binary("mod", ItemQuery("global_id", 0), whole)
        groups = _binary("floordiv", ItemQuery("global_range", 0), whole)
    else:
        group, lane = ItemQuery("global_id", 0), ItemQuery("global_id", 1)
        groups = ItemQuery("global_range", 0)
    factor = Const(INT64, each)
    id_ = _binary("add", _binary("mul", factor, group), lane) if each > 1 else group
    count = _binary("mul", factor, groups) if each > 1 else groups

    def expr(e: Expr) -> Expr:
        match e:
            case ItemQuery("global_id"):
                return id_
            case ItemQuery("global_range"):
                return count
        return e

    body = rewrite_body(kernel.body, expr)
    guard = Compare("lt", lane, factor)
    return replace(kernel, ndim=len(local), body=(If(guard, body),))


def _binary(op: BinaryOp, lhs: Expr, rhs: Expr) -> Expr:
    return Binary(INT64, op, lhs, rhs)
