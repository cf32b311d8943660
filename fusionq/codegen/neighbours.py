"""Superword-level parallelism: a thread does several neighbouring work-items, as one vector.

    if i < n: b[i] = a[i] + 1    →    if 4 * i + 3 < n:
                                          for k in range(4): kept[k] = a[4 * i + k] + 1
                                          for k in range(4): b[4 * i + k] = kept[k]
                                      else:
                                          for k in range(4):
                                              if 4 * i + k < n: b[4 * i + k] = a[4 * i + k] + 1

Where elements of the loops lie side by side and begin at a multiple of 16 bytes, the compiler makes
one load and one store of each.  Work-items are in no order, so that all may load before any of them
stores; a work-item that loads what it has stored takes the value.  Only kernels that load, compute
and store take part: at the ids themselves, of arrays that they do not store to also at a distance,
and at the same elements for a whole row.  Conditions on ids have to be decided in the interior of
rows (``codegen.interior``), outside of which work-items are done one by one.

Records of a profile before and behind all that are a work-group's own: they stay where they are,
and the work-group is that of the threads.
"""

from __future__ import annotations

from dataclasses import replace

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.frozen import dataclass
from fusionq.codegen.interior import Interior, interior_of
from fusionq.codegen.scoping import Body, flatten_blocks
from fusionq.ir.conjunctions import conjunction
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
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
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.range_guard import is_global_id, range_guard
from fusionq.ir.types import INT64, ScalarType
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    rewrite_body,
    statements,
    subexpressions,
)

_OF_GROUPS = frozenset({"group_id", "group_range", "local_range"})


@dataclass(frozen=True)
class Neighbours:
    """``kernel`` with ``items`` neighbours in the last dimension for each work-item; elements of
    ``arrays`` have to begin at multiples of so many elements, and so have their rows."""

    kernel: Kernel
    items: int
    arrays: tuple[str, ...]


def with_neighbours(kernel: Kernel, body: Body, nbytes: int) -> Neighbours | None:
    """``kernel``, whose statements are ``body``, with vectors of up to ``nbytes``; None where it
    does more than load, compute and store, or has elements too large."""
    guard = range_guard(body)
    last = kernel.ndim - 1
    if guard is None or last not in guard.limits or kernel.arrays:
        return None
    ids = {s.name: s.value for s in guard.before if isinstance(s, Assign)}

    def there(e: Expr) -> Expr:
        return ids.get(e.name, e) if isinstance(e, Var) else e

    before, middle, behind = _with_records(rewrite_body(guard.guard.then, there))
    every = flatten_blocks(middle)
    interior = interior_of(replace(kernel, body=every), eager=False) or Interior((), (), (), every)
    inner = interior.body
    arrays = accessed_by_rows(kernel, inner, last)
    if not arrays:
        return None
    items = nbytes // max(a.dtype.nbytes for a in arrays)
    least, most = CODE_LIMITS.shortest_vector, CODE_LIMITS.vector_kept_bytes
    while items >= least and items * kept_bytes(inner) > most:
        items //= 2
    names = [*(p.name for p in kernel.params), *(name for name, _ in kernel.variables)]
    taken = any(name.startswith(("kept_", "turn_")) for name in names)
    split = None if taken or items < least else loads_and_stores(kernel, inner)
    if split is None:
        return None
    computed, stores, kept = split
    own = ItemQuery("global_id", last)
    first = Binary(INT64, "mul", own, Const(INT64, items))
    limit = guard.limits[last]
    others: list[Expr] = [
        Compare("lt", ItemQuery("global_id", d), bound)
        for d, bound in guard.limits.items()
        if d != last
    ]
    turns = [Var(INT64, f"turn_{k}") for k in range(3)]
    end = Binary(INT64, "add", first, Const(INT64, items - 1))

    def loop(turn: Var, part: Body) -> Stmt:
        id = Binary(INT64, "add", first, turn)
        of_one = rewrite_body(part, lambda e: id if e == own else e)
        zero, one = Const(INT64, 0), Const(INT64, 1)
        return For(turn.name, zero, Const(INT64, items), one, of_one)

    inside: list[Expr] = [
        Compare("lt", end, limit),
        *interior.where,
        *(Compare("ge", first, low) for low in interior.lows),
        *(Compare("le", end, high) for high in interior.highs),
    ]
    together = loop(turns[0], computed), loop(turns[1], stores)
    alone = loop(turns[2], (If(Compare("lt", own, limit), every),))
    guarded = If(conjunction(inside), together, (alone,))
    # Records stand outside of the limit: where it is known, a compiler does an element of the
    # vector before it asks for the others.  The first thread is inside, and the last is named.
    ends = tuple(_of_threads(s, last, limit, items) for s in behind)
    recorded: Body = (*before, guarded, *ends)
    if others:
        recorded = (If(conjunction(others), recorded),)
    declared = tuple(ArrayDecl(n, type, (items,), "private") for n, type in kept.items())
    made = replace(kernel, body=recorded, arrays=declared)
    return Neighbours(made, items, tuple(a.name for a in arrays))


def _with_records(body: Body) -> tuple[Body, Body, Body]:
    """``body`` without the records that it begins and ends with, between these."""
    first, end = 0, len(body)
    while first < end and _is_record(body[first]):
        first += 1
    while first < end and _is_record(body[end - 1]):
        end -= 1
    return body[:first], body[first:end], body[end:]


def _is_record(stmt: Stmt) -> bool:
    """Whether ``stmt`` is done by the first work-item of a sub-group, for the whole work-group, as
    no statement of a user is, and is about nothing that a work-item has computed."""
    if not isinstance(stmt, If):
        return False
    inside = list(expressions((stmt,)))
    own = {assigned_variable(s) for s in statements((stmt,))}
    return any(isinstance(e, Call) and e.function == "leads_sub_group" for e in inside) and not any(
        isinstance(e, Load)
        or (isinstance(e, Var) and e.name not in own)
        or (isinstance(e, ItemQuery) and e.query not in _OF_GROUPS)
        for e in inside
    )


def _of_threads(stmt: Stmt, last: int, limit: Expr, items: int) -> Stmt:
    """The record ``stmt`` where a thread has so many ``items``: of those within ``limit``, a
    work-group's last is another."""
    start = Binary(INT64, "mul", ItemQuery("group_id", last), ItemQuery("local_range", last))
    rounded = Binary(INT64, "add", limit, Const(INT64, items - 1))
    threads = Binary(INT64, "floordiv", rounded, Const(INT64, items))
    of_items = Binary(INT64, "sub", limit, start)
    of_threads = Binary(INT64, "sub", threads, start)
    (changed,) = rewrite_body((stmt,), lambda e: of_threads if e == of_items else e)
    return changed


def kept_bytes(body: Body) -> int:
    """Of a work-item, what it loads and stores: as registers of 4 bytes."""
    accesses = len({e for e in expressions(body) if isinstance(e, Load)})
    return 4 * (accesses + sum(isinstance(s, Store) for s in body))


def accessed_by_rows(kernel: Kernel, body: Body, last: int) -> list[ArrayParam]:
    """Those of which each work-item of a row accesses its own element, or one at the same distance;
    none where an access is of another kind."""
    found: dict[str, ArrayParam] = {}
    params = {p.name: p for p in kernel.params if isinstance(p, ArrayParam)}
    stored = {s.array for s in body if isinstance(s, Store)}
    own = ItemQuery("global_id", last)
    for stmt in body:
        if not isinstance(stmt, (Assign, Store, Block)) or (isinstance(stmt, Block) and stmt.body):
            return []
        if any(isinstance(e, ItemQuery) and not is_global_id(e) for e in expressions((stmt,))):
            return []
        accesses: list[Load | Store] = [e for e in expressions((stmt,)) if isinstance(e, Load)]
        if isinstance(stmt, Store):
            accesses.append(stmt)
        for access in accesses:
            array, indices = params[access.array], access.indices
            distance = _distance(indices[-1], own) if indices else None
            if distance is None:
                if isinstance(access, Store) or not is_same_for_row(indices, own):
                    return []
                continue
            is_elsewhere = distance != 0 and access.array in stored
            if is_elsewhere or not is_same_for_row(indices[:-1], own):
                return []
            if array.alignment is not None or not (array.contiguous or array.unit_stride):
                return []
            found[array.name] = array
    return list(found.values()) if stored else []


def _distance(index: Expr, own: Expr) -> int | None:
    """What is added to the id; None where the index is another expression."""
    match index:
        case Binary(_, "add", lhs, Const(_, value)) if lhs == own:
            return int(value)
        case Binary(_, "add", Const(_, value), rhs) if rhs == own:
            return int(value)
        case Binary(_, "sub", lhs, Const(_, value)) if lhs == own:
            return -int(value)
    return 0 if index == own else None


def is_same_for_row(indices: tuple[Expr, ...], own: Expr) -> bool:
    """Whether ``indices`` are the same whatever the id ``own`` is."""
    return not any(
        isinstance(e, (Var, Load)) or e == own for i in indices for e in subexpressions(i)
    )


def loads_and_stores(
    kernel: Kernel, body: Body, prefix: str = "kept_"
) -> tuple[Body, Body, dict[str, ScalarType]] | None:
    """What a work-item computes, with what it stores in private arrays, whose names begin with
    ``prefix``, at ``turn_0``; its stores of what is kept at ``turn_1``; and the arrays.  None where
    it may load what it has stored at other indices."""
    restricted = {p.name for p in kernel.params if isinstance(p, ArrayParam) and p.restrict}
    at_turn = (Var(INT64, "turn_0"),)
    computed: list[Stmt] = []
    stores: list[Stmt] = []
    kept: dict[str, ScalarType] = {}
    stored: dict[str, dict[tuple[Expr, ...], Expr]] = {}
    refused = False

    def taken(e: Expr) -> Expr:
        nonlocal refused
        if not isinstance(e, Load):
            return e
        if e.array in stored:
            value = stored[e.array].get(e.indices)
            refused = refused or value is None or e.array not in restricted
            return e if value is None else value
        if e.array not in restricted and not restricted.issuperset(stored):
            refused = True
        return e

    for stmt in body:
        if isinstance(stmt, Block):
            computed.append(stmt)
            continue
        (own,) = rewrite_body((stmt,), taken)
        if isinstance(own, Store):
            name = f"{prefix}{len(kept)}"
            kept[name] = own.value.type
            computed.append(Store(name, at_turn, own.value, own.span))
            of_store = Load(own.value.type, name, (Var(INT64, "turn_1"),))
            stores.append(replace(own, value=of_store))
            # Another element of the array may be the same one.
            stored[own.array] = {own.indices: Load(own.value.type, name, at_turn)}
        else:
            computed.append(own)
    return None if refused else (tuple(computed), tuple(stores), kept)
