"""How much a kernel computes, about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fusionq.analysis.item_space import global_range
from fusionq.analysis.submission import ArrayArgument, ScalarArgument, Submission
from fusionq.ir.functions import FLOAT_FUNCTIONS
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Atomic,
    Binary,
    Call,
    Const,
    Expr,
    Extent,
    For,
    ItemQuery,
    Kernel,
    Load,
    Param,
    Stmt,
    Store,
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

DIVISION = 0.3
"""Of what a mathematical function takes, a division or a square root."""

_CHEAP = frozenset({"floor", "ceil", "trunc", "rint", "copysign"})
"""Of ``FLOAT_FUNCTIONS``, those that are single instructions."""


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
    return _Counting(kernel, sizes, lambda stmt: sum(1 for _ in _expressions(stmt))).total


def accessed_bytes(kernel: Kernel, sizes: Sizes, distinct: bool = False) -> float:
    """The bytes that one work-item, the first, loads and stores, counted like ``operations``; of
    loads that are ``distinct``, loads under the same indices once."""
    params = [param for param in kernel.params if isinstance(param, ArrayParam)]
    dtypes = {param.name: param.dtype for param in params}
    dtypes |= {array.name: array.dtype for array in kernel.arrays}
    known: set[Load] = set()

    def accessed(stmt: Stmt) -> float:
        loads: Collection[Load] = [e for e in _expressions(stmt) if isinstance(e, Load)]
        if distinct:
            loads = set(loads) - known
            known.update(loads)
        nbytes = sum(e.type.nbytes for e in loads)
        if isinstance(stmt, (Store, Atomic)):
            nbytes += dtypes[stmt.array].nbytes
        return nbytes

    return _Counting(kernel, sizes, accessed).total


def functions(kernel: Kernel, sizes: Sizes) -> float:
    """The mathematical functions that one work-item, the first, evaluates, counted like
    ``operations``; divisions and square roots as ``DIVISION`` of one."""
    return _Counting(
        kernel, sizes, lambda stmt: sum(_weight(e) for e in _expressions(stmt))
    ).total


def _weight(expr: Expr) -> float:
    match expr:
        case Call(function="sqrt") | Binary(op="truediv" | "floordiv" | "mod"):
            return DIVISION
        case Binary(op="pow"):
            return 1.0
        case Call(function=function) if function in FLOAT_FUNCTIONS and function not in _CHEAP:
            return 1.0
    return 0.0


def _expressions(stmt: Stmt) -> Iterator[Expr]:
    """What a statement itself evaluates, without those inside it."""
    for expr in statement_expressions(stmt):
        yield from subexpressions(expr)


class _Counting:
    """``total``: the sum of ``count`` over what a work-item does."""

    def __init__(self, kernel: Kernel, sizes: Sizes, count: Callable[[Stmt], float]) -> None:
        self.sizes = sizes
        self.count = count
        every = list(statements(kernel.body))
        times = Counter(assigned_variable(s) for s in every)
        self.variables = {
            s.name: s.value for s in every if isinstance(s, Assign) and times[s.name] == 1
        }
        self.total = self.body(kernel.body)

    def body(self, body: Sequence[Stmt]) -> float:
        total = 0.0
        for stmt in body:
            total += self.count(stmt)
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
