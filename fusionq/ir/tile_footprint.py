"""Boxes around what a tile of a stage reads of its arrays, in terms of the tile's ends.

They are for reading ahead, which changes no result, whatever is read: sums, products and
quotients are taken not to overflow and to be of numbers that are not negative, and a loop to go to
its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod

from fusionq.base.frozen import dataclass
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Atomic,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Extent,
    For,
    ItemQuery,
    Load,
    Param,
    Persistent,
    Select,
    StageCode,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.types import INT64
from fusionq.ir.walk import (
    assigned_variable,
    statement_expressions,
    statements,
    subexpressions,
)

Ends = tuple[Expr, Expr]
"""The least and the greatest value."""

Box = tuple[Ends, ...]
"""By dimension, inclusive, over the code's parameters and the tile's first and last work-item."""

_MOST_NODES = 64
"""Of an end: what is longer costs more than reading ahead gives."""
_ZERO, _ONE = Const(INT64, 0), Const(INT64, 1)


@dataclass(frozen=True)
class ReadAhead:
    """What of a stage's arrays may be read before the stage's waits are over.

    ``boxes``: of the code's parameters, by name.  ``reasons``: why the other arrays that the stage
    only reads are not.
    """

    boxes: Mapping[str, Box]
    reasons: Mapping[str, str]


def read_ahead(body: Persistent) -> list[ReadAhead]:
    """For each stage of a persistent kernel what may be read ahead: arrays that no stage writes, of
    which different tiles read different rows of neighbours in memory."""
    footprints = [_Footprints(code) for code in body.codes]
    written = {
        stage.arguments[position]
        for stage in body.stages
        for position in footprints[stage.code].written
    }
    found = []
    for stage in body.stages:
        of_code = footprints[stage.code]
        boxes: dict[str, Box] = {}
        reasons: dict[str, str] = {}
        for position, param in enumerate(body.codes[stage.code].kernel.params):
            box = of_code.boxes.get(param.name)
            if box is None or not isinstance(param, ArrayParam):
                continue
            if stage.arguments[position] in written:
                reasons[param.name] = "a stage writes it"
            elif not (param.contiguous or param.unit_stride):
                reasons[param.name] = "its elements are no neighbours in memory"
            elif not any(map(_is_of_tile, box)):
                reasons[param.name] = "which elements a tile reads is not known, or all tiles do"
            else:
                boxes[param.name] = box
        found.append(ReadAhead(boxes, reasons))
    return found


def _is_of_tile(ends: Ends) -> bool:
    return any(
        isinstance(e, ItemQuery) for end in ends for e in subexpressions(end)
    )


class _Footprints:
    """What the tiles of a stage's code load of its array parameters, and which it stores to."""

    def __init__(self, code: StageCode) -> None:
        kernel = code.kernel
        self._local_range = code.local_range
        found = list(statements(kernel.body))
        self._assignments = Counter(name for s in found if (name := assigned_variable(s)))
        self._assignments.update(s.var for s in found if isinstance(s, For))
        self._known: dict[str, Ends] = {}
        self._ends: dict[str, list[Ends]] = {}
        for stmt in found:
            self._passed(stmt)
        stored = {s.array for s in found if isinstance(s, (Store, Atomic))}
        arrays = {p.name for p in kernel.params if isinstance(p, ArrayParam)}
        self.boxes: dict[str, Box] = {
            name: tuple(ends)
            for name, ends in self._ends.items()
            if name in arrays and name not in stored
        }
        self.written = [k for k, p in enumerate(kernel.params) if p.name in stored]

    def _passed(self, stmt: Stmt) -> None:
        """The walk, in program order, comes to a statement."""
        for expr in statement_expressions(stmt):
            for e in subexpressions(expr):
                if isinstance(e, Load):
                    self._loaded(e)
        match stmt:
            case Assign(name, value) if self._assignments[name] == 1:
                self._set(name, self._of(value))
            case For(var, start, stop, Const() as step) if step.value > 0:
                first, last = self._of(start), self._of(stop)
                if first is not None and last is not None and self._assignments[var] == 1:
                    self._set(var, (first[0], _binary("sub", last[1], _ONE)))

    def _set(self, name: str, ends: Ends | None) -> None:
        if ends is not None and all(_size(end) <= _MOST_NODES for end in ends):
            self._known[name] = ends

    def _loaded(self, load: Load) -> None:
        whole = [
            (_ZERO, _binary("sub", Extent(load.array, d), _ONE)) for d in range(len(load.indices))
        ]
        own: list[Ends] = []
        for index, all_of_it in zip(load.indices, whole, strict=True):
            ends = self._of(index)
            if ends is None or any(_size(end) > _MOST_NODES for end in ends):
                ends = all_of_it
            own.append(ends)
        before = self._ends.get(load.array, own)
        self._ends[load.array] = [
            a if a == b else whole[d] if whole[d] in (a, b) else _hull((a, b))
            for d, (a, b) in enumerate(zip(before, own, strict=True))
        ]

    def _of(self, expr: Expr) -> Ends | None:
        """The ends of an integer expression; None where it depends on data, or on what is not
        looked at."""
        match expr:
            case Const() if expr.type.is_integer:
                value = Const(INT64, int(expr.value))
                return value, value
            case Param() | Extent() if expr.type.is_integer:
                end = expr if expr.type == INT64 else Cast(INT64, expr)
                return end, end
            case Var():
                return self._known.get(expr.name)
            case ItemQuery():
                return self._of_query(expr)
            case Cast() if expr.type.is_integer and expr.operand.type.is_integer:
                return self._of(expr.operand)
            case Binary(op=op) if expr.type.is_integer:
                a, b = self._of(expr.lhs), self._of(expr.rhs)
                return None if a is None or b is None else _combined(op, a, b)
            case Call(function="minimum" | "pymin" | "maximum" | "pymax" as function):
                ends = [self._of(arg) for arg in expr.args]
                known = [e for e in ends if e is not None]
                if len(known) < len(ends) or not expr.type.is_integer:
                    return None
                name = "minimum" if function.endswith(("minimum", "pymin")) else "maximum"
                return _call(name, [e[0] for e in known]), _call(name, [e[1] for e in known])
            case Select() if expr.type.is_integer:
                both = self._of(expr.then), self._of(expr.orelse)
                return None if both[0] is None or both[1] is None else _hull((both[0], both[1]))
        return None

    def _of_query(self, expr: ItemQuery) -> Ends | None:
        local, d = self._local_range, expr.dim
        tile = ItemQuery("tile_first", d), ItemQuery("tile_last", d)
        match expr.query:
            case "global_id":
                return tile
            case "group_id" if local is not None:
                size = Const(INT64, local[d])
                return _binary("floordiv", tile[0], size), _binary("floordiv", tile[1], size)
            case "local_id" if local is not None:
                return _ZERO, Const(INT64, local[d] - 1)
            case "local_linear_id" if local is not None:
                return _ZERO, Const(INT64, prod(local) - 1)
            case "local_range" if local is not None:
                return Const(INT64, local[d]), Const(INT64, local[d])
        return None


def _combined(op: str, a: Ends, b: Ends) -> Ends | None:
    match op:
        case "add" | "mul":
            return _binary(op, a[0], b[0]), _binary(op, a[1], b[1])
        case "sub":
            return _binary(op, a[0], b[1]), _binary(op, a[1], b[0])
        case "floordiv" if b[0] == b[1]:
            return _binary(op, a[0], b[0]), _binary(op, a[1], b[0])
        case "mod":
            return _ZERO, _binary("sub", b[1], _ONE)
    return None


def _hull(ends: tuple[Ends, Ends]) -> Ends:
    (a, b), (c, d) = ends
    return _call("minimum", [a, c]), _call("maximum", [b, d])


def _call(function: str, args: Sequence[Expr]) -> Expr:
    first, *rest = dict.fromkeys(args)
    for other in rest:
        first = Call(INT64, function, (first, other))
    return first


def _binary(op: str, a: Expr, b: Expr) -> Expr:
    if isinstance(a, Const) and isinstance(b, Const) and op in ("add", "sub"):
        return Const(INT64, int(a.value) + int(b.value) * (1 if op == "add" else -1))
    if b == _ZERO and op in ("add", "sub"):
        return a
    if b == _ONE and op in ("floordiv", "mul"):
        return a
    return Binary(INT64, op, a, b)  # type: ignore[arg-type]  # one of the operations above


def _size(expr: Expr) -> int:
    return sum(1 for _ in subexpressions(expr))
