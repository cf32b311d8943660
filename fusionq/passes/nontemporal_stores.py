"""Non-temporal stores of what a launch writes and does not come back to.

    out[i] = a[i] * b[i]    →    out[i] = a[i] * b[i]  # non-temporal

A store of a whole cache line that goes around the caches saves loading the line first.  That is
worth it where a launch touches more memory than stays in them (``planning.streamed_launches``).
Compilers make such stores of vectors without masks: each work-item of the range stores to its own
element, once.  Arrays that the kernel loads from, or that share memory with others, are left alone:
their lines are in the caches.  But a work-item that loads behind the store what it has stored, as
those of fused kernels do, keeps it in a variable:

    t[i] = a[i] * b[i]               t_stored = a[i] * b[i]
    out[i] = t[i] + 1           →    t[i] = t_stored  # non-temporal
                                     out[i] = t_stored + 1  # non-temporal

In overlapped tiles (``passes.overlapped_tiles``) so do rows in which no condition leaves out some.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace

from fusionq.base.frozen import dataclass
from fusionq.codegen.neighbours import is_same_for_row
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.index_sums import index_sum
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Atomic,
    Binary,
    Block,
    Const,
    Expr,
    ItemQuery,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.range_guard import range_guard
from fusionq.ir.types import INT64
from fusionq.ir.walk import (
    expressions,
    has_barrier,
    loaded_arrays,
    rewrite_body,
    statement_expressions,
    statements,
    subexpressions,
)
from fusionq.passes.propagate_indices import propagate_indices


@dataclass(frozen=True)
class Streamed:
    """``kernel`` with non-temporal stores, and the bytes of memory that each of its work-items
    touches."""

    kernel: Kernel
    bytes_per_item: int


def with_nontemporal_stores(kernel: Kernel) -> Streamed | None:
    """``kernel``, over a range, with those of its stores non-temporal of which a compiler makes
    whole vectors; None where there are none."""
    body = kernel.body
    if kernel.ndim == 0 or kernel.arrays or kernel.sub_group_size or has_barrier(body):
        return None
    guard = range_guard([s for s in body if not isinstance(s, Block) or s.body])
    if guard is not None and kernel.ndim - 1 not in guard.limits:
        return None
    every = body if guard is None else guard.guard.then
    streamed = _streamed(kernel, every)
    if not streamed:
        return None

    names = FreshNames([*(p.name for p in kernel.params), *(name for name, _ in kernel.variables)])
    kept = {
        array: Var(store.value.type, names.fresh(f"{array}_stored"))
        for array, store in streamed.items()
        if array in loaded_arrays(body)
    }

    def marked(stmt: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(stmt, Store) or stmt.array not in streamed:
            return (stmt,)
        variable = kept.get(stmt.array)
        if variable is None:
            return (replace(stmt, nontemporal=True),)
        return (
            Assign(variable.name, stmt.value, stmt.span),
            replace(stmt, value=variable, nontemporal=True),
        )

    def stored(expr: Expr) -> Expr:
        return kept.get(expr.array, expr) if isinstance(expr, Load) else expr

    made = replace(
        kernel,
        body=rewrite_body(body, stored, marked),
        variables=(*kernel.variables, *((v.name, v.type) for v in kept.values())),
    )
    return Streamed(made, _bytes_per_item(kernel))


@dataclass(frozen=True)
class StreamedRow:
    """The work-items of a row, whose stores to ``arrays`` are non-temporal: at elements that are by
    ``shift`` farther in the row than they."""

    body: tuple[Stmt, ...]
    arrays: frozenset[str]
    shift: int


def streamed_row(
    kernel: Kernel, body: tuple[Stmt, ...], free: Collection[str]
) -> StreamedRow | None:
    """``body``, which work-items of ``kernel`` run that are neighbours in a row, with non-temporal
    stores to those of the arrays ``free`` of which each stores one element; None where there are
    none.  All of them have one shift."""
    own = ItemQuery("global_id", kernel.ndim - 1)
    found: dict[str, int] = {}
    plain = propagate_indices(replace(kernel, body=body))
    for stmt, _ in _single_stores(plain, plain.body):
        if stmt.array not in free:
            continue
        farther = index_sum(Binary(INT64, "sub", stmt.indices[-1], own))
        if isinstance(farther, Const) and is_same_for_row(stmt.indices[:-1], own):
            found[stmt.array] = int(farther.value)
    if not found:
        return None
    shift = next(iter(found.values()))
    arrays = frozenset(array for array, each in found.items() if each == shift)

    def marked(stmt: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(stmt, Store) or stmt.array not in arrays:
            return (stmt,)
        return (replace(stmt, nontemporal=True),)

    return StreamedRow(rewrite_body(body, stmt=marked), arrays, shift)


def _single_stores(kernel: Kernel, body: tuple[Stmt, ...]) -> Iterator[tuple[Store, ArrayParam]]:
    """The stores that each work-item of ``body`` does, to arrays to which no other statement of the
    ``kernel`` stores and whose neighbours in a row are beside each other in memory; with these."""
    stored = Counter(s.array for s in statements(kernel.body) if isinstance(s, (Store, Atomic)))
    params = {p.name: p for p in kernel.params if isinstance(p, ArrayParam)}
    for stmt in _straight(body):
        if not isinstance(stmt, Store) or stored[stmt.array] > 1 or not stmt.indices:
            continue
        array = params.get(stmt.array)
        if array is None or array.alignment is not None:
            continue
        if array.contiguous or array.unit_stride:
            yield stmt, array


def _streamed(kernel: Kernel, body: tuple[Stmt, ...]) -> dict[str, Store]:
    """The arrays to which each work-item of ``body`` stores its own element, once, and of which
    nothing is loaded but that element behind it; with the stores."""
    own = ItemQuery("global_id", kernel.ndim - 1)
    found: dict[str, Store] = {}
    for stmt, array in _single_stores(kernel, body):
        is_own = stmt.indices[-1] == own
        is_one = array.restrict and is_own and is_same_for_row(stmt.indices[:-1], own)
        if is_one and _is_loaded_behind(kernel.body, stmt):
            found[stmt.array] = stmt
    return found


def _is_loaded_behind(body: tuple[Stmt, ...], store: Store) -> bool:
    """Whether all loads from the array of ``store`` are of its element, in statements behind it."""
    is_behind = False
    for stmt in statements(body):
        for expr in statement_expressions(stmt):
            for e in subexpressions(expr):
                if not isinstance(e, Load) or e.array != store.array:
                    continue
                if not is_behind or e.indices != store.indices:
                    return False
        is_behind = is_behind or stmt is store
    return True


def _straight(body: tuple[Stmt, ...]) -> list[Stmt]:
    """The statements that every work-item runs once."""
    found: list[Stmt] = []
    for stmt in body:
        found += _straight(stmt.body) if isinstance(stmt, Block) else [stmt]
    return found


def _bytes_per_item(kernel: Kernel) -> int:
    """Of elements that a work-item has for itself: at an index that grows with its id."""
    own = ItemQuery("global_id", kernel.ndim - 1)
    accesses: list[Load | Store] = [e for e in expressions(kernel.body) if isinstance(e, Load)]
    accesses += [s for s in statements(kernel.body) if isinstance(s, Store)]
    touched = {
        access.array
        for access in accesses
        if any(e == own for index in access.indices[-1:] for e in subexpressions(index))
    }
    params = (p for p in kernel.params if isinstance(p, ArrayParam) and p.name in touched)
    return sum(p.dtype.nbytes for p in params)
