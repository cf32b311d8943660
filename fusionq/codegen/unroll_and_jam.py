"""Unroll and jam: a lane does several work-items of a tile's row at once.

    b[i] = a[i - 1] + a[i + 1]    →    for k in range(4): kept[k] = a[i - 1 + 256 * k] + …
                                       for k in range(4): b[i + 256 * k] = kept[k]

A compiler does not move a load before the store of the work-item in front, which may be to the same
memory, so that a thread waits for memory once for each work-item.  But work-items of a stage are
in no order: all may load before any of them stores.
"""

from __future__ import annotations

from dataclasses import replace

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.frozen import dataclass
from fusionq.codegen.scoping import Body
from fusionq.ir.nodes import (
    ArrayDecl,
    Assign,
    Binary,
    Block,
    Const,
    Expr,
    For,
    ItemQuery,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.types import INT64
from fusionq.ir.walk import expressions, rewrite_body, subexpressions

_QUERIES = ("global_id", "global_range")


@dataclass(frozen=True)
class Jammed:
    """``body`` does ``items`` work-items, one at every so many lanes, with ``arrays`` more."""

    items: int
    body: Body
    arrays: tuple[ArrayDecl, ...]

    def added_to(self, kernel: Kernel) -> Kernel:
        """``kernel`` with what the body has beside."""
        return replace(kernel, arrays=(*kernel.arrays, *self.arrays))


def jammed(kernel: Kernel, body: Body, most: int, lanes: int) -> Jammed | None:
    """``body`` for up to ``most`` work-items, a power of two, at once; None where a work-item may
    load what it has stored, does more than load, compute and store, or asks for more than its
    global ids: of other queries it is not known whether they differ from work-item to work-item."""
    stored: list[Store] = []
    computed: list[Stmt] = []
    shared = {p.name for p in kernel.params}
    turns = Var(INT64, "turn_0"), Var(INT64, "turn_1")
    for stmt in body:
        loads = any(isinstance(e, Load) and e.array in shared for e in expressions((stmt,)))
        match stmt:
            case Store() if not _has_variables(stmt.indices):
                if stmt.array not in shared or (stored and loads):
                    return None
                stored.append(stmt)
            case Block(body=()):
                pass
            case Assign() if not (stored and loads):
                pass
            case _:
                return None
        if not isinstance(stmt, Store):
            computed.append(stmt)
            continue
        kept = f"kept_{len(stored) - 1}"
        computed.append(Store(kept, turns[:1], stmt.value, stmt.span))
    if any(isinstance(e, ItemQuery) and e.query not in _QUERIES for e in expressions(body)):
        return None
    count = sum(isinstance(e, Load) for e in expressions(body))
    items = most
    while items > 1 and items * count > CODE_LIMITS.loads_at_once:
        items //= 2
    if not stored or items == 1:
        return None
    names = [*shared, *(name for name, _ in kernel.variables), *(a.name for a in kernel.arrays)]
    if any(name.startswith(("kept_", "turn_")) for name in names):
        return None
    arrays = tuple(
        ArrayDecl(f"kept_{k}", store.value.type, (items,), "private")
        for k, store in enumerate(stored)
    )
    stores: list[Stmt] = [
        replace(store, value=Load(arrays[k].dtype, arrays[k].name, turns[1:]))
        for k, store in enumerate(stored)
    ]
    loops = [
        _loop(turn, kernel.ndim, tuple(part), items, lanes)
        for turn, part in zip(turns, (computed, stores), strict=True)
    ]
    return Jammed(items, tuple(loops), arrays)


def _has_variables(indices: tuple[Expr, ...]) -> bool:
    return any(isinstance(e, (Var, Load)) for i in indices for e in subexpressions(i))


def _loop(turn: Var, ndim: int, body: Body, items: int, lanes: int) -> Stmt:
    """``body`` for each of the work-items."""
    last = ItemQuery("global_id", ndim - 1)
    id = Binary(INT64, "add", last, Binary(INT64, "mul", turn, Const(INT64, lanes)))

    def there(e: Expr) -> Expr:
        return id if e == last else e

    moved = rewrite_body(body, there)
    return For(turn.name, Const(INT64, 0), Const(INT64, items), Const(INT64, 1), moved)
