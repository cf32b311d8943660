"""How many operations a kernel takes at most, where its text tells."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import inf, prod

from fusionq.base.identity_cache import cached_by_identity
from fusionq.ir.interval_arithmetic import Interval, arithmetic
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Extent,
    For,
    ItemQuery,
    Kernel,
    Persistent,
    Stmt,
    Var,
    While,
)
from fusionq.ir.types import INT64
from fusionq.ir.walk import (
    assigned_variable,
    nested_bodies,
    persistent_of,
    statement_expressions,
    statements,
    subexpressions,
)

Shapes = Mapping[str, Sequence[int]]
"""The extents of each array parameter."""


class WorkBound:
    """How many operations a kernel takes at most.  What no extent changes is counted once."""

    __slots__ = (
        "_each", "_kernel", "_latest", "_persistent", "depends_on_shapes", "is_persistent",
    )  # fmt: skip

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._persistent = persistent_of(kernel)
        self._latest: tuple[Shapes, int, float] = {}, 0, 0.0
        """What a work-item does by the shapes and the work-items of the latest launch; of a
        persistent kernel, what all do."""
        self._each = inf
        if self._persistent is None:
            self._each = _for_all_shapes(kernel)
        self.is_persistent = self._persistent is not None
        """Whether it is that of a persistent kernel."""
        self.depends_on_shapes = self._each == inf
        """Whether ``operations`` needs the shapes."""

    def operations(self, items: int, shapes: Shapes) -> float:
        """Operations of ``items`` work-items, about, or more; infinite where a loop's end depends
        on more than constants, extents and ids.  Of a persistent kernel: every stage over all
        elements of its arrays."""
        each = self._each
        if each == inf:
            *known, each = self._latest
            if known != [shapes, items]:
                if self._persistent is not None:
                    each = _of_stages(self._persistent, shapes)
                else:
                    each = _operations(self._kernel, shapes, items)
                self._latest = shapes, items, each
        return each if self.is_persistent else items * each


def _of_stages(body: Persistent, shapes: Shapes) -> float:
    """Operations of all stages, each over all elements of its arrays."""
    arrays = _arrays(body)
    known: dict[Hashable, float] = {}
    total = 0.0
    for stage in body.stages:
        kind = stage.code, stage.arguments
        of_stage = known.get(kind)
        if of_stage is None:
            own = {name: shapes[stage.arguments[k]] for k, name in arrays[stage.code]}
            elements = sum(map(prod, own.values()))
            kernel = body.codes[stage.code].kernel
            each = _for_all_shapes(kernel)
            if each == inf:
                each = _operations(kernel, own, elements)
            of_stage = known[kind] = elements * each
        total += of_stage
    return total


@cached_by_identity
def _for_all_shapes(kernel: Kernel) -> float:
    """What a work-item does, whatever the extents are; infinite where it depends on them."""
    return _operations(kernel, {}, None)


@cached_by_identity
def _arrays(body: Persistent) -> list[list[tuple[int, str]]]:
    """Of each code the parameters that are arrays, with their places."""
    return [
        [(k, p.name) for k, p in enumerate(code.kernel.params) if isinstance(p, ArrayParam)]
        for code in body.codes
    ]


def _operations(kernel: Kernel, shapes: Shapes, items: int | None) -> float:
    return _Count(kernel.body, shapes, items).operations(kernel.body)


class _Count:
    """Counts the operations of one work-item of a launch of ``items`` work-items."""

    def __init__(self, body: Sequence[Stmt], shapes: Shapes, items: int | None) -> None:
        self._shapes, self._items = shapes, items
        every = list(statements(body))
        assigned = Counter(filter(None, map(assigned_variable, every)))
        self._once = {name for name, times in assigned.items() if times == 1}
        self._variables = _halved(s for s in every if isinstance(s, Assign))
        """Between what integers lie that are assigned once, or become no greater."""

    def operations(self, body: Sequence[Stmt]) -> float:
        total = 0.0
        for statement in body:
            total += sum(1 for e in statement_expressions(statement) for _ in subexpressions(e))
            trips = self._trips(statement) if isinstance(statement, For) else 1
            # One at least: infinitely many times nothing is no number.
            inner = 1 + sum(map(self.operations, nested_bodies(statement)))
            if isinstance(statement, While):
                return inf
            total += inner * trips
            if isinstance(statement, Assign) and statement.name in self._once:
                self._keep(statement.name, self._between(statement.value))
        return total

    def _keep(self, variable: str, between: Interval | None) -> None:
        if between is not None:
            self._variables[variable] = between

    def _trips(self, loop: For) -> float:
        start, stop, step = (self._between(e) for e in (loop.start, loop.stop, loop.step))
        most: float = inf
        apart = _apart(loop.start, loop.stop)
        if step is not None and step[0] > 0 and apart is not None:
            most = -(-apart // step[0])
        if start is None or stop is None or step is None:
            return max(most, 1)
        if step[0] > 0:
            most = min(most, -((start[0] - stop[1]) // step[0]))
        elif step[1] < 0:
            most = -((start[1] - stop[0]) // step[1])
        elif step == (0, 0):
            most = 0
        self._variables[loop.var] = min(start[0], stop[0]), max(start[1], stop[1])
        return max(most, 1)  # no times infinite is no number

    def _between(self, expr: Expr) -> Interval | None:
        """What an integer is at least, and at most; None for what is no integer, too."""
        if not expr.type.is_integer:
            return None
        match expr:
            case Const():
                return int(expr.value), int(expr.value)
            case Var():
                return self._variables.get(expr.name)
            case Extent() if expr.array in self._shapes:
                return (self._shapes[expr.array][expr.dim],) * 2
            case ItemQuery() if self._items is not None:
                return int(expr.query.endswith("range")), self._items
            case Cast() if expr.operand.type.is_integer and expr.type == INT64:
                return self._between(expr.operand)
            case Binary(_, "add" | "sub" | "mul" | "floordiv" as op, lhs, rhs):
                a, b = self._between(lhs), self._between(rhs)
                if a is None or b is None or (op == "floordiv" and b[0] <= 0):
                    return None
                return arithmetic(op, a, b)
            case Call(function="pymin" | "pymax" as function, args=(lhs, rhs)):
                a, b = self._between(lhs), self._between(rhs)
                if a is None or b is None:
                    return None
                chosen = min if function == "pymin" else max
                return chosen(a[0], b[0]), chosen(a[1], b[1])
        return None


def _halved(assignments: Iterable[Assign]) -> dict[str, Interval]:
    """Between what integers lie that are constants at first and divided then, as the distance
    between elements that are combined in turn."""
    values: dict[str, list[Expr]] = defaultdict(list)
    for s in assignments:
        values[s.name].append(s.value)
    found: dict[str, Interval] = {}
    for name, own in values.items():
        firsts = [int(e.value) for e in own if isinstance(e, Const) and e.type == INT64]
        if firsts and min(firsts) >= 0:
            divided = [e for e in own if _is_part_of(e, Var(INT64, name))]
            if len(firsts) + len(divided) == len(own):
                found[name] = 0, max(firsts)
    return found


def _is_part_of(expr: Expr, variable: Var) -> bool:
    match expr:
        case Binary(_, "floordiv", lhs, Const(value=value)):
            return lhs == variable and value >= 1
    return False


def _apart(start: Expr, stop: Expr) -> int | None:
    """How much greater than ``start`` an integer is at most, where its text tells: that of
    ``min(start + 4, n)`` by 4."""
    match stop:
        case Call(function="minimum" | "pymin", args=args):
            known = [apart for each in args if (apart := _apart(start, each)) is not None]
            return min(known, default=None)
        case Binary(_, "add", lhs, Const(value=value)) if lhs == start and start.type == INT64:
            return int(value)
    return None
