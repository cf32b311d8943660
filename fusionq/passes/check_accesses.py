"""Bounds checks: every access tests its indices first, and does not happen where they are outside.

    out[i] = a[k[i]]          inside = 0 <= i and i < k.shape[0]
                              if not inside: <report the load of k>
                        →     index = k[i] if inside else 0
                              inside_1 = 0 <= index and index < a.shape[0]
                              …
                              if 0 <= i and i < out.shape[0]: out[i] = value
                              else: <report the store to out>

The first report of a launch is kept in an array of int64 that becomes a parameter behind the
kernel's own: how many there were, the access, the work-item's global ids, the indices.

Where initialization is checked too, parameters with marks of what has been written follow
(``passes.written_marks``), and a read of an element without one is reported.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal

from fusionq.base.frozen import dataclass
from fusionq.base.span import Span
from fusionq.ir.conjunctions import TRUE, conjunction
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Atomic,
    Block,
    Break,
    Cast,
    Compare,
    Const,
    Expr,
    Extent,
    For,
    GroupCall,
    If,
    ItemQuery,
    Kernel,
    Load,
    Logical,
    Record,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    While,
)
from fusionq.ir.types import BOOL, INT64, UINT64, ScalarType
from fusionq.ir.verifier import verify
from fusionq.ir.walk import map_operands, statements
from fusionq.passes.written_marks import WrittenMarks

DIMS = 3
"""Dimensions that a report has room for, of the range and of the array each."""
IDS_AT, INDICES_AT, EXTENTS_AT = 2, 2 + DIMS, 2 + 2 * DIMS
WORDS = 2 + 3 * DIMS
"""Length of the array: the number of reports, the first access, ids, indices, extents."""

AccessKind = Literal["read", "write", "update"]
Fault = Literal["outside", "unwritten"]


@dataclass(frozen=True, slots=True)
class CheckedAccess:
    """An access of a kernel in its source."""

    kind: AccessKind
    array: str
    ndim: int
    span: Span
    fault: Fault
    """What is reported: that it would leave the array, or reads what has not been written."""
    unsigned: tuple[bool, ...] = ()
    """Of each index, whether the source's has 64 bits and no sign; where not given, none."""


@dataclass(frozen=True, slots=True)
class CheckingKernel:
    """``accesses[k]`` is what a report calls ``k``."""

    kernel: Kernel
    accesses: tuple[CheckedAccess, ...]


def check_accesses(kernel: Kernel, tracked: Collection[str] | None = None) -> CheckingKernel:
    """``kernel`` with bounds checks; with ``tracked`` also with checks of initialization, of its
    own arrays and of those parameters, whose marks are parameters in the same order."""
    checker = _Checker(kernel, tracked)
    body = checker.body(kernel.body)
    marks = checker.marks
    checked = replace(
        kernel,
        params=(
            *kernel.params, ArrayParam(checker.reports, INT64, 1, unit_stride=True),
            *(marks.params if marks else ()),
        ),
        variables=(*kernel.variables, *checker.variables),
        arrays=(*kernel.arrays, *(marks.arrays if marks else ())),
        body=(*(marks.start if marks else ()), *body),
    )  # fmt: skip
    verify(checked)
    return CheckingKernel(checked, tuple(checker.accesses))


class _Checker:
    def __init__(self, kernel: Kernel, tracked: Collection[str] | None) -> None:
        self.kernel = kernel
        self.own = {array.name: array for array in kernel.arrays}
        self.types = {p.name: p.dtype for p in kernel.params if isinstance(p, ArrayParam)}
        self.types |= {array.name: array.dtype for array in kernel.arrays}
        loops = [s.var for s in statements(kernel.body) if isinstance(s, For)]
        self.names = FreshNames(
            [p.name for p in kernel.params] + [name for name, _ in kernel.variables]
            + [array.name for array in kernel.arrays] + loops
        )  # fmt: skip
        self.reports = self.names.fresh("reports")
        self.variables: list[tuple[str, ScalarType]] = []
        self.accesses: list[CheckedAccess] = []
        self.marks = None if tracked is None else WrittenMarks(kernel, tracked, self.names)

    # -------------------------------------------------------------------- statements
    def body(self, stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(new for stmt in stmts for new in self.statement(stmt))

    def statement(self, stmt: Stmt) -> list[Stmt]:
        before: list[Stmt] = []

        def checked(expr: Expr) -> Expr:
            return self.expression(expr, TRUE, before)

        match stmt:
            case Assign(value=value):
                return _after(before, replace(stmt, value=checked(value)))
            case Store(array, indices, value, span):
                new = replace(stmt, indices=tuple(map(checked, indices)), value=checked(value))
                inside, report = self._access("write", array, new.indices, span, _unsigned(indices))
                marked = self._marked(array, new.indices, span)
                return _after(before, If(inside, (new, *marked), tuple(report), span))
            case Atomic(op, array, indices, operand, result, span=span, expected=expected):
                update = replace(
                    stmt,
                    indices=tuple(map(checked, indices)),
                    expected=None if expected is None else checked(expected),
                    value=None if operand is None else checked(operand),
                )
                without_sign = _unsigned(indices)
                inside, report = self._access("update", array, update.indices, span, without_sign)
                if result is not None:
                    report.append(Assign(result, _zero(self.types[array]), span))
                happens: list[Stmt] = [update]
                if op != "store" and (op, result) != ("exchange", None):
                    happens[:0] = self._initialized("update", array, update.indices, TRUE, span)
                if op != "load":
                    happens += self._marked(array, update.indices, span)
                return _after(before, If(inside, tuple(happens), tuple(report), span))
            case If(cond, then, orelse):
                new_if = replace(
                    stmt, cond=checked(cond), then=self.body(then), orelse=self.body(orelse)
                )
                return _after(before, new_if)
            case For(start=start, stop=stop, step=step, body=body):
                loop = replace(
                    stmt, start=checked(start), stop=checked(stop), step=checked(step),
                    body=self.body(body),
                )  # fmt: skip
                return _after(before, loop)
            case While(cond, body, span):
                again = checked(cond)
                if not before:
                    return [replace(stmt, body=self.body(body))]
                leave = If(Unary(BOOL, "not", again), (Break(span),), (), span)
                return [While(TRUE, (*before, leave, *self.body(body)), span)]
            case GroupCall(values=str()):
                return [stmt]  # reads what the group's functions have just stored there
            case GroupCall(value=value, source=source):
                call = replace(
                    stmt, value=checked(value), source=None if source is None else checked(source)
                )
                return _after(before, call)
            case Record(payload=payload) if payload is not None:
                return _after(before, replace(stmt, payload=checked(payload)))
            case Block(body=body):
                return [replace(stmt, body=self.body(body))]
            case _:
                return [stmt]

    # ------------------------------------------------------------------- expressions
    def expression(self, expr: Expr, path: Expr, before: list[Stmt]) -> Expr:
        """``expr`` with a variable for each load; ``before`` gets what sets them.  ``path``: when
        the expression is evaluated."""
        match expr:
            case Select(_, cond, then, orelse):
                chosen = self.expression(cond, path, before)
                return replace(
                    expr,
                    cond=chosen,
                    then=self.expression(then, conjunction((path, chosen)), before),
                    orelse=self.expression(orelse, conjunction((path, _not(chosen))), before),
                )
            case Logical(op, lhs, rhs):
                left = self.expression(lhs, path, before)
                goes_on = left if op == "and" else _not(left)
                right = self.expression(rhs, conjunction((path, goes_on)), before)
                return replace(expr, lhs=left, rhs=right)
            case Load(type_, array, indices, span):
                places = []
                for index in indices:
                    value = self.expression(index, path, before)
                    if not isinstance(value, (Const, Var)):
                        name = self._variable("index", value.type)
                        before.append(Assign(name, value, span))
                        value = Var(value.type, name)
                    places.append(value)
                inside, report = self._access("read", array, places, span, _unsigned(indices))
                here = Var(BOOL, self._variable("inside", BOOL))
                before.append(Assign(here.name, inside, span))
                before.append(If(conjunction((path, _not(here))), tuple(report), (), span))
                before += self._initialized("read", array, places, conjunction((path, here)), span)
                loaded = Var(type_, self._variable("loaded", type_))
                load = Select(type_, here, replace(expr, indices=tuple(places)), _zero(type_))
                before.append(Assign(loaded.name, load, span))
                return loaded
            case _:
                return map_operands(expr, lambda e: self.expression(e, path, before))

    def _variable(self, wanted: str, type_: ScalarType) -> str:
        name = self.names.fresh(wanted)
        self.variables.append((name, type_))
        return name

    # ------------------------------------------------------------------------ reports
    def _access(
        self,
        kind: AccessKind,
        array: str,
        indices: Sequence[Expr],
        span: Span,
        unsigned: tuple[bool, ...],
    ) -> tuple[Expr, list[Stmt]]:
        """Whether the indices are inside the array, and what reports that they are not;
        ``unsigned`` as of ``CheckedAccess``."""
        bounds: list[Expr] = []
        for index, extent in zip(indices, self._extents(array, len(indices)), strict=True):
            bounds += Compare("ge", index, Const(INT64, 0)), Compare("lt", index, extent)
        inside = conjunction(bounds)
        return inside, self._report(kind, "outside", array, indices, span, unsigned)

    def _initialized(
        self, kind: AccessKind, array: str, indices: Sequence[Expr], path: Expr, span: Span
    ) -> list[Stmt]:
        """What reports, under ``path``, that nothing has written an element inside the array."""
        unwritten = None if self.marks is None else self.marks.unwritten(array, indices, span)
        if unwritten is None:
            return []
        report = self._report(kind, "unwritten", array, indices, span)
        return [If(conjunction((path, unwritten)), tuple(report), (), span)]

    def _marked(self, array: str, indices: Sequence[Expr], span: Span) -> list[Stmt]:
        return [] if self.marks is None else self.marks.mark(array, indices, span)

    def _extents(self, array: str, ndim: int) -> list[Expr]:
        own = self.own.get(array)
        return [
            Extent(array, d) if own is None else Const(INT64, own.shape[d]) for d in range(ndim)
        ]

    def _report(
        self,
        kind: AccessKind,
        fault: Fault,
        array: str,
        indices: Sequence[Expr],
        span: Span,
        unsigned: tuple[bool, ...] = (),
    ) -> list[Stmt]:
        number = len(self.accesses)
        self.accesses.append(CheckedAccess(kind, array, len(indices), span, fault, unsigned))
        count = Var(INT64, self._variable("earlier", INT64))
        ids = [ItemQuery("global_id", d) for d in range(self.kernel.ndim)]
        extents = self._extents(array, len(indices))
        values = {
            1: Const(INT64, number),
            **{IDS_AT + d: value for d, value in enumerate(ids)},
            **{INDICES_AT + d: value for d, value in enumerate(indices)},
            **{EXTENTS_AT + d: value for d, value in enumerate(extents)},
        }
        return [
            Atomic(
                "add", self.reports, (Const(INT64, 0),), Const(INT64, 1), count.name,
                "relaxed", "device", span,
            ),
            If(
                Compare("eq", count, Const(INT64, 0)),
                tuple(
                    Store(self.reports, (Const(INT64, place),), value, span)
                    for place, value in values.items()
                ),
                (),
                span,
            ),
        ]  # fmt: skip


def _after(before: list[Stmt], stmt: Stmt) -> list[Stmt]:
    return [*before, stmt]


def _unsigned(indices: Sequence[Expr]) -> tuple[bool, ...]:
    return tuple([isinstance(i, Cast) and i.operand.type == UINT64 for i in indices])


def _zero(type_: ScalarType) -> Const:
    return Const(type_, False if type_ == BOOL else 0.0 if type_.is_float else 0)


def _not(expr: Expr) -> Expr:
    return Unary(BOOL, "not", expr)
