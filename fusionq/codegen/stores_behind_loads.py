"""Stores to neighbouring elements behind the loads before them (instruction scheduling).

    for c in range(3):                            kept_0 = 1 - rgb[y, x, 0]
        out[y, x, c] = 1 - rgb[y, x, c]    →      kept_1 = 1 - rgb[y, x, 1]
                                                  kept_2 = 1 - rgb[y, x, 2]
                                                  out[y, x, 0] = kept_0
                                                  out[y, x, 1] = kept_1
                                                  out[y, x, 2] = kept_2

Rows of which the extents are constants (``analysis.small_extents``) are few elements.  Compilers
for CPUs that make vectors of work-items load those of neighbours as whole vectors, and store them
so, where no other access stands between them: the loop above took 3.9 ns a pixel and takes 0.7 (AMD
EPYC, AVX2).  Legal where the array shares memory with no other, and what is loaded of it behind the
store is another element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from fusionq.codegen.scoping import Body
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.index_sums import index_sum
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Binary,
    Block,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
    While,
    WorkItemLoop,
)
from fusionq.ir.types import INT64, ScalarType
from fusionq.ir.walk import (
    rewrite_body,
    statement_expressions,
    statements,
    subexpressions,
)

MOST_STATEMENTS = 32
"""That a loop is unrolled to."""


def with_stores_behind_loads(kernel: Kernel, body: Body) -> Kernel:
    """``kernel`` with ``body``, in which stores to rows of few elements stand together."""
    kernel = replace(kernel, body=tuple(body))
    rows = {p.name for p in kernel.params if isinstance(p, ArrayParam) and p.extents and p.restrict}
    if not any(isinstance(s, Store) and s.array in rows for s in statements(body)):
        return kernel
    scheduling = _Scheduling(kernel, rows)
    body = scheduling.body(kernel.body)
    return replace(kernel, body=body, variables=(*kernel.variables, *scheduling.variables))


class _Scheduling:
    def __init__(self, kernel: Kernel, rows: set[str]) -> None:
        self._rows = rows
        loops = {s.var for s in statements(kernel.body) if isinstance(s, For)}
        taken = {name for name, _ in kernel.variables} | {p.name for p in kernel.params}
        self._names = FreshNames(taken | loops | {a.name for a in kernel.arrays})
        self.variables: list[tuple[str, ScalarType]] = []

    def body(self, body: Body) -> tuple[Stmt, ...]:
        """``body``, and those inside it, in the other order."""
        unrolled = [each for stmt in body for each in self._unrolled(stmt)]
        made: list[Stmt] = []
        for is_straight, group in groupby(unrolled, lambda s: isinstance(s, Assign | Store)):
            run = list(group)
            made += self._scheduled(run) if is_straight else map(self._nested, run)
        return tuple(made)

    def _nested(self, stmt: Stmt) -> Stmt:
        match stmt:
            case If():
                return replace(stmt, then=self.body(stmt.then), orelse=self.body(stmt.orelse))
            case For() | While() | WorkItemLoop() | Block():
                return replace(stmt, body=self.body(stmt.body))
        return stmt

    def _unrolled(self, stmt: Stmt) -> Iterator[Stmt]:
        """The iterations of a loop that stores to a row, one after the other."""
        if not isinstance(stmt, For) or self._length(stmt) > MOST_STATEMENTS:
            yield stmt
            return
        for value in _values(stmt):

            def known(e: Expr, value: int = value) -> Expr:
                return Const(INT64, value) if e == Var(INT64, stmt.var) else e

            for each in rewrite_body(stmt.body, known):
                yield from self._unrolled(each)

    def _length(self, loop: For) -> int:
        """The statements of all iterations; more than may be where it is not one of those."""
        values, length = _values(loop), 0
        for stmt in loop.body:
            if isinstance(stmt, For):
                length += self._length(stmt)
            elif isinstance(stmt, Assign | Store):
                length += 1
            else:
                return MOST_STATEMENTS + 1
        is_over_row = any(
            isinstance(s, Store)
            and s.array in self._rows
            and any(e == Var(INT64, loop.var) for i in s.indices for e in subexpressions(i))
            for s in statements(loop.body)
        )
        return length * len(values) if values and is_over_row else MOST_STATEMENTS + 1

    def _scheduled(self, run: list[Stmt]) -> list[Stmt]:
        """Statements in a row, of which stores to rows wait for what stands behind them."""
        if sum(isinstance(s, Store) and s.array in self._rows for s in run) < 2:
            return run
        made: list[Stmt] = []
        waiting: list[Store] = []
        for stmt in run:
            if not all(_may_wait(store, stmt) for store in waiting):
                made += waiting
                waiting.clear()
            if not isinstance(stmt, Store) or stmt.array not in self._rows:
                made.append(stmt)
                continue
            kept = self._names.fresh("kept")
            self.variables.append((kept, stmt.value.type))
            made.append(Assign(kept, stmt.value, stmt.span))
            waiting.append(replace(stmt, value=Var(stmt.value.type, kept)))
        return made + waiting


def _values(loop: For) -> Sequence[int]:
    """Those of its variable, if they are constants."""
    match loop:
        case For(start=Const(_, start), stop=Const(_, stop), step=Const(_, step)) if int(step):
            return range(int(start), int(stop), int(step))
    return ()


def _may_wait(store: Store, stmt: Stmt) -> bool:
    """Whether ``stmt`` is the same before ``store``, of an array that shares memory with no other:
    it loads other elements, and sets nothing that the store's indices are made of."""
    if isinstance(stmt, Assign) and any(
        isinstance(e, Var) and e.name == stmt.name for e in _all(store.indices)
    ):
        return False
    loads = (e for e in _all(statement_expressions(stmt)) if isinstance(e, Load))
    return all(e.array != store.array or _differ(e.indices, store.indices) for e in loads)


def _all(values: Iterable[Expr]) -> Iterator[Expr]:
    return (e for value in values for e in subexpressions(value))


def _differ(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    """Whether two elements certainly are not one: an index differs by a constant."""
    for one, other in zip(a, b, strict=True):
        difference = index_sum(Binary(INT64, "sub", one, other))
        if isinstance(difference, Const) and int(difference.value):
            return True
    return False
