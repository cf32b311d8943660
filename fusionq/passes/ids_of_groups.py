"""Ids of work-groups in terms of the global id, where work-items are done one by one.

    out[i] += starts[item.get_group().get_group_id(0)]    →    out[i] += starts[i // 256]
    x[i] = table[item.get_local_id(0)]                         x[i] = table[i % 256]

A tile of a persistent kernel holds any neighbouring work-items, of several work-groups or of a part
of one.  Behind this, the global id is all in which they differ: whoever does several of them at
once, or asks what is the same for a row, looks at nothing else.  Legal since the user's work-groups
divide their range, so that ids of work-items and work-groups begin with 0 together.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.ir.nodes import Binary, Const, Expr, ItemQuery, Stmt
from fusionq.ir.types import INT64
from fusionq.ir.walk import rewrite_body


def in_global_ids(body: Sequence[Stmt], local_range: Sequence[int]) -> tuple[Stmt, ...]:
    """``body`` of a kernel that is run in work-groups of ``local_range``, without their ids."""

    def expr(e: Expr) -> Expr:
        match e:
            case ItemQuery("group_id", dim):
                return Binary(INT64, "floordiv", ItemQuery("global_id", dim), size(dim))
            case ItemQuery("local_id", dim):
                return Binary(INT64, "mod", ItemQuery("global_id", dim), size(dim))
            case ItemQuery("local_range", dim):
                return size(dim)
        return e

    def size(dim: int) -> Const:
        return Const(INT64, local_range[dim])

    return rewrite_body(body, expr)
