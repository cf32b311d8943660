"""Dead-store elimination.

A variable or private array that nothing reads disappears; so does a store to an element that
the same work-item overwrites before anything can read it:

    tmp = a[i]                   out[i] = b[i]
    out[i] = 0            →
    out[i] = b[i]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Atomic,
    Block,
    Break,
    Continue,
    Fence,
    For,
    GroupCall,
    If,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
    While,
)
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    has_barrier,
    rewrite_body,
    statements,
    subexpressions,
)


def eliminate_dead_stores(kernel: Kernel) -> Kernel:
    """``kernel`` without stores that nothing can observe."""
    while True:
        smaller = _without_overwritten(_without_unread(kernel))
        if smaller == kernel:
            return kernel
        kernel = smaller


def _without_unread(kernel: Kernel) -> Kernel:
    """Drop variables and private arrays that are written but never read."""
    read = {e.name for e in expressions(kernel.body) if isinstance(e, Var)}
    loaded = {e.array for e in expressions(kernel.body) if isinstance(e, Load)}
    for s in statements(kernel.body):
        if isinstance(s, Atomic):
            loaded.add(s.array)
        if isinstance(s, (Atomic, GroupCall)) and s.result is not None:
            read.add(s.result)
    private = {a.name for a in kernel.arrays}

    def stmt(s: Stmt) -> tuple[Stmt, ...]:
        match s:
            case Assign(name) if name not in read:
                return ()
            case Store(array) if array in private and array not in loaded:
                return ()
            case If(_, (), ()) | For(_, _, _, _, ()):
                return ()
            case _:
                return (s,)

    body = rewrite_body(kernel.body, stmt=stmt)
    return replace(
        kernel,
        body=body,
        variables=tuple(v for v in kernel.variables if v[0] in read),
        arrays=tuple(a for a in kernel.arrays if a.name in loaded),
    )


def _without_overwritten(kernel: Kernel) -> Kernel:
    """Drop stores that a later one in the same straight line of statements overwrites.

    Only arrays that share memory with no other parameter are considered.
    """
    alone = {p.name for p in kernel.params if isinstance(p, ArrayParam) and p.restrict}
    dead: set[int] = set()
    for line in _straight_lines(kernel.body):
        for position, store in enumerate(line):
            if isinstance(store, Store) and store.array in alone:
                for later in line[position + 1 :]:
                    if isinstance(later, Store) and (
                        (later.array, later.indices) == (store.array, store.indices)
                        and not _reads(later, store.array)
                    ):
                        dead.add(id(store))
                        break
                    if _may_observe(later, store):
                        break
    return replace(kernel, body=_drop(kernel.body, dead)) if dead else kernel


def _straight_lines(body: Iterable[Stmt]) -> Iterator[list[Stmt]]:
    """The statement lists that run from start to end, blocks opened; loop bodies are left out."""
    line: list[Stmt] = []

    def open_blocks(stmts: Iterable[Stmt]) -> Iterator[list[Stmt]]:
        for s in stmts:
            if isinstance(s, Block):
                yield from open_blocks(s.body)
            else:
                line.append(s)
                if isinstance(s, If):
                    yield from _straight_lines(s.then)
                    yield from _straight_lines(s.orelse)

    yield from open_blocks(body)
    if not any(isinstance(s, (Break, Continue)) for s in line):
        yield line


def _may_observe(stmt: Stmt, store: Store) -> bool:
    """Whether ``stmt`` may read what ``store`` wrote, let others read it, or change where it
    points."""
    return (
        has_barrier((stmt,))
        or any(isinstance(s, (Atomic, Fence)) for s in statements((stmt,)))
        or _reads(stmt, store.array)
        or bool(_assigns(stmt) & _variables(store))
    )


def _reads(stmt: Stmt, array: str) -> bool:
    return any(isinstance(e, Load) and e.array == array for e in expressions((stmt,)))


def _assigns(stmt: Stmt) -> set[str]:
    return {name for s in statements((stmt,)) if (name := assigned_variable(s)) is not None}


def _variables(store: Store) -> set[str]:
    return {e.name for index in store.indices for e in subexpressions(index) if isinstance(e, Var)}


def _drop(body: Iterable[Stmt], dead: set[int]) -> tuple[Stmt, ...]:
    """``body`` without the statements whose identities are ``dead``."""
    kept: list[Stmt] = []
    for s in body:
        if id(s) in dead:
            continue
        match s:
            case If():
                s = replace(s, then=_drop(s.then, dead), orelse=_drop(s.orelse, dead))
            case Block() | For() | While():
                s = replace(s, body=_drop(s.body, dead))
        kept.append(s)
    return tuple(kept)
