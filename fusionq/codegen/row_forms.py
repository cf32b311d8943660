"""What integers are in terms of a work-item's last id, which is all that its row does not share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from fusionq.ir.interval_arithmetic import Interval, arithmetic, within
from fusionq.ir.nodes import Assign, Binary, Const, Expr, For, ItemQuery, Kernel, Load, Var
from fusionq.ir.types import INT64
from fusionq.ir.walk import assigned_variable, statements, subexpressions, with_values

SMALL = 1 << 32


MOST_FACTOR = 1 << 12
"""Of an id; products with it do not wrap."""


class RowOffset(NamedTuple):
    """An id by ``sign`` and ``factor``, to which ``distance`` is added before, from the first to
    the second of two values that are the same for a row, and from ``least`` to ``greatest`` behind
    that: constants and variables of loops."""

    sign: int
    least: int
    greatest: int
    distance: tuple[Expr, Expr] | None
    factor: int = 1

    @property
    def spans(self) -> bool:
        """Whether there are several distances."""
        return self.distance is not None and self.distance[0] != self.distance[1]

    @property
    def added(self) -> Interval:
        return self.least, self.greatest

    def within_small(self, sign: int, added: Interval | None) -> RowOffset | None:
        """With another sign, and with ``added`` if it is small."""
        if added is None or not within(added, (-SMALL, SMALL)):
            return None
        return RowOffset(sign, *added, self.distance, self.factor)

    def times(self, factor: int) -> RowOffset | None:
        """Its product with a constant, if that is small, and there is no distance."""
        if self.distance is not None or not 0 < self.factor * abs(factor) <= MOST_FACTOR:
            return None
        ends = sorted((self.least * factor, self.greatest * factor))
        made = self._replace(factor=self.factor * abs(factor))
        return made.within_small(self.sign if factor > 0 else -self.sign, (ends[0], ends[1]))


class RowForms:
    """Says it of the expressions of a kernel; ``row``: variables that are the same for all of a
    row."""

    def __init__(self, kernel: Kernel, row: Collection[str]) -> None:
        self.last = kernel.ndim - 1
        self._row = row
        every = list(statements(kernel.body))
        times = Counter(assigned_variable(s) for s in every)
        loops = Counter(s.var for s in every if isinstance(s, For))
        self.loops: dict[str, Interval] = {}
        """The least and the greatest value of the variables of the loops around a statement."""
        self.spans: dict[str, tuple[Expr, Expr]] = {}
        """The same of those whose bounds are no constants, but the same for a row."""
        self.values: dict[str, Expr] = {}
        """Of variables that have but one, not of memory."""
        for s in every:
            if isinstance(s, Assign) and times[s.name] == 1:
                value = self.known(s.value)
                used = list(subexpressions(value))
                if not any(
                    isinstance(e, Load)
                    or (isinstance(e, Var) and e.name not in row and loops[e.name] != 1)
                    for e in used
                ):
                    self.values[s.name] = value

    def known(self, expr: Expr) -> Expr:
        """``expr`` with the values of variables that have but one."""
        return with_values(expr, self.values)

    def offset(self, expr: Expr) -> RowOffset | None:
        """The last id in ``expr``, and what is added to it."""
        last = ItemQuery("global_id", self.last)
        match self.known(expr):
            case ItemQuery("global_id", dim) if dim == self.last:
                return RowOffset(1, 0, 0, None)
            case Binary(_, "add", lhs, Var(_, name) as distance) if (
                lhs == last and name in self._row
            ):
                return RowOffset(1, 0, 0, (distance, distance))
            case Binary(type, "add" | "sub" as op, lhs, rhs) if type == INT64:
                form, added = self.offset(lhs), self._small(rhs)
                if form is not None and added is not None:
                    return form.within_small(form.sign, arithmetic(op, form.added, added))
                form, added = self.offset(rhs), self._small(lhs)
                if form is not None and added is not None:
                    sign = form.sign if op == "add" else -form.sign
                    return form.within_small(sign, arithmetic(op, added, form.added))
                return self._at_distance(op, lhs, rhs)
            case (
                Binary(type, "mul", Const(_, factor), operand)
                | Binary(type, "mul", operand, Const(_, factor))
            ) if type == INT64:
                form = self.offset(operand)
                return None if form is None else form.times(int(factor))
        return None

    def _at_distance(self, op: str, lhs: Expr, rhs: Expr) -> RowOffset | None:
        """The id of which, and of what is the same for a row, ``lhs`` and ``rhs`` are the sum, or
        the difference."""
        form = self.offset(lhs)
        if form is not None:
            sign, added, same = form.sign, form.added, rhs
            subtracts = (op == "sub") == (sign > 0)
        elif (form := self.offset(rhs)) is not None:
            sign, added, same = form.sign, form.added, lhs
            if op == "sub":
                sign, added = -sign, (-added[1], -added[0])
            subtracts = sign < 0
        if form is None:
            return None
        same = self.known(same)
        if isinstance(same, Var) and same.name in self.spans:
            first, last = self.spans[same.name]
        elif self.uniform(same):
            first = last = same
        else:
            return None
        if subtracts:
            zero = Const(INT64, 0)
            first, last = (Binary(INT64, "sub", zero, e) for e in (last, first))
        if form.distance is not None:
            nearer, farther = form.distance
            first = Binary(INT64, "add", nearer, first)
            last = Binary(INT64, "add", farther, last)
        return RowOffset(sign, *added, (first, last), form.factor)

    def _small(self, expr: Expr) -> Interval | None:
        """The least and the greatest value of constants and variables of loops, and what is
        computed of them; None where they may be large, or depend on more."""
        found: Interval | None = None
        match expr:
            case Const(type, value) if type == INT64:
                found = int(value), int(value)
            case Var(type, name) if type == INT64:
                found = self.loops.get(name)
            case Binary(type, op, lhs, rhs) if type == INT64:
                a, b = self._small(lhs), self._small(rhs)
                if a is not None and b is not None:
                    found = arithmetic(op, a, b)
        return found if found is not None and within(found, (-SMALL, SMALL)) else None

    def uniform(self, expr: Expr) -> bool:
        """Whether all work-items of a row have the same value, which is known before them."""
        return all(
            not isinstance(e, Load)
            and not (isinstance(e, Var) and e.name not in self._row)
            and not (
                isinstance(e, ItemQuery)
                and not e.query.endswith("_range")
                and (e.query != "global_id" or e.dim == self.last)
            )
            for e in subexpressions(self.known(expr))
        )


def without_addend(total: Expr, addend: Expr) -> Expr | None:
    """What is left of a sum of int64 without one ``addend`` of it; None where it is none."""
    match total:
        case Binary(type, "add" | "sub" as op, lhs, rhs) if type == INT64:
            if rhs == addend and op == "add":
                return lhs
            if lhs == addend and op == "add":
                return rhs
            rest = without_addend(lhs, addend)
            if rest is not None:
                return replace(total, lhs=rest)
            rest = without_addend(rhs, addend) if op == "add" else None
            return None if rest is None else replace(total, rhs=rest)
        case _:
            return None


def plus(expr: Expr, constant: int) -> Expr:
    """The sum."""
    if isinstance(expr, Const):
        return Const(INT64, int(expr.value) + constant)
    return Binary(INT64, "add", expr, Const(INT64, constant)) if constant else expr
