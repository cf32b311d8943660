"""Loops over windows that are clamped at the ends of a range, without the clamps where these do
nothing (index-set splitting).

    for k in range(max(0, i - 3), min(n, i + 4)):     if i - 3 >= 0 and i + 4 <= n:
        s += x[k]                                         for turn in range(7):
                                                →             k = i - 3 + turn
                                                              s += x[k]
                                                      else:
                                                          the same loop as before

Here ``i`` is the id.  Work-items whose windows are whole do equally many iterations, at
neighbouring places.  Compilers that make vectors of work-items otherwise keep a mask of those that
still have iterations to do, and load element by element: sums over 129 neighbours of 262,144 floats
take 65 to 165 ms so, and 4.6 in place of that (AVX2, two cores).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from fusionq.base.target import CODE_LIMITS
from fusionq.codegen.scoping import Body
from fusionq.ir.conjunctions import conjunction
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.nodes import (
    Assign,
    Binary,
    BinaryOp,
    Block,
    Call,
    Compare,
    CompareOp,
    Const,
    Expr,
    Extent,
    For,
    If,
    ItemQuery,
    Kernel,
    Load,
    Stmt,
    Var,
    While,
)
from fusionq.ir.range_guard import is_same_for_all
from fusionq.ir.types import INT64, ScalarType
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    rewrite,
    rewrite_body,
    statements,
    subexpressions,
)

_SMALL = 1 << 32
"""Constants below it, and sums and quotients of them and extents, do not wrap beside an id."""

_LARGER, _SMALLER = ("maximum", "pymax"), ("minimum", "pymin")

Values = Mapping[str, Expr]
"""Those of variables that are set once, before."""


def with_clamped_loops(kernel: Kernel, body: Body) -> Kernel:
    """``kernel`` with ``body``, in which work-items whose windows are whole go through them without
    asking at every step; as it is, if there are no such loops."""
    kernel = replace(kernel, body=tuple(body))
    if not any(isinstance(s, For) for s in statements(body)):
        return kernel
    splitting = _Splitting(kernel)
    made = splitting.body(body, {})
    return replace(kernel, body=made, variables=(*kernel.variables, *splitting.variables))


class _Bound(NamedTuple):
    """A loop's bound: the id of a work-item in the last dimension and what is ``added`` to it,
    unless the ``limit`` is met first, if there is one."""

    place: Expr
    added: Expr
    limit: Expr | None


class _Splitting:
    def __init__(self, kernel: Kernel) -> None:
        self._row = kernel.ndim - 1
        found = list(statements(kernel.body))
        sets = Counter(assigned_variable(s) for s in found)
        self._set_once = {name for name, count in sets.items() if name and count == 1}
        loops = {s.var for s in found if isinstance(s, For)}
        taken = {name for name, _ in kernel.variables} | {p.name for p in kernel.params} | loops
        self._names = FreshNames(taken | {a.name for a in kernel.arrays})
        self.variables: list[tuple[str, ScalarType]] = []

    def body(self, body: Body, values: Values) -> tuple[Stmt, ...]:
        """The statements ``body``, before which variables have ``values``, with their loops and
        those inside them split."""
        known = dict(values)
        made: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Assign(name, value) if name in self._set_once and self._is_given(value, known):
                    known[name] = self._known(value, known)
                case If():
                    then, orelse = (self.body(part, known) for part in (stmt.then, stmt.orelse))
                    stmt = replace(stmt, then=then, orelse=orelse)
                case For() | While() | Block():
                    stmt = replace(stmt, body=self.body(stmt.body, known))
            made.append(self._split(stmt, known) if isinstance(stmt, For) else stmt)
        return tuple(made)

    def _is_given(self, value: Expr, values: Values) -> bool:
        """Whether ``value`` is made of ids and arguments, through variables of such values."""
        return value.type == INT64 and not any(
            isinstance(e, Load) or (isinstance(e, Var) and e.name not in values)
            for e in subexpressions(value)
        )

    def _known(self, value: Expr, values: Values) -> Expr:
        return rewrite(value, lambda e: values.get(e.name, e) if isinstance(e, Var) else e)

    def _split(self, loop: For, values: Values) -> Stmt:
        step = loop.step
        if loop.binds or not isinstance(step, Const) or int(step.value) < 1:
            return loop
        if sum(1 for _ in expressions(loop.body)) > CODE_LIMITS.peeled_expressions:
            return loop
        start = self._bound(self._known(loop.start, values), _LARGER)
        stop = self._bound(self._known(loop.stop, values), _SMALLER)
        if start is None or stop is None:
            return loop
        whole = [*self._unclamped("ge", start), *self._unclamped("le", stop)]
        if not whole:
            return loop
        turn, own = self._names.fresh(f"{loop.var}_turn"), self._names.fresh(f"{loop.var}_own")
        self.variables.append((own, INT64))
        first = _binary("add", start.place, Var(INT64, turn))

        def renamed(e: Expr) -> Expr:
            return replace(e, name=own) if isinstance(e, Var) and e.name == loop.var else e

        inside = (Assign(own, first), *rewrite_body(loop.body, renamed))
        count = _sum("sub", stop.added, start.added)
        fast = For(turn, Const(INT64, 0), count, step, inside, loop.span)
        return If(conjunction(whole), (fast,), (loop,), loop.span)

    def _unclamped(self, op: CompareOp, bound: _Bound) -> list[Expr]:
        """That a ``bound`` is not clamped: the id, with a constant, beside what is one for all, as
        is decided for whole work-groups."""
        if bound.limit is None:
            return []
        if isinstance(bound.added, Const):
            return [Compare(op, bound.place, bound.limit)]
        own = ItemQuery("global_id", self._row)
        return [Compare(op, own, _binary("sub", bound.limit, bound.added))]

    def _bound(self, bound: Expr, functions: tuple[str, ...]) -> _Bound | None:
        """What a loop's ``bound`` is, where one of ``functions`` clamps it, if anything does."""
        match bound:
            case Call(function=function, args=(one, other)) if function in functions:
                for place, limit in ((one, other), (other, one)):
                    added = self._added(place)
                    if added is not None and self._limits(limit, added):
                        return _Bound(place, added, limit)
                return None
        added = self._added(bound)
        return None if added is None else _Bound(bound, added, None)

    def _limits(self, limit: Expr, added: Expr) -> bool:
        """Whether the id and ``added`` can be compared with ``limit`` so that nothing wraps."""
        if isinstance(added, Const):
            return limit.type == INT64 and is_same_for_all(limit)
        return _is_small(limit)

    def _added(self, place: Expr) -> Expr | None:
        """What is added to the id in ``place``; None where that is not known, or may wrap."""
        match place:
            case ItemQuery("global_id", dim) if dim == self._row:
                return Const(INT64, 0)
            case Binary(op="add", lhs=lhs, rhs=rhs):
                for id_, more in ((lhs, rhs), (rhs, lhs)):
                    added = self._added(id_)
                    if added is not None and _is_small(more):
                        return _sum("add", added, more)
            case Binary(op="sub", lhs=lhs, rhs=rhs):
                added = self._added(lhs)
                if added is not None and _is_small(rhs):
                    return _sum("sub", added, rhs)
        return None


def _is_small(e: Expr) -> bool:
    """Whether ``e`` is made of small constants and extents, so that it does not wrap."""
    match e:
        case Const(value=value):
            return abs(int(value)) < _SMALL
        case Extent():
            return True
        case Binary(op="add" | "sub", lhs=lhs, rhs=rhs):
            return _is_small(lhs) and _is_small(rhs)
        case Binary(op="floordiv", lhs=lhs, rhs=Const(value=value)):
            return _is_small(lhs) and int(value) > 0
    return False


def _sum(op: BinaryOp, first: Expr, more: Expr) -> Expr:
    if isinstance(first, Const) and isinstance(more, Const):
        sign = 1 if op == "add" else -1
        return Const(INT64, int(first.value) + sign * int(more.value))
    return _binary(op, first, more)


def _binary(op: BinaryOp, lhs: Expr, rhs: Expr) -> Expr:
    return Binary(INT64, op, lhs, rhs)
