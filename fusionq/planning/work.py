"""How much a kernel computes, about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fusionq.analysis.item_space import global_range
from fusionq.analysis.submission import ArrayArgument, ScalarArgument, Submission
from fusionq.ir.nodes import (
    Assign,
    Binary,
    Call,
    Const,
    Expr,
    Extent,
    For,
    ItemQuery,
    Kernel,
    Param,
    Stmt,
    Var,
    While,
)
from fusionq.ir.walk import (
    assigned_variable,
    nested_bodies,
    statement_expressions,
    statements,
    subexpressions,
)

UNKNOWN_TRIPS = 32.0
"""Of a loop of which nothing is known."""


@dataclass(frozen=True)
class Sizes:
    """The values of integer parameters by name, and of arrays' extents by name and dimension."""

    params: Mapping[str, int]
    extents: Mapping[tuple[str, int], int]


def sizes_of(submission: Submission) -> Sizes:
    """The sizes of a submission."""
    return Sizes(
        {
            a.name: int(a.value)
            for a in submission.arguments
            if isinstance(a, ScalarArgument) and a.type.is_integer
        },
        {
            (a.name, dim): extent
            for a in submission.arguments
            if isinstance(a, ArrayArgument)
            for dim, extent in enumerate(a.shape)
        },
    )


def work_of(submission: Submission) -> float:
    """The scalar operations of all work-items of a submission."""
    return global_range(submission).size * operations(submission.ir, sizes_of(submission))


def operations(kernel: Kernel, sizes: Sizes) -> float:
    """Scalar operations of one work-item, the first: every expression once, those in loops as
    often as the loops run; ``UNKNOWN_TRIPS`` times where ``sizes`` do not tell."""
    return _Counting(kernel, sizes).body(kernel.body)


class _Counting:
    def __init__(self, kernel: Kernel, sizes: Sizes) -> None:
        self.sizes = sizes
        every = list(statements(kernel.body))
        times = Counter(assigned_variable(s) for s in every)
        self.variables = {
            s.name: s.value for s in every if isinstance(s, Assign) and times[s.name] == 1
        }

    def body(self, body: Sequence[Stmt]) -> float:
        total = 0.0
        for stmt in body:
            total += sum(1 for e in statement_expressions(stmt) for _ in subexpressions(e))
            trips = 1.0
            if isinstance(stmt, For):
                start, stop, step = (self.value(e) for e in (stmt.start, stmt.stop, stmt.step))
                known = start is not None and stop is not None and step
                trips = len(range(start or 0, stop or 0, step or 1)) if known else UNKNOWN_TRIPS
            elif isinstance(stmt, While):
                trips = UNKNOWN_TRIPS
            total += trips * sum(self.body(inner) for inner in nested_bodies(stmt))
        return total

    def value(self, expr: Expr) -> int | None:
        """Of an integer expression, for the first work-item; None if it is not known."""
        match expr:
            case Const():
                return int(expr.value)
            case Param():
                return self.sizes.params.get(expr.name)
            case Extent():
                return self.sizes.extents.get((expr.array, expr.dim))
            case ItemQuery() if expr.query.endswith("_id"):
                return 0
            case Var() if expr.name in self.variables:
                return self.value(self.variables[expr.name])
            case Call(function="minimum" | "pymin" | "maximum" | "pymax", args=args):
                values = [self.value(a) for a in args]
                least = expr.function in ("minimum", "pymin")
                known = [v for v in values if v is not None]
                return None if len(known) < len(values) else min(known) if least else max(known)
            case Binary(_, "add" | "sub" | "mul" | "floordiv" as op, lhs, rhs):
                a, b = self.value(lhs), self.value(rhs)
                if a is None or b is None or (op == "floordiv" and b == 0):
                    return None
                return {"add": a + b, "sub": a - b, "mul": a * b, "floordiv": a // (b or 1)}[op]
        return None
