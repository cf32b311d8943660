"""Local arrays that are never alive at the same time share memory.

    tmp = LocalAccessor(64, f)              tmp = LocalAccessor(64, f)
    tmp2 = LocalAccessor(64, f)             …tmp…
    …tmp…                            →      group_barrier(group)
    group_barrier(group)                    …tmp…
    …tmp2…

A barrier at the top level separates the last use of the one from the first of the other.  Only
arrays of one type and shape share, so that no access changes but in name.
"""

from __future__ import annotations

from dataclasses import replace

from fusionq.ir.nodes import ArrayDecl, Atomic, Barrier, Block, Expr, Kernel, Load, Stmt, Store
from fusionq.ir.walk import expressions, rewrite_body, statements


def share_local_arrays(kernel: Kernel) -> Kernel:
    """``kernel`` with as few local arrays as that allows."""
    alive = _alive(kernel)
    names: dict[str, str] = {}
    last: dict[str, int] = {}
    kept: list[ArrayDecl] = []
    for array in sorted(kernel.arrays, key=lambda a: alive.get(a.name, (0, 0))):
        if array.space != "local" or array.name not in alive:
            kept.append(array)
            continue
        start, end = alive[array.name]
        for other in kept:
            alike = (other.space, other.dtype, other.shape) == ("local", array.dtype, array.shape)
            if alike and other.name in last and last[other.name] < start:
                names[array.name] = other.name
                last[other.name] = end
                break
        else:
            kept.append(array)
            last[array.name] = end
    if not names:
        return kernel
    return replace(kernel, body=_renamed(kernel.body, names), arrays=tuple(kept))


def _alive(kernel: Kernel) -> dict[str, tuple[int, int]]:
    """For each array the first and last stretch between top-level barriers that uses it."""
    alive: dict[str, tuple[int, int]] = {}
    stretch = 0
    for stmt in _top_level(kernel.body):
        if isinstance(stmt, Barrier):
            stretch += 1
            continue
        for name in _arrays(stmt):
            first, _ = alive.get(name, (stretch, stretch))
            alive[name] = first, stretch
    return alive


def _top_level(body: tuple[Stmt, ...]) -> list[Stmt]:
    """Statements that every work-item passes once, blocks opened."""
    flat: list[Stmt] = []
    for stmt in body:
        flat.extend(_top_level(stmt.body) if isinstance(stmt, Block) else [stmt])
    return flat


def _arrays(stmt: Stmt) -> set[str]:
    loads = {e.array for e in expressions((stmt,)) if isinstance(e, Load)}
    return loads | {s.array for s in statements((stmt,)) if isinstance(s, (Store, Atomic))}


def _renamed(body: tuple[Stmt, ...], names: dict[str, str]) -> tuple[Stmt, ...]:
    def expr(e: Expr) -> Expr:
        return replace(e, array=names.get(e.array, e.array)) if isinstance(e, Load) else e

    def stmt(s: Stmt) -> tuple[Stmt, ...]:
        if isinstance(s, (Store, Atomic)):
            return (replace(s, array=names.get(s.array, s.array)),)
        return (s,)

    return rewrite_body(body, expr, stmt)
