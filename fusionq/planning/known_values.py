"""Integers of a kernel for one of its work-items, as far as a launch's sizes tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from fusionq.analysis.item_space import global_range, local_range
from fusionq.analysis.submission import ArrayArgument, ScalarArgument, Submission
from fusionq.base.frozen import dataclass
from fusionq.ir.interval_arithmetic import of_type, within
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Extent,
    For,
    ItemQuery,
    Kernel,
    Logical,
    Param,
    Stmt,
    Unary,
    Var,
    While,
    WorkItemLoop,
)
from fusionq.ir.walk import statements
from fusionq.passes.sources import ArgumentSource, ParamSource, RangeSource

UNKNOWN_TRIPS = 32.0
"""Of a loop of which nothing is known."""


@dataclass(frozen=True)
class Sizes:
    """The values of integer parameters by name, of arrays' extents by name and dimension, the
    ranges of the work-items and of a work-group (empty: not known)."""

    params: Mapping[str, int]
    extents: Mapping[tuple[str, int], int]
    items: tuple[int, ...] = ()
    group: tuple[int, ...] = ()


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
        tuple(global_range(submission)),
        tuple(local_range(submission) or ()),
    )


def launch_sizes(
    kernel: Kernel, sources: Mapping[str, ParamSource], submissions: Sequence[Submission]
) -> Sizes:
    """The sizes of a launch of ``kernel``, whose parameters have ``sources`` in ``submissions``."""
    params: dict[str, int] = {}
    extents: dict[tuple[str, int], int] = {}
    for param in kernel.params:
        source = sources[param.name]
        if isinstance(param, ArrayParam):
            assert isinstance(source, ArgumentSource)
            array = submissions[source.submission].arguments[source.argument]
            assert isinstance(array, ArrayArgument)
            extents |= {(param.name, d): n for d, n in enumerate(array.shape)}
        elif isinstance(source, ArgumentSource) and param.type.is_integer:
            own = submissions[source.submission]
            params[param.name] = own.number(source.argument, None)
        elif isinstance(source, RangeSource):
            params[param.name] = submissions[source.submission].number(None, source.dim)
    return Sizes(params, extents)


class KnownValues:
    """Values for the work-item in the middle of the range, at the beginning of its work-group: what
    is at the edges is rare."""

    def __init__(self, kernel: Kernel, sizes: Sizes) -> None:
        self._sizes = sizes
        self.assigned: dict[str, list[Expr]] = defaultdict(list)
        """What variables are set to."""
        for s in statements(kernel.body):
            if isinstance(s, Assign):
                self.assigned[s.name].append(s.value)

    def value(self, expr: Expr) -> int | None:
        """Of an integer expression; None if it is not known."""
        sizes = self._sizes
        match expr:
            case Const():
                return int(expr.value)
            case Param():
                return sizes.params.get(expr.name)
            case Extent():
                return sizes.extents.get((expr.array, expr.dim))
            case ItemQuery("global_id", d) if d < len(sizes.items):
                return sizes.items[d] // 2
            case ItemQuery("global_range", d) if d < len(sizes.items):
                return sizes.items[d]
            case ItemQuery() if expr.query.endswith("_id"):
                return 0
            case Var() if len(self.assigned.get(expr.name, ())) == 1:
                return self.value(self.assigned[expr.name][0])
            case Cast(type, operand) if type.is_integer and operand.type.is_integer:
                value = self.value(operand)
                fits = value is not None and within((value, value), of_type(type))
                return value if fits else None
            case Unary(op="neg" | "pos", operand=operand):
                value = self.value(operand)
                return value if value is None or expr.op == "pos" else -value
            case Call(function="minimum" | "pymin" | "maximum" | "pymax", args=args):
                values = [self.value(a) for a in args]
                least = expr.function in ("minimum", "pymin")
                known = [v for v in values if v is not None]
                return None if len(known) < len(values) else min(known) if least else max(known)
            case Binary(_, "add" | "sub" | "mul" | "floordiv" | "mod" as op, lhs, rhs):
                a, b = self.value(lhs), self.value(rhs)
                if a is None or b is None or (op in ("floordiv", "mod") and b == 0):
                    return None
                return {
                    "add": a + b, "sub": a - b, "mul": a * b,
                    "floordiv": a // (b or 1), "mod": a % (b or 1),
                }[op]  # fmt: skip
        return None

    def trips(self, stmt: Stmt) -> float:
        """How often a work-item does what is inside ``stmt``, but for conditions."""
        match stmt:
            case For():
                start, stop, step = (self.value(e) for e in (stmt.start, stmt.stop, stmt.step))
                if start is None or stop is None or not step:
                    return UNKNOWN_TRIPS
                return len(range(start, stop, step))
            case While():
                return UNKNOWN_TRIPS
            case WorkItemLoop() if self._sizes.group:
                return stmt.items / prod(self._sizes.group)
        return 1.0

    def share(self, cond: Expr) -> float:
        """Of the work-items that meet ``cond``, which compares ids: those where an id is one value,
        or less than a size; 1 where that is not known."""
        match cond:
            case Logical(op="and"):
                return self.share(cond.lhs) * self.share(cond.rhs)
            case Compare(op="eq"):
                found = self._ids(cond.lhs) | self._ids(cond.rhs)
                extents = {e for e in map(self._extent, found) if e is not None}
                return 1 / max(extents.pop(), 1) if len(found) == len(extents) == 1 else 1.0
            case Compare(op="lt", lhs=Var(name=name)) if len({*self.assigned.get(name, ())}) == 1:
                return self.share(replace(cond, lhs=self.assigned[name][0]))
            case Compare(op="lt", lhs=ItemQuery() as query):
                extent, most = self._extent(query), self.value(cond.rhs)
                if extent and most is not None:
                    return min(max(most, 0) / extent, 1.0)
        return 1.0

    def _extent(self, query: ItemQuery) -> int | None:
        """How many values an id has."""
        if query.query == "local_linear_id":
            return prod(self._sizes.group) if self._sizes.group else None
        ranges = {"global_id": self._sizes.items, "local_id": self._sizes.group}
        of_id = ranges.get(query.query, ())
        return of_id[query.dim] if query.dim < len(of_id) else None

    def _ids(self, expr: Expr) -> set[ItemQuery]:
        """The ids that an expression is made of, if it is a sum of one and what is the same for
        all work-items."""
        match expr:
            case ItemQuery():
                return {expr}
            case Binary(op="add" | "sub"):
                return self._ids(expr.lhs) | self._ids(expr.rhs)
            case Var() if len({*self.assigned.get(expr.name, ())}) == 1:
                return self._ids(self.assigned[expr.name][0])
            case Unary(op="neg"):
                return self._ids(expr.operand)
        return set()
