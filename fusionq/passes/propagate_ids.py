"""Put work-item ids where variables hold nothing else, so that equal indices look equal.

i = item.get_id(0)
out[i] = a[i]         →    out[item.get_id(0)] = a[item.get_id(0)]

The id of a work-group times its size, and the local id, are the global id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from fusionq.ir.nodes import Assign, Binary, Const, Expr, ItemQuery, Kernel, Stmt, Var
from fusionq.ir.types import INT64
from fusionq.ir.walk import assigned_variable, rewrite_body, statements


def propagate_ids(kernel: Kernel, local_range: Sequence[int] | None = None) -> Kernel:
    """``kernel`` without variables that only ever hold one id or range of the work-item, in
    work-groups of ``local_range`` if that is known."""
    while True:
        assignments = [s for s in statements(kernel.body) if isinstance(s, Assign)]
        times = Counter(assigned_variable(s) for s in statements(kernel.body))
        ids = {
            s.name: s.value
            for s in assignments
            if times[s.name] == 1 and isinstance(s.value, ItemQuery)
        }

        def expr(e: Expr, ids: dict[str, ItemQuery] = ids) -> Expr:
            if isinstance(e, Var):
                return ids.get(e.name, e)
            return _global_id(e, local_range)

        def stmt(s: Stmt, ids: dict[str, ItemQuery] = ids) -> tuple[Stmt, ...]:
            return () if isinstance(s, Assign) and s.name in ids else (s,)

        body = rewrite_body(kernel.body, expr, stmt)
        if body == kernel.body:
            return kernel
        kept = tuple(v for v in kernel.variables if v[0] not in ids)
        kernel = replace(kernel, body=body, variables=kept)


def _global_id(e: Expr, local_range: Sequence[int] | None) -> Expr:
    """The global id, if ``e`` is that: it begins with 0, as local ids and those of groups do."""
    if isinstance(e, Binary) and e.op == "add" and e.type == INT64:
        for first, local in ((e.lhs, e.rhs), (e.rhs, e.lhs)):
            if isinstance(local, ItemQuery) and local.query == "local_id":
                dim = local.dim
                sizes: list[Expr] = [ItemQuery("local_range", dim)]
                if local_range is not None:
                    sizes.append(Const(INT64, local_range[dim]))
                group = ItemQuery("group_id", dim)
                if isinstance(first, Binary) and first.op == "mul" and (
                    (first.lhs == group and first.rhs in sizes)
                    or (first.rhs == group and first.lhs in sizes)
                ):
                    return ItemQuery("global_id", dim)
    return e
