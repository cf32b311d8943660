"""Loops of a work-group over the same places of rows, and what several of them load or store of
each place: what ``codegen.kept_rows`` keeps in registers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.codegen.loads_ahead import loads_in_each_iteration
from fusionq.codegen.scoping import Body
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Atomic,
    Binary,
    Const,
    Expr,
    Extent,
    For,
    ItemQuery,
    Kernel,
    Load,
    Param,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.types import BFLOAT16, INT64, ScalarType
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    rewrite_body,
    statement_expressions,
    statements,
    subexpressions,
)

PLACE = Var(INT64, "")
"""A loop's variable, whichever loop it is."""


@dataclass(frozen=True)
class KeptRow:
    """Elements of an array, one for each place in a row, that the loops ``touching`` (their numbers
    in order) load or store; ``loading`` those that load; ``begins_with_load``: whether the first
    one loads before it stores.  ``is_dead``: whether nothing else loads from the array."""

    array: str
    type: ScalarType
    indices: tuple[Expr, ...]
    touching: tuple[int, ...]
    loading: tuple[int, ...]
    storing: tuple[int, ...]
    begins_with_load: bool
    unwritten: bool
    is_dead: bool

    def is_kept_behind(self, loop: int) -> bool:
        """Whether a loop behind that one loads what is kept."""
        return self.touching[0] <= loop < self.loading[-1]

    def is_stored_again(self, loop: int) -> bool:
        """Whether what that loop stores is stored anew before anything loads it from memory."""
        return self.is_dead and self.storing[-1] > loop


@dataclass(frozen=True)
class KeptLoops:
    """Loops of a kernel over the same places of rows, from ``start`` on in steps of ``step``, where
    they stand in its body, and the ``rows`` that several of them are about; variables that hold an
    index are put in where they stand."""

    places: tuple[int, ...]
    loops: tuple[For, ...]
    start: ItemQuery
    step: int
    rows: tuple[KeptRow, ...]

    @property
    def stops(self) -> tuple[Expr, ...]:
        """Where the loops end, each once."""
        return tuple(dict.fromkeys(loop.stop for loop in self.loops))

    @property
    def words(self) -> int:
        """32-bit registers for each place of a row."""
        return max(
            sum(max(row.type.nbytes // 4, 1) for row in self.rows if row.is_kept_behind(loop))
            for loop in range(len(self.loops))
        )


def kept_loops(kernel: Kernel, body: Body) -> KeptLoops | None:
    """The loops of ``kernel``, whose body without nested blocks is ``body``, that have rows in
    common; None where there are none."""
    alike: dict[tuple[Expr, Expr], list[int]] = {}
    for place, stmt in enumerate(body):
        if isinstance(stmt, For) and _is_over_row(stmt):
            alike.setdefault((stmt.start, stmt.step), []).append(place)
    for places in alike.values():
        if len(places) > 1:
            found = _of(kernel, body, places)
            if found is not None:
                return found
    return None


def arrays_over_rows(kernel: Kernel, body: Body) -> set[str]:
    """The arrays of which loops of ``kernel`` load or store a place of a row in each iteration."""
    count = Counter(assigned_variable(s) for s in statements(body))
    loops = [_with_indices_put_in(s, count) for s in body if isinstance(s, For) and _is_over_row(s)]
    params = [p.name for p in kernel.params if isinstance(p, ArrayParam)]
    return {name for name in params if any(_forms(loop, name) for loop in loops)}


def _is_over_row(loop: For) -> bool:
    """Whether it is short, over a row of which each work-item of a work-group does some places."""
    return (
        isinstance(loop.start, ItemQuery)
        and loop.start.query == "local_id"
        and isinstance(loop.step, Const)
        and int(loop.step.value) >= 1
        and isinstance(loop.stop, Extent)
        and all(isinstance(s, Assign | Store) for s in loop.body)
        and len(list(expressions(loop.body))) <= CODE_LIMITS.streamed_expressions
    )


def _of(kernel: Kernel, body: Body, places: Sequence[int]) -> KeptLoops | None:
    count = Counter(assigned_variable(s) for s in statements(body))
    loops: list[For] = []
    for place in places:
        loop = body[place]
        assert isinstance(loop, For)
        loops.append(_with_indices_put_in(loop, count))
    whole = tuple(
        loops[places.index(p)] if p in places else stmt for p, stmt in enumerate(body)
    )
    rows = tuple(_rows(kernel, whole, loops))
    touching = sorted({loop for row in rows for loop in row.touching})
    if not rows:
        return None
    number = {loop: k for k, loop in enumerate(touching)}

    def renumbered(row: KeptRow) -> KeptRow:
        touched, loading, storing = (
            tuple(number[loop] for loop in of)
            for of in (row.touching, row.loading, row.storing)
        )
        return replace(row, touching=touched, loading=loading, storing=storing)

    start, step = loops[0].start, loops[0].step
    assert isinstance(start, ItemQuery) and isinstance(step, Const)
    return KeptLoops(
        tuple(places[loop] for loop in touching),
        tuple(loops[loop] for loop in touching),
        start,
        int(step.value),
        tuple(map(renumbered, rows)),
    )


def _with_indices_put_in(loop: For, count: Mapping[str | None, int]) -> For:
    """``loop`` with the values of variables that are set here only, by what needs no memory."""
    known: dict[str, Expr] = {}

    def expr(e: Expr) -> Expr:
        return known.get(e.name, e) if isinstance(e, Var) else e

    body: list[Stmt] = []
    for stmt in loop.body:
        (stmt,) = rewrite_body((stmt,), expr)
        body.append(stmt)
        if isinstance(stmt, Assign) and count[stmt.name] == 1 and _is_index(stmt.value, loop):
            known[stmt.name] = stmt.value
    return replace(loop, body=tuple(body))


def _is_index(value: Expr, loop: For) -> bool:
    """Whether ``value`` is of what stays as it is, and the loop's variable."""
    own = Var(INT64, loop.var)
    return all(
        e == own or isinstance(e, ItemQuery | Const | Extent | Param | Binary)
        for e in subexpressions(value)
    )


def _rows(kernel: Kernel, body: Body, loops: Sequence[For]) -> Iterator[KeptRow]:
    """The rows that several of ``loops`` are about, which are statements of ``body``."""
    stores = Counter(s.array for s in statements(body) if isinstance(s, Store | Atomic))
    loads = Counter(e.array for e in expressions(body) if isinstance(e, Load))
    for param in kernel.params:
        if not isinstance(param, ArrayParam) or not param.restrict or param.dtype == BFLOAT16:
            continue
        if stores[param.name] and not param.stored_by_one:
            continue
        forms = [_forms(loop, param.name) for loop in loops]
        for indices in dict.fromkeys(form for of in forms for form, _, _ in of):
            of_loop = [[kind for form, kind, _ in of if form == indices] for of in forms]
            touching = tuple(k for k, kinds in enumerate(of_loop) if kinds)
            loading = tuple(k for k in touching if "load" in of_loop[k])
            storing = tuple(k for k in touching if "store" in of_loop[k])
            if len(touching) < 2 or not loading or loading[-1] == touching[0]:
                continue
            if sum(kinds.count("store") for kinds in of_loop) != stores[param.name]:
                continue
            first = loops[touching[0]]
            begins = of_loop[touching[0]][0] == "load"
            load = next((e for form, _, e in forms[touching[0]] if form == indices), None)
            if begins and load not in loads_in_each_iteration(kernel, first):
                continue
            kept = sum(kinds.count("load") for kinds in of_loop)
            yield KeptRow(
                param.name, param.dtype, indices, touching, loading, storing, begins,
                param.unwritten and not stores[param.name], kept == loads[param.name],
            )  # fmt: skip


def _forms(
    loop: For, array: str
) -> list[tuple[tuple[Expr, ...], Literal["load", "store"], Load | Store]]:
    """The elements of ``array`` that an iteration of ``loop`` loads and stores, in order: those
    whose place in the row is one index, and others stay as they are."""
    found: list[tuple[tuple[Expr, ...], Literal["load", "store"], Load | Store]] = []

    def add(kind: Literal["load", "store"], node: Load | Store) -> None:
        indices = row_form(node.indices, loop.var)
        if node.array == array and indices is not None:
            found.append((indices, kind, node))

    for stmt in loop.body:
        for whole in statement_expressions(stmt):
            for e in subexpressions(whole):
                if isinstance(e, Load):
                    add("load", e)
        if isinstance(stmt, Store):
            add("store", stmt)
    return found


def row_form(indices: Sequence[Expr], var: str) -> tuple[Expr, ...] | None:
    """``indices`` with ``PLACE`` for the loop's variable; None where they are not such."""
    own = Var(INT64, var)
    places = [index for index in indices if index == own]
    others = (e for index in indices if index != own for e in subexpressions(index))
    if len(places) != 1 or not all(
        isinstance(e, ItemQuery | Const | Extent | Param | Binary) for e in others
    ):
        return None
    return tuple(PLACE if index == own else index for index in indices)
