"""Scalar replacement over loops: what a work-item loads or stores of a row in one loop stays in
registers for the next ones.

    for k in range(lane, n, 64):          full = lane + 448 < n
        own += a[g, k]                    if full: for t in range(8): kept[t] = a[g, lane + 64 * t]
    mean = reduce(own) / n                if full: for t in range(8): own += kept[t]
    for k in range(lane, n, 64):   →      for k in range(lane + 512 if full else lane, n, 64): …
        out[g, k] = a[g, k] - mean        mean = reduce(own) / n
                                          if full: for t in range(8):
                                              out[g, lane + 64 * t] = kept[t] - mean
                                          for k in range(lane + 512 if full else lane, n, 64): …

A first part of the iterations (``Kernel.kept_turns``) is all done or none of it; some behind it
each under a mask of their own; the rest goes through memory.  Iterations are done in their order.
Of arrays that share memory with no other one, that is legal

* where the kernel does not store to them, or
* where all its stores are in these loops, at the element that is kept, and nobody else stores to
  one that a work-item stores to (``ArrayParam.stored_by_one``): what a work-item keeps is what is
  in memory.

What such a loop stores and a later one overwrites is stored by that one only, where nothing else
loads from the array.

Source: Callahan, Carr and Kennedy, Improving register allocation for subscripted variables, PLDI
1990.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.codegen.kept_loops import PLACE, KeptLoops, KeptRow, kept_loops, row_form
from fusionq.codegen.loads_ahead import FULL, TURN, loads_in_each_iteration
from fusionq.codegen.scoping import Body
from fusionq.ir.conjunctions import conjunction
from fusionq.ir.int64_operations import int64
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Assign,
    Compare,
    Const,
    Expr,
    For,
    If,
    ItemQuery,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.types import INT64
from fusionq.ir.walk import rewrite, rewrite_body, stored_arrays, subexpressions

_KEPT = "kept_row_"
_OWN = "kept_own_"
_FIRST = f"{FULL}rows"
"""The first element of a row that a work-item does not keep."""


@dataclass(frozen=True)
class KeptRows:
    """``kernel`` has more variables and private arrays; its body is ``early``, loads that may be
    done before the launch before has ended, and ``body`` behind it.  ``once``: as of
    ``early_loads.EarlyLoads``."""

    kernel: Kernel
    early: Body
    body: Body
    once: frozenset[str]


def with_kept_rows(kernel: Kernel, body: Body, loads_early: bool) -> KeptRows | None:
    """``kernel``, whose body without nested blocks is ``body``, with rows in registers as its
    ``kept_turns`` say; None where there are none."""
    found = kept_loops(kernel, body) if kernel.kept_turns is not None else None
    if found is None:
        return None
    return _Rewriting(kernel, body, found).rewritten(loads_early)


class _Rewriting:
    def __init__(self, kernel: Kernel, body: Body, found: KeptLoops) -> None:
        assert kernel.kept_turns is not None
        self._kernel = kernel
        self._body = body
        self._of = found
        self._full, self._masked = kernel.kept_turns
        self._first = Var(INT64, _FIRST)
        self._kept = [
            ArrayDecl(f"{_KEPT}{k}", row.type, (self._full + self._masked,), "private")
            for k, row in enumerate(found.rows)
        ]
        self._own: list[ArrayDecl] = []

    def rewritten(self, loads_early: bool) -> KeptRows:
        found = self._of
        early = [
            k for k, row in enumerate(found.rows) if row.unwritten and row.begins_with_load
        ]
        if not loads_early:
            early = []
        body: list[Stmt] = [*self._count()]
        for place, stmt in enumerate(self._body):
            if place not in found.places:
                body.append(stmt)
                continue
            number = found.places.index(place)
            begun = [
                k
                for k, row in enumerate(found.rows)
                if row.touching[0] == number and row.begins_with_load and k not in early
            ]
            body += [*self._loads(begun), *self._uses(number)]
        before = (*self._count(), *self._loads(early)) if early else ()
        kernel = replace(
            self._kernel,
            arrays=(*self._kernel.arrays, *self._kept, *self._own),
            variables=(*self._kernel.variables, (self._first.name, INT64)),
            body=(*before, *body),
        )
        once = frozenset(found.rows[k].array for k in early if _is_of_group(found.rows[k]))
        return KeptRows(kernel, before, tuple(body), once)

    def _count(self) -> Iterator[Stmt]:
        """Sets the first element that is not kept."""
        first = self._first.name
        yield Assign(first, self._of.start)
        yield If(self._are_there(self._full - 1), (Assign(first, self._at(self._full)),), ())
        for turn in range(self._full, self._full + self._masked):
            yield If(self._are_there(turn), (Assign(first, self._at(turn + 1)),), ())

    def _are_there(self, turn: int) -> Expr:
        """Whether all loops have that iteration."""
        return conjunction(Compare("lt", self._at(turn), stop) for stop in self._of.stops)

    def _at(self, turn: int | Expr) -> Expr:
        """The element of an iteration."""
        distance = Const(INT64, turn * self._of.step) if isinstance(turn, int) else int64(
            "mul", turn, Const(INT64, self._of.step)
        )
        return int64("add", self._of.start, distance)

    def _is_kept(self, turn: int | Expr) -> Expr:
        return Compare("lt", self._at(turn), self._first)

    def _in_turns(self, name: str, full: Sequence[Stmt], turn: Var, use: Body) -> Iterator[Stmt]:
        """``full``, where all the first iterations are kept; ``use`` with ``turn`` for those under
        masks."""
        yield If(self._is_kept(self._full - 1), tuple(full), ())
        if self._masked:
            var = Var(INT64, f"{TURN}{name}")
            later = int64("add", var, Const(INT64, self._full))
            use = rewrite_body(use, lambda e: later if e == turn else e)
            masked = For(
                var.name, Const(INT64, 0), Const(INT64, self._masked), Const(INT64, 1),
                (If(self._is_kept(later), use, ()),),
            )  # fmt: skip
            yield If(self._is_kept(self._full), (masked,), ())

    def _loads(self, rows: Collection[int]) -> Iterator[Stmt]:
        if not rows:
            return
        name = f"{_KEPT}{min(rows)}"
        turn = Var(INT64, f"{TURN}{name}_0")
        get = tuple(
            Store(
                self._kept[k].name,
                (turn,),
                Load(row.type, row.array, self._indices(row, self._at(turn))),
            )
            for k, row in enumerate(self._of.rows)
            if k in rows
        )
        yield from self._in_turns(f"{name}_1", (_loop(turn, self._full, get),), turn, get)

    def _indices(self, row: KeptRow, place: Expr) -> tuple[Expr, ...]:
        return tuple(place if index == PLACE else index for index in row.indices)

    def _uses(self, number: int) -> Iterator[Stmt]:
        """The loop of that number, with what is kept, and what is left of it."""
        loop = self._of.loops[number]
        name = f"{_KEPT}in_{number}"
        turn = Var(INT64, f"{TURN}{name}_0")
        body = tuple(s for stmt in loop.body for s in self._kept_in(stmt, loop.var, turn, number))
        at = self._at(turn)
        own = self._own_loads(number, body)
        use = rewrite_body(body, lambda e: at if e == Var(INT64, loop.var) else e)
        full: tuple[Stmt, ...] = (_loop(turn, self._full, use),)
        if own:
            full = (self._in_chunks(number, body, own, turn),)
        yield from self._in_turns(f"{name}_1", full, turn, use)
        yield replace(loop, start=self._first)

    def _kept_in(self, stmt: Stmt, var: str, turn: Var, number: int) -> Iterator[Stmt]:
        """``stmt`` of a loop with that variable, in which what is kept is not in memory."""

        def kept(array: str, indices: Sequence[Expr]) -> int | None:
            form = row_form(indices, var)
            for k, row in enumerate(self._of.rows):
                if row.array == array and row.indices == form:
                    return k
            return None

        def expr(e: Expr) -> Expr:
            k = kept(e.array, e.indices) if isinstance(e, Load) else None
            return e if k is None else Load(e.type, self._kept[k].name, (turn,))

        (stmt,) = rewrite_body((stmt,), expr)
        k = kept(stmt.array, stmt.indices) if isinstance(stmt, Store) else None
        if k is None or not isinstance(stmt, Store):
            yield stmt
            return
        element = self._kept[k]
        yield Store(element.name, (turn,), stmt.value, stmt.span)
        if not self._of.rows[k].is_stored_again(number):
            yield replace(stmt, value=Load(element.dtype, element.name, (turn,)))

    def _own_loads(self, number: int, body: Body) -> list[Expr]:
        """What else each iteration loads that the loop does not store: some iterations' at once, so
        that each does not wait behind the stores of the one before."""
        loop = replace(self._of.loops[number], body=body)
        params = {p.name: p for p in self._kernel.params if isinstance(p, ArrayParam)}
        stores = stored_arrays(body) & params.keys()
        if not stores:
            return []
        apart = {name for name, p in params.items() if p.restrict}
        return [
            unit
            for unit in loads_in_each_iteration(self._kernel, loop)
            if all(
                e.array not in stores and (e.array in apart or stores <= apart)
                for e in subexpressions(unit)
                if isinstance(e, Load)
            )
            and any(e == Var(INT64, loop.var) for e in subexpressions(unit))
        ]

    def _in_chunks(self, number: int, body: Body, own: Sequence[Expr], turn: Var) -> For:
        """``body`` of the loop of that number for all the first iterations, with loads ``own`` of
        some of them at once."""
        var = Var(INT64, self._of.loops[number].var)
        most = CODE_LIMITS.kept_turns_together
        size = next(n for n in range(most, 0, -1) if self._full % n == 0)
        chunk, before, behind = (Var(INT64, f"{turn.name}_{k}") for k in range(3))
        arrays = [
            ArrayDecl(f"{_OWN}{number}_{k}", load.type, (size,), "private")
            for k, load in enumerate(own)
        ]
        self._own += arrays

        def turn_of(inside: Var) -> Expr:
            return int64("add", int64("mul", chunk, Const(INT64, size)), inside)

        def at(e: Expr, inside: Var) -> Expr:
            if e == turn:
                return turn_of(inside)
            return self._at(turn_of(inside)) if e == var else e

        def of_own(e: Expr) -> Expr:
            return Load(e.type, arrays[own.index(e)].name, (behind,)) if e in own else e

        get = tuple(
            Store(array.name, (before,), rewrite(load, lambda e: at(e, before)))
            for array, load in zip(arrays, own, strict=True)
        )
        use = rewrite_body(rewrite_body(body, of_own), lambda e: at(e, behind))
        inside = _loop(before, size, get), _loop(behind, size, use)
        return For(
            chunk.name, Const(INT64, 0), Const(INT64, self._full // size), Const(INT64, 1), inside
        )


def _is_of_group(row: KeptRow) -> bool:
    """Whether which elements they are depends on the work-group."""
    return any(
        isinstance(e, ItemQuery) and e.query in ("group_id", "global_id")
        for index in row.indices
        for e in subexpressions(index)
    )


def _loop(turn: Var, count: int, body: Body) -> For:
    return For(turn.name, Const(INT64, 0), Const(INT64, count), Const(INT64, 1), body)
