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
    Expr,
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
    statement_expressions,
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
    read = {
        e.name
        for s in statements(kernel.body)
        for each in statement_expressions(s)
        for e in subexpressions(each)
        if isinstance(e, Var) and not (isinstance(s, Assign) and s.name == e.name)
    }
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
        later = _Overwritten()
        for stmt in reversed(line):
            if isinstance(stmt, Store) and later.has(stmt):
                dead.add(id(stmt))
            later.before(stmt)
            if isinstance(stmt, Store) and stmt.array in alone and not _reads(stmt, stmt.array):
                later.add(stmt)
    return replace(kernel, body=_drop(kernel.body, dead)) if dead else kernel


class _Overwritten:
    """The elements that statements from some point on overwrite before anything can read them."""

    def __init__(self) -> None:
        self._elements: dict[str, set[tuple[Expr, ...]]] = {}
        self._using: dict[str, set[tuple[str, tuple[Expr, ...]]]] = {}
        """By variable the elements whose indices have it."""

    def has(self, store: Store) -> bool:
        """Whether what ``store`` writes is overwritten."""
        return store.indices in self._elements.get(store.array, ())

    def add(self, store: Store) -> None:
        """``store`` overwrites an element."""
        self._elements.setdefault(store.array, set()).add(store.indices)
        for index in store.indices:
            for e in subexpressions(index):
                if isinstance(e, Var):
                    self._using.setdefault(e.name, set()).add((store.array, store.indices))

    def before(self, stmt: Stmt) -> None:
        """From before ``stmt``, which may read elements, let others read them, or change what
        indices mean."""
        if not self._elements:
            return
        if has_barrier((stmt,)) or any(isinstance(s, (Atomic, Fence)) for s in statements((stmt,))):
            self._elements.clear()
            self._using.clear()
            return
        for e in expressions((stmt,)):
            if isinstance(e, Load):
                self._elements.pop(e.array, None)
        for s in statements((stmt,)):
            name = assigned_variable(s)
            for array, indices in self._using.pop(name, ()) if name is not None else ():
                self._elements.get(array, set()).discard(indices)


def _straight_lines(body: Iterable[Stmt]) -> Iterator[list[Stmt]]:
    """The statement lists that run from start to end, blocks opened; loop bodies are left out."""
    line: list[Stmt] = []
    rest = [*body][::-1]
    while rest:
        s = rest.pop()
        if isinstance(s, Block):
            rest.extend(s.body[::-1])
            continue
        line.append(s)
        if isinstance(s, If):
            yield from _straight_lines(s.then)
            yield from _straight_lines(s.orelse)
    if not any(isinstance(s, (Break, Continue)) for s in line):
        yield line


def _reads(stmt: Stmt, array: str) -> bool:
    return any(isinstance(e, Load) and e.array == array for e in expressions((stmt,)))


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
