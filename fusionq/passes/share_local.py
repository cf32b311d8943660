"""Local arrays that are never in use at the same time share memory.

    tmp = LocalAccessor(64, np.float32)         tmp = LocalAccessor(64, np.float32)  # memory tmp
    tmp2 = LocalAccessor((4, 8), np.int64)      tmp2 = LocalAccessor((4, 8), np.int64)  # memory tmp
    …tmp…                                   →   …tmp…
    group_barrier(group)                        group_barrier(group)
    …tmp2…                                      …tmp2…

A barrier at the top level separates the last use of the one from the first of the other.
"""

from __future__ import annotations

from dataclasses import replace

from fusionq.ir.nodes import Atomic, Barrier, Block, GroupCall, Kernel, Load, Stmt, Store
from fusionq.ir.walk import expressions, statements


def share_local_arrays(kernel: Kernel) -> Kernel:
    """``kernel`` with its local arrays in as little memory as that allows, the largest first."""
    alive = _alive(kernel)
    arrays = [a for a in kernel.arrays if a.space == "local" and a.name in alive]
    memories: list[list[str]] = []
    for array in sorted(arrays, key=lambda a: -a.nbytes):
        first, last = alive[array.name]
        for memory in memories:
            if all(last < alive[other][0] or alive[other][1] < first for other in memory):
                memory.append(array.name)
                break
        else:
            memories.append([array.name])
    place = {name: memory[0] for memory in memories if len(memory) > 1 for name in memory}
    if not place:
        return kernel
    shared = (replace(a, memory=place.get(a.name, a.memory)) for a in kernel.arrays)
    return replace(kernel, arrays=tuple(shared))


def _alive(kernel: Kernel) -> dict[str, tuple[int, int]]:
    """For each array the first and last stretch between top-level barriers that uses it."""
    alive: dict[str, tuple[int, int]] = {}
    stretch = 0
    for stmt in _top_level(kernel.body):
        if isinstance(stmt, Barrier) and stmt.local_memory:
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
    inside = list(statements((stmt,)))
    loads |= {s.values for s in inside if isinstance(s, GroupCall) and s.values is not None}
    return loads | {s.array for s in inside if isinstance(s, (Store, Atomic))}
