"""A kernel over the parts of points as one over points: each work-item does all parts of one.

    damp(a, f):  # over (n, 4)                   damp(a, f):  # over n
        a[i, k] = a[i, k] * f           →            for k in range(4):
                                                         a[i, k] = a[i, k] * f

The work-items of a range are in no order, so that those of a point may follow each other.
"""

from __future__ import annotations

from dataclasses import replace

from fusionq.ir.nodes import Const, Expr, For, ItemQuery, Kernel, Var
from fusionq.ir.types import INT64
from fusionq.passes.items_of_groups import loop_variables, with_ids


def points_of_items(kernel: Kernel, parts: int) -> Kernel:
    """``kernel`` over a range of one dimension less, whose work-items do so many ``parts`` each.
    It asks for global ids and ranges only, has no arrays of its own, and no work-item waits for
    others."""
    assert kernel.ndim > 1 and parts >= 1 and not kernel.arrays
    (part,) = loop_variables(kernel, 1)
    leading = range(kernel.ndim - 1)
    ids: list[Expr] = [ItemQuery("global_id", d) for d in leading]
    ranges: list[Expr] = [ItemQuery("global_range", d) for d in leading]
    whole = Const(INT64, parts)
    body = with_ids(kernel, [*ids, Var(INT64, part)], [*ranges, whole])
    loop = For(part, Const(INT64, 0), whole, Const(INT64, 1), body)
    return replace(kernel, ndim=kernel.ndim - 1, body=(loop,))
