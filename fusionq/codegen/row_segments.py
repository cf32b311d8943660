"""The parts of a tile's rows in which divisions of ids have one quotient, and conditions that keep
out work-items one answer.

    i = id // m                        for first, last in segments of the row:
    j = id % m                             i = first // m
    out[i, j] = x[i, j] + 1      →         for id from first to last:
                                               j = id + (first % m - first)
                                               out[i, j] = x[i, j] + 1

Work-items of a segment that are neighbours access neighbours in memory, which the compiler sees:
there are whole vectors in place of a division for each work-item and of gathered elements.
Conditions on ``j`` bound the segment's interior as those on an id do.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.frozen import dataclass
from fusionq.codegen.interior import MOST_NODES, Interior, interior_of
from fusionq.codegen.scoping import Body
from fusionq.ir.conjunctions import conjuncts
from fusionq.ir.nodes import (
    Assign,
    Binary,
    Block,
    Compare,
    Const,
    Expr,
    Extent,
    If,
    ItemQuery,
    Kernel,
    Load,
    Logical,
    Param,
    Select,
    Stmt,
    Var,
)
from fusionq.ir.range_guard import is_same_for_all, limited_id
from fusionq.ir.types import INT64
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    rewrite,
    rewrite_body,
    statements,
    subexpressions,
)

MOST_DIVISIONS = 4
"""Pairs of a dividend and a divisor, each of which is divided at the start of a segment."""

_FIRST = Var(INT64, "segment first")
"""The last id of a segment's first work-item; no name of a kernel has a space."""

_SMALL = 1 << 61
"""Up to here, quotients do not change by what is added to a dividend wrapping."""


@dataclass(frozen=True)
class RowSegments:
    """``body`` serves the work-items of a segment, and ``interior`` those inside.  ``first``: the
    variable that has the last id of its first one; ``values``: other variables of a segment, with
    their values; ``lengths``: work-items up to its end, of which the least counts, at least one.
    ``divisors``: where one of them is small, segments are not worth it."""

    first: str
    values: tuple[tuple[str, Expr], ...]
    lengths: tuple[Expr, ...]
    divisors: tuple[Expr, ...]
    body: Body
    interior: Interior | None

    @property
    def variables(self) -> tuple[str, ...]:
        """All that are the same for a segment."""
        return (self.first, *(name for name, _ in self.values))

    def counted(self, kernel: Kernel) -> Body:
        """What most work-items do, in terms of ``kernel``, for estimates: nothing is divided."""
        last, zero = ItemQuery("global_id", kernel.ndim - 1), Const(INT64, 0)
        new: dict[Expr, Expr] = {Var(INT64, name): zero for name, _ in self.values}
        new[_FIRST] = last
        body = self.body if self.interior is None else self.interior.body
        return rewrite_body(body, lambda e: new.get(e, e))


def row_segments(kernel: Kernel, body: Body) -> RowSegments | None:
    """The segments of the rows of a tile whose work-items do ``body``, by the lanes of a vector;
    None where rows are not to be cut: neither is an id divided by what is the same for all, nor do
    conditions keep out work-items from a part of the body."""
    if sum(1 for _ in expressions(body)) > MOST_NODES:
        return None
    body = _with_divisors(body)
    last = ItemQuery("global_id", kernel.ndim - 1)
    divided, guards = _divided(body, last), _guards(body)
    if not guards and not 0 < len(divided) <= MOST_DIVISIONS:
        return None
    values: dict[str, Expr] = {}
    lengths: list[Expr] = []
    where: list[Expr] = []
    new: dict[Expr, Expr] = {}
    for number, (dividend, divisor) in enumerate(divided):
        first = rewrite(dividend, lambda e: _FIRST if e == last else e)
        quotient, distance = Var(INT64, f"quotient {number}"), Var(INT64, f"distance {number}")
        rest = Binary(INT64, "mod", first, divisor)
        values[quotient.name] = Binary(INT64, "floordiv", first, divisor)
        values[distance.name] = Binary(INT64, "sub", rest, _FIRST)
        length: Expr = Binary(INT64, "sub", divisor, rest)
        if dividend != last:
            near = Logical(
                "and",
                Compare("gt", first, Const(INT64, -_SMALL)),
                Compare("lt", first, Const(INT64, _SMALL)),
            )
            length = Select(INT64, near, length, Const(INT64, 1))
            where.append(near)
        lengths.append(length)
        new[Binary(INT64, "floordiv", dividend, divisor)] = quotient
        new[Binary(INT64, "mod", dividend, divisor)] = Binary(INT64, "add", last, distance)
    asked: dict[Expr, Expr] = {}
    for guard in guards:
        asked[guard] = rewrite(guard, lambda e: _FIRST if e == last else e)
        for e in subexpressions(guard):
            if isinstance(e, Compare) and e.lhs == last:
                before = Compare("lt", _FIRST, e.rhs)
                rest = Binary(INT64, "sub", e.rhs, _FIRST)
                lengths.append(Select(INT64, before, rest, Const(INT64, _SMALL)))
    guarded = tuple(
        replace(s, cond=asked[s.cond]) if isinstance(s, If) and s.cond in asked else s for s in body
    )
    cut = rewrite_body(guarded, lambda e: new.get(e, e))
    interior = interior_of(
        replace(kernel, body=cut), (_FIRST.name, *values), frozenset(asked.values())
    )
    if interior is not None:
        interior = replace(interior, where=(*where, *interior.where))
    divisors = tuple(dict.fromkeys(divisor for _, divisor in divided))
    kept = tuple(dict.fromkeys(lengths))
    return RowSegments(_FIRST.name, tuple(values.items()), kept, divisors, cut, interior)


def _with_divisors(body: Body) -> Body:
    """``body`` with the values of variables that it divides by in their places, where these are
    assigned once, to what is the same for all."""
    divisors = {
        e.rhs.name
        for e in expressions(body)
        if isinstance(e, Binary) and e.op in ("floordiv", "mod") and isinstance(e.rhs, Var)
    }
    if not divisors:
        return body
    times = Counter(assigned_variable(s) for s in statements(body))
    values: dict[str, Expr] = {}

    def expr(e: Expr) -> Expr:
        return values.get(e.name, e) if isinstance(e, Var) else e

    for s in statements(body):
        if isinstance(s, Assign) and s.value.type == INT64 and times[s.name] == 1:
            value = rewrite(s.value, expr)
            if is_same_for_all(value):
                values[s.name] = value
    values = {name: value for name, value in values.items() if name in divisors}
    return rewrite_body(body, expr) if values else body


def _divided(body: Body, last: Expr) -> list[tuple[Expr, Expr]]:
    """The last id, also with the same for a whole row added, and what it is divided by."""
    found: dict[tuple[Expr, Expr], None] = {}
    for e in expressions(body):
        match e:
            case Binary(type, "floordiv" | "mod" as op, dividend, divisor) if type == INT64:
                if op == "mod" and dividend != last:
                    continue  # periodic neighbours, mostly, which ``interior`` has no division for
                least = CODE_LIMITS.shortest_segment
                few = isinstance(divisor, Const) and int(divisor.value) < least
                if _is_sum(dividend, last) and is_same_for_all(divisor) and not few:
                    found[dividend, divisor] = None
    return list(found)


def _is_sum(expr: Expr, last: Expr) -> bool:
    """Whether ``expr`` is the last id, or that and what is the same for a row, or less it."""
    match expr:
        case Binary(type, "add", lhs, rhs) if type == INT64:
            if _of_row(rhs, last):
                return _is_sum(lhs, last)
            return _of_row(lhs, last) and _is_sum(rhs, last)
        case Binary(type, "sub", lhs, rhs) if type == INT64:
            return _of_row(rhs, last) and _is_sum(lhs, last)
    return expr == last


def _of_row(expr: Expr, last: Expr) -> bool:
    """Whether ``expr`` is made of arguments, ranges and ids of the other dimensions."""
    return all(
        isinstance(e, (Param, Extent, Const, Binary))
        or (isinstance(e, ItemQuery) and e.query in ("global_id", "global_range") and e != last)
        for e in subexpressions(expr)
    )


def _guards(body: Body) -> list[Expr]:
    """The conditions around parts of ``body`` that keep out work-items from some id on, where they
    are not the same for all parts."""
    parts = [s for s in body if not isinstance(s, Block) and not _is_plain(s)]
    guards = [s.cond if isinstance(s, If) and _is_guard(s) else None for s in parts]
    if len(set(guards)) < 2:
        return []
    return list(dict.fromkeys(guard for guard in guards if guard is not None))


def _is_plain(stmt: Stmt) -> bool:
    return isinstance(stmt, Assign) and not any(isinstance(e, Load) for e in expressions((stmt,)))


def _is_guard(stmt: If) -> bool:
    """Whether ``stmt`` is what work-items with ids below some bounds do."""
    return not stmt.orelse and all(limited_id(e) is not None for e in conjuncts(stmt.cond))
