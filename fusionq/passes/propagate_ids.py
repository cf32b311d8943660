"""Put work-item ids where variables hold nothing else, so that equal indices look equal.

i = item.get_id(0)
out[i] = a[i]         →    out[item.get_id(0)] = a[item.get_id(0)]
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from fusionq.ir.nodes import Assign, Expr, ItemQuery, Kernel, Stmt, Var
from fusionq.ir.walk import assigned_variable, rewrite_body, statements


def propagate_ids(kernel: Kernel) -> Kernel:
    """``kernel`` without variables that only ever hold one id or range of the work-item."""
    assignments = [s for s in statements(kernel.body) if isinstance(s, Assign)]
    times = Counter(assigned_variable(s) for s in statements(kernel.body))
    ids = {
        s.name: s.value
        for s in assignments
        if times[s.name] == 1 and isinstance(s.value, ItemQuery)
    }

    def expr(e: Expr) -> Expr:
        return ids.get(e.name, e) if isinstance(e, Var) else e

    def stmt(s: Stmt) -> tuple[Stmt, ...]:
        return () if isinstance(s, Assign) and s.name in ids else (s,)

    return replace(
        kernel,
        body=rewrite_body(kernel.body, expr, stmt),
        variables=tuple(v for v in kernel.variables if v[0] not in ids),
    )
