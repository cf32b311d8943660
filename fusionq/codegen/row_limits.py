"""The work-items of a row beyond which nothing is done, by the conditions around all that has an
effect.

    if i > 0 and not (i == n - 1 or j == 0):     rows from 1 on, that end before item n - 1
        b[j, i] = …                          →

The others need not be run.  Of conditions that a loop over a row decides (``interior``), those are
left whose other side does something, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from fusionq.codegen.row_forms import SMALL, RowForms, RowOffset, plus
from fusionq.ir.comparisons import MIRRORED
from fusionq.ir.conjunctions import conjuncts
from fusionq.ir.nodes import (
    Assign,
    Binary,
    Block,
    Call,
    Compare,
    CompareOp,
    Const,
    Expr,
    For,
    If,
    Stmt,
)
from fusionq.ir.types import INT64

FAR = 1 << 62
"""Beyond all ids; up to it, what is added to an id does not wrap."""


class RowBound(NamedTuple):
    """That the last id of a work-item ``op`` ``end``, which is the same for all of its row.  It
    implies a condition with ``form`` on one side."""

    op: CompareOp
    end: Expr
    form: RowOffset


class RowLimits(NamedTuple):
    """The least and the greatest last ids of work-items that do anything, and ``others`` that do
    nothing, each the same for a row."""

    lows: tuple[Expr, ...] = ()
    highs: tuple[Expr, ...] = ()
    others: tuple[Expr, ...] = ()

    def mapped(self, value: Callable[[Expr], Expr]) -> RowLimits:
        """With each ``value`` of theirs."""
        return RowLimits(*(tuple(map(value, each)) for each in self))


def bound_by(forms: RowForms, cond: Compare) -> RowBound | None:
    """What ``cond`` on the last id says of it, for the farthest of several distances and all that
    is added to it; where there is a distance, as long as no sums with it wrap."""
    op, lhs, rhs = cond.op, forms.known(cond.lhs), forms.known(cond.rhs)
    if forms.offset(lhs) is None:
        op, lhs, rhs = MIRRORED[op], rhs, lhs
    form = forms.offset(lhs)
    if form is None or not forms.uniform(rhs) or rhs.type != INT64:
        return None
    sign, least, greatest, distance, factor = form
    if op in ("eq", "ne") and (least != greatest or form.spans or factor != 1):
        return None
    offset = greatest if op in ("lt", "le") else least
    if isinstance(rhs, Const):
        if abs(rhs.value) > SMALL:
            return None
        end: Expr = Const(INT64, sign * (int(rhs.value) - offset))
    else:
        near = Call(INT64, "maximum", (rhs, Const(INT64, -FAR)))
        near = Call(INT64, "minimum", (near, Const(INT64, FAR)))
        end = plus(near, -offset) if sign > 0 else Binary(
            INT64, "sub", Const(INT64, offset), near
        )  # fmt: skip
    if sign < 0:
        op = MIRRORED[op]
    if distance is not None:
        farthest = distance[1] if op in ("lt", "le") else distance[0]
        end = Binary(INT64, "sub", end, farthest)
    return RowBound(op, _quotient(op, end, factor), form)


def _quotient(op: CompareOp, end: Expr, factor: int) -> Expr:
    """What ids ``op`` whose products with ``factor`` ``op`` ``end``."""
    if factor == 1:
        return end
    if op in ("lt", "ge"):  # rounded up
        end = plus(end, factor - 1)
    if isinstance(end, Const):
        return Const(INT64, int(end.value) // factor)
    return Binary(INT64, "floordiv", end, Const(INT64, factor))


def row_limits(body: Sequence[Stmt], forms: RowForms) -> RowLimits:
    """Those of all work-items of a row that do anything in ``body``."""
    lows: list[Expr] = []
    highs: list[Expr] = []
    others: list[Expr] = []
    for cond in _around(body) or ():
        bound = bound_by(forms, cond) if isinstance(cond, Compare) else None
        if bound is None or not _is_exact(bound.form):
            continue
        op, end, _ = bound
        if op == "ne" and end == Const(INT64, 0):
            op = "gt"  # no id is less
        if op == "ne":
            others.append(end)
        if op in ("gt", "ge", "eq"):
            lows.append(plus(end, 1) if op == "gt" else end)
        if op in ("lt", "le", "eq"):
            highs.append(plus(end, -1) if op == "lt" else end)
    return RowLimits(*(tuple(dict.fromkeys(each)) for each in (lows, highs, others)))


def _is_exact(form: RowOffset) -> bool:
    """Whether what a bound with ``form`` excludes fails its condition."""
    return form.least == form.greatest and form.distance is None


def _around(body: Sequence[Stmt]) -> tuple[Expr, ...] | None:
    """The conditions around all of ``body`` that has an effect; None where nothing has."""
    return _common(map(_around_statement, body))


def _around_statement(stmt: Stmt) -> tuple[Expr, ...] | None:
    match stmt:
        case Assign() | Block(body=()):
            return None
        case If(cond, then, orelse):
            sides = (
                (conjuncts(cond, holds), _around(side))
                for holds, side in ((True, then), (False, orelse))
            )
            return _common(None if inside is None else (*own, *inside) for own, inside in sides)
        case For(body=body):
            return _around(body)
    return ()


def _under(cond: Expr, holds: bool, body: Sequence[Stmt]) -> tuple[Expr, ...] | None:
    """The same of a ``body`` that runs where ``cond`` does, or does not, hold."""
    inside = _around(body)
    return None if inside is None else (*conjuncts(cond, holds), *inside)


def _common(each: Iterable[tuple[Expr, ...] | None]) -> tuple[Expr, ...] | None:
    """The conditions that are in all of ``each``, without those that are around nothing."""
    some = [conditions for conditions in each if conditions is not None]
    if not some:
        return None
    return tuple(c for c in some[0] if all(c in others for others in some[1:]))
