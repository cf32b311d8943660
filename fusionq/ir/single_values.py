"""The values of variables that have but one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fusionq.ir.nodes import Assign, Expr, Stmt
from fusionq.ir.walk import assigned_variable, statements, with_values


def single_values(body: Iterable[Stmt]) -> dict[str, Expr]:
    """Of the variables that are assigned once in ``body``, in terms of others."""
    every = list(statements(body))
    times = Counter(map(assigned_variable, every))
    values: dict[str, Expr] = {}
    for stmt in every:
        if isinstance(stmt, Assign) and times[stmt.name] == 1:
            values[stmt.name] = with_values(stmt.value, values)
    return values
