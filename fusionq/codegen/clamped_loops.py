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

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from fusionq.codegen.loop_rewriting import LoopRewriting, Values
from fusionq.codegen.scoping import Body
from fusionq.ir.conjunctions import conjunction
from fusionq.ir.int64_operations import int64
from fusionq.ir.nodes import (
    Binary,
    BinaryOp,
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
    Param,
    Select,
    Stmt,
    Var,
)
from fusionq.ir.range_guard import is_same_for_all
from fusionq.ir.types import INT64
from fusionq.ir.walk import (
    statements,
    subexpressions,
)

_SMALL = 1 << 32
"""Constants below it, and sums and quotients of them and extents, do not wrap beside an id."""

_ENDS: tuple[tuple[CompareOp, int], ...] = (("gt", -_SMALL), ("lt", _SMALL))

_NEVER = 1 << 61
"""Above all ids, and its negative below."""

_LARGER, _SMALLER = ("maximum", "pymax"), ("minimum", "pymin")

def with_clamped_loops(kernel: Kernel, body: Body) -> Kernel:
    """``kernel`` with ``body``, in which work-items whose windows are whole go through them without
    asking at every step; as it is, if there are no such loops."""
    kernel = replace(kernel, body=tuple(body))
    if not any(isinstance(s, For) for s in statements(body)):
        return kernel
    return _Splitting(kernel).made()


class _Bound(NamedTuple):
    """A loop's bound: the id of a work-item in the last dimension and what is ``added`` to it,
    unless the ``limit`` is met first, if there is one."""

    place: Expr
    added: Expr
    limit: Expr | None


class _Splitting(LoopRewriting):
    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self._row = kernel.ndim - 1

    def is_given(self, value: Expr, values: Values) -> bool:
        """Whether ``value`` is made of ids and arguments, through variables of such values."""
        return value.type == INT64 and not any(
            isinstance(e, Load) or (isinstance(e, Var) and e.name not in values)
            for e in subexpressions(value)
        )

    def replaced(self, loop: For, values: Values) -> Sequence[Stmt]:
        """The loop, or a condition with a loop without clamps and with it."""
        step = loop.step
        if not isinstance(step, Const) or int(step.value) < 1 or not self.may_be_twice(loop):
            return [loop]
        start = self._bound(self.known(loop.start, values), _LARGER)
        stop = self._bound(self.known(loop.stop, values), _SMALLER)
        if start is None or stop is None:
            return [loop]
        parts = [e for bound in (start, stop) for e in (bound.added, bound.limit) if e is not None]
        small = _are_small(e for part in parts for e in subexpressions(part))
        whole = [*self._unclamped("ge", start, small), *self._unclamped("le", stop, small)]
        if not whole:
            return [loop]
        count, first = _sum("sub", stop.added, start.added), start.place
        fast = self.over_turns(loop, count, step, lambda turn: int64("add", first, turn))
        return [If(conjunction(whole), (fast,), (loop,), loop.span)]

    def _unclamped(self, op: CompareOp, bound: _Bound, small: Expr | None) -> list[Expr]:
        """That a ``bound`` is not clamped: the id, with a constant, beside what is one for all, as
        is decided for whole work-groups.  It is said of none where scalars are not ``small``."""
        if bound.limit is None:
            return []
        own, limit = bound.place, bound.limit
        if not isinstance(bound.added, Const):
            own, limit = ItemQuery("global_id", self._row), int64("sub", limit, bound.added)
        if small is not None:
            limit = Select(INT64, small, limit, Const(INT64, _NEVER if op == "ge" else -_NEVER))
        return [Compare(op, own, limit)]

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


def _are_small(parts: Iterable[Expr]) -> Expr | None:
    """That the scalars among ``parts`` are small; None if there are none."""
    scalars = dict.fromkeys(e for e in parts if isinstance(e, Param))
    if not scalars:
        return None
    return conjunction([Compare(op, e, Const(INT64, end)) for e in scalars for op, end in _ENDS])


def _is_small(e: Expr) -> bool:
    """Whether ``e`` is made of small constants, extents and scalars, so that it does not wrap where
    these are small."""
    match e:
        case Const(value=value):
            return abs(int(value)) < _SMALL
        case Extent() | Param() if e.type == INT64:
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
    if first == Const(INT64, 0) and op == "add":
        return more
    return int64(op, first, more)
