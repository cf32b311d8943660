"""Loops of a work-group, whose work-items are lanes of a vector, over the items of a row.

    for first in range(begin, end, lanes):
        item = first + local id
        body

Part of a row may have code of its own, without conditions that hold there (``interior``): index-set
splitting.  Where it changes nothing to do an item twice, hardly any of a row is done under masks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from fusionq.base.frozen import dataclass
from fusionq.codegen.group_conditions import FENCE
from fusionq.codegen.row_limits import RowLimits
from fusionq.ir.conjunctions import conjunction
from fusionq.ir.nodes import (
    Assign,
    Binary,
    Block,
    Call,
    Compare,
    Const,
    Expr,
    For,
    If,
    ItemQuery,
    Select,
    Stmt,
    Var,
    While,
)
from fusionq.ir.types import INT64, ScalarType

MOST_ALONE = 4
"""Items before or behind the inner part of a row that are done one by one."""

_FAR = 1 << 61
"""Beyond all ids, and so near that the difference of two bounds does not wrap."""

_ZERO, _ONE = Const(INT64, 0), Const(INT64, 1)


@dataclass(frozen=True)
class SeveralSteps:
    """``body`` does ``items`` work-items of each lane, one at every so many lanes."""

    items: int
    body: Sequence[Stmt]


Ahead = Callable[[Expr], tuple[Stmt, ...]]
"""What is done before a step, for its first item."""


def lanes_of(ndim: int, local_range: tuple[int, ...]) -> tuple[int, ...]:
    """The work-items of a group side by side in each dimension of ``ndim``: in one dimension all,
    and one in those that the group has not."""
    if ndim == 1:
        return (prod(local_range),)
    return (1,) * (ndim - len(local_range)) + local_range[-ndim:]


def folded(function: str, values: Sequence[Expr]) -> Expr:
    """The ``function`` of two integers of all ``values``."""
    whole = values[0]
    for value in values[1:]:
        whole = Call(INT64, function, (whole, value))
    return whole


def _greatest(values: Sequence[Expr]) -> Expr:
    """Of the ``values``, of which the first is that of an id."""
    return Call(INT64, "minimum", (folded("maximum", values), Const(INT64, _FAR)))


def _least(values: Sequence[Expr]) -> Expr:
    return Call(INT64, "maximum", (folded("minimum", values), Const(INT64, -_FAR)))


def _guarded(guard: Expr, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """``body`` where ``guard`` holds.  What a row or a group skips (``skipped_outside``) stays a
    branch, which inside of a condition that lanes do not share it would not be."""
    made: list[Stmt] = []
    together: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, If) and stmt.then[:1] == (FENCE,):
            made += [If(guard, tuple(together))] if together else []
            made.append(replace(stmt, then=(FENCE, If(guard, stmt.then[1:]))))
            together = []
        elif together or not isinstance(stmt, Block):  # else a heading
            together.append(stmt)
        else:
            made.append(stmt)
    return (*made, *([If(guard, tuple(together))] if together else ()))


@dataclass(frozen=True)
class InnerRow:
    """The items of a row from the greatest of ``lows`` to the least of ``highs`` do ``body``, in
    whole steps of the group, if all of ``where`` hold; ``ahead`` of a step.  ``together``: what
    does several steps at once.  ``limits``: those of the items of the row that do anything."""

    lows: tuple[Expr, ...]
    highs: tuple[Expr, ...]
    where: tuple[Expr, ...]
    body: Sequence[Stmt]
    ahead: Ahead | None = None
    together: SeveralSteps | None = None
    limits: RowLimits = RowLimits()


@dataclass(frozen=True)
class RowLoops:
    """Makes them for groups of ``local_range``.  ``fresh`` gives names of loops, ``variable`` those
    of variables of a type, as close to a wanted one as can be."""

    local_range: tuple[int, ...]
    fresh: Callable[[str], str]
    variable: Callable[[str, ScalarType], str]

    def strided(
        self,
        item: Var,
        start: Expr,
        end: Expr,
        body: Sequence[Stmt],
        guarded: bool,
        ndim: int,
        ahead: Ahead | None = None,
    ) -> Stmt:
        """The loop over the items from ``start`` up to ``end`` of a row of ``ndim`` dimensions;
        unless ``guarded``, there are as many as the group has, or more, and the last step ends with
        the last of them.  ``ahead`` is for the first item of a step."""
        loop = Var(INT64, self.fresh("start"))
        size = lanes_of(ndim, self.local_range)[-1]
        lane = ItemQuery("local_id", len(self.local_range) - 1)
        if size > self.local_range[-1]:
            lane = ItemQuery("local_linear_id", 0)
        inside = tuple(body)
        if guarded:
            inside = _guarded(Compare("lt", item, end), inside)
        step = Const(INT64, size)
        from_: Expr = loop
        if not guarded:
            from_ = Call(INT64, "minimum", (loop, Binary(INT64, "sub", end, step)))
        chosen = Assign(item.name, Binary(INT64, "add", from_, lane))
        before = () if ahead is None else ahead(loop)
        return For(loop.name, start, end, step, (*before, chosen, *inside))

    def several(
        self, item: Var, start: Expr, end: Expr, together: SeveralSteps
    ) -> tuple[Var, tuple[Stmt, ...]]:
        """As many steps as are done ``together`` over the items from ``start`` up to ``end``, and
        where they end."""
        loop = Var(INT64, self.fresh("start"))
        rest = Var(INT64, self.variable("rest", INT64))
        size = together.items * self.local_range[-1]
        count = Binary(INT64, "and", Binary(INT64, "sub", end, start), Const(INT64, -size))
        lane = ItemQuery("local_id", len(self.local_range) - 1)
        chosen = Assign(item.name, Binary(INT64, "add", loop, lane))
        steps = For(loop.name, start, rest, Const(INT64, size), (chosen, *together.body))
        return rest, (Assign(rest.name, Binary(INT64, "add", start, count)), steps)

    def in_segments(
        self,
        first: Var,
        row: tuple[Expr, Expr],
        values: Sequence[Stmt],
        lengths: Sequence[Expr],
        part: Callable[[Expr, Expr, Expr], tuple[Stmt, ...]],
    ) -> tuple[Stmt, ...]:
        """A row from the first to the last item in segments.  ``first``: the variable of a
        segment's first item, in terms of which are ``values``, what it needs, and ``lengths``, all
        of which are positive and of which the least counts; ``part`` does the items from the first
        to the last, which is the one before the third."""
        end, next_first = (Var(INT64, self.variable(n, INT64)) for n in ("end", "next_first"))
        behind = Binary(INT64, "add", row[1], _ONE)
        count = folded("minimum", [Binary(INT64, "sub", behind, first), *lengths])
        segment = (
            *values,
            Assign(next_first.name, Binary(INT64, "add", first, count)),
            Assign(end.name, Binary(INT64, "sub", next_first, _ONE)),
            *part(first, end, next_first),
            Assign(first.name, next_first),
        )
        return Assign(first.name, row[0]), While(Compare("lt", first, behind), segment)

    def _within(
        self, row: tuple[Expr, Expr], limits: RowLimits
    ) -> tuple[tuple[Stmt, ...], tuple[Expr, Expr]]:
        """The first and the last item of a ``row`` within ``limits``, and what finds them."""
        if not any(limits):
            return (), row
        first, last = (Var(INT64, self.variable(n, INT64)) for n in ("limited", "limit"))
        found = [
            Assign(first.name, _greatest([row[0], *limits.lows])),
            Assign(last.name, _least([row[1], *limits.highs])),
        ]
        for other in limits.others:
            for item, step in ((first, 1), (last, -1)):
                beside = Binary(INT64, "add", item, Const(INT64, step))
                is_other = Compare("eq", item, other)
                found.append(Assign(item.name, Select(INT64, is_other, beside, item)))
        return tuple(found), (first, last)

    def parted(
        self,
        item: Var,
        row: tuple[Expr, Expr],
        inner: InnerRow,
        body: Sequence[Stmt],
        repeatable: bool,
        masked: Sequence[Stmt] | None = None,
    ) -> tuple[Stmt, ...]:
        """A row from the first to the last item: ``inner`` as far as that goes, with ``body``
        before and behind.  Where that is ``repeatable``, the last step ends with the inner part and
        does some items a second time, and a few items before or behind are done by all of the
        group, one by one, so that nothing is done under masks, which takes as long as several
        steps.  ``masked``: what does ``body`` in steps of the group."""
        limited, (first, last) = self._within(row, inner.limits)
        size, ndim = self.local_range[-1], len(self.local_range)
        behind = Binary(INT64, "add", last, _ONE)
        start, end = self.variable("inner", INT64), self.variable("outer", INT64)
        inner_start, inner_end = Var(INT64, start), Var(INT64, end)
        from_, to = self.variable("low", INT64), self.variable("high", INT64)
        low, high = Var(INT64, from_), Var(INT64, to)
        count = Binary(INT64, "add", Binary(INT64, "sub", high, low), _ONE)
        whole = Binary(INT64, "and", count, Const(INT64, -size))
        done = count if repeatable else whole
        find: Stmt = If(
            Compare("ge", count, Const(INT64, size)),
            (Assign(start, low), Assign(end, Binary(INT64, "add", low, done))),
        )
        found: tuple[Stmt, ...] = (
            Assign(from_, _greatest([first, *inner.lows])),
            Assign(to, _least([last, *inner.highs])),
            find,
        )
        if inner.where:
            found = (If(conjunction(inner.where), found),)
        part = Var(INT64, self.fresh("part"))
        is_first = Compare("eq", part, _ZERO)
        stop, begin = self.variable("stop", INT64), self.variable("begin", INT64)
        begin_, stop_ = Var(INT64, begin), Var(INT64, stop)
        edge = self.strided(item, begin_, stop_, masked or body, True, ndim)
        if repeatable:
            one = Var(INT64, self.fresh("one"))
            alone = For(one.name, begin_, stop_, _ONE, (Assign(item.name, one), *body))
            few = Binary(INT64, "sub", stop_, begin_)
            edge = If(Compare("le", few, Const(INT64, MOST_ALONE)), (alone,), (edge,))
        steps: tuple[Stmt, ...] = ()
        begin_rest: Expr = inner_start
        if inner.together is not None:
            begin_rest, steps = self.several(item, inner_start, inner_end, inner.together)
        rest = self.strided(item, begin_rest, inner_end, inner.body, False, ndim, inner.ahead)
        steps = (*steps, rest)
        edges = (
            Assign(begin, Select(INT64, is_first, first, inner_end)),
            Assign(stop, Select(INT64, is_first, inner_start, behind)),
            edge,
            If(is_first, steps),
        )
        return (
            *limited,
            Assign(start, behind),
            Assign(end, behind),
            *found,
            For(part.name, _ZERO, Const(INT64, 2), _ONE, edges),
        )
