"""Put sums of ids and sizes where variables hold nothing else, so that equal indices look equal.

i = item.get_id(0) + 1
out[i - 1] = a[i]         →    out[item.get_id(0) + 1 - 1] = a[item.get_id(0) + 1]
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from fusionq.ir.nodes import (
    Assign,
    Binary,
    Const,
    Expr,
    Extent,
    ItemQuery,
    Kernel,
    Param,
    Stmt,
    Unary,
    Var,
)
from fusionq.ir.types import INT64
from fusionq.ir.walk import assigned_variable, operands, rewrite, rewrite_body, statements


def propagate_indices(kernel: Kernel) -> Kernel:
    """``kernel`` without int64 variables that are assigned once, a sum of the work-item's ids,
    sizes and scalars."""
    times = Counter(assigned_variable(s) for s in statements(kernel.body))
    sums: dict[str, Expr] = {}

    def expr(e: Expr) -> Expr:
        return sums.get(e.name, e) if isinstance(e, Var) else e

    for s in statements(kernel.body):
        if isinstance(s, Assign) and s.value.type == INT64 and times[s.name] == 1:
            value = rewrite(s.value, expr)
            if is_fixed(value):
                sums[s.name] = value

    def stmt(s: Stmt) -> tuple[Stmt, ...]:
        return () if isinstance(s, Assign) and s.name in sums else (s,)

    return replace(
        kernel,
        body=rewrite_body(kernel.body, expr, stmt),
        variables=tuple(v for v in kernel.variables if v[0] not in sums),
    )


def is_fixed(expr: Expr) -> bool:
    """Whether ``expr`` is a sum that has one value for a work-item, wherever it stands."""
    match expr:
        case Const() | Param() | Extent() | ItemQuery():
            return True
        case Binary(_, "add" | "sub") | Unary(_, "neg" | "pos"):
            return all(map(is_fixed, operands(expr)))
        case Binary(_, "mul", lhs, rhs):
            return (isinstance(lhs, Const) and is_fixed(rhs)) or (
                isinstance(rhs, Const) and is_fixed(lhs)
            )
    return False
