"""Context arrays of a work-group function: what a work-item keeps from one region to another lies
in local memory, one place for each work-item.

Source: Jääskeläinen et al., "pocl: A Performance-Portable OpenCL Implementation", International
Journal of Parallel Programming 43, 2015: context data of parallel regions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fusionq.codegen.scoping import assigned_before_read
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.nodes import (
    ArrayDecl,
    Assign,
    Atomic,
    Expr,
    For,
    ItemQuery,
    Load,
    Stmt,
    Store,
    Var,
    While,
    WorkItemLoop,
)
from fusionq.ir.types import ScalarType
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    nested_bodies,
    rewrite_body,
    statements,
)

OWN = ItemQuery("local_linear_id", 0)
"""The place of a work-item in its group."""


def with_context_arrays(
    body: tuple[Stmt, ...],
    variables: Mapping[str, ScalarType],
    arrays: Sequence[ArrayDecl],
    repeated: Mapping[str, Assign],
    names: FreshNames,
    size: int,
) -> tuple[tuple[Stmt, ...], list[ArrayDecl]]:
    """``body``, regions for groups of ``size`` work-items, with the context arrays of those of
    ``variables`` and of the private ``arrays`` that several regions use, and these arrays.
    ``repeated``: assignments that each region makes for itself."""
    context = _Context(variables, repeated, names, size)
    return context.kept_in(body, arrays), context.arrays


class _Context:
    def __init__(
        self,
        variables: Mapping[str, ScalarType],
        repeated: Mapping[str, Assign],
        names: FreshNames,
        size: int,
    ) -> None:
        self.arrays: list[ArrayDecl] = []
        self._variables, self._repeated = variables, repeated
        self._names, self._size = names, size
        self._kept: dict[str, str] = {}
        """The context arrays by variable."""
        self._moved: dict[str, str] = {}
        """The same by private array."""

    def kept_in(self, body: tuple[Stmt, ...], arrays: Sequence[ArrayDecl]) -> tuple[Stmt, ...]:
        used: dict[str, list[tuple[WorkItemLoop, bool]]] = {}
        for region, again in _regions(body, False):
            for name in _mentioned(region.body):
                used.setdefault(name, []).append((region, again))
        for name, type in self._variables.items():
            places = used.get(name, [])
            if not places:
                continue
            (region, again), *others = places
            if others or (again and not assigned_before_read(region.body, name, False)[0]):
                self._kept[name] = self._array(name, type, ())
        for array in arrays:
            places = used.get(array.name, [])
            if array.space == "private" and (len(places) > 1 or any(again for _, again in places)):
                self._moved[array.name] = self._array(array.name, array.dtype, array.shape)
        return rewrite_body(body, stmt=self._stmt)

    def _array(self, name: str, type: ScalarType, shape: tuple[int, ...]) -> str:
        kept = self._names.fresh(f"{name}_of_items")
        self.arrays.append(ArrayDecl(kept, type, (*shape, self._size), "local"))
        return kept

    def _stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(stmt, WorkItemLoop):
            return (stmt,)
        body = rewrite_body(stmt.body, self._load, self._without_repeated)
        read = {e.name for e in expressions(body) if isinstance(e, Var)}
        assigned = {name for s in statements(body) if (name := assigned_variable(s))}
        before: list[Stmt] = [s for name, s in self._repeated.items() if name in read]
        after: list[Stmt] = []
        for name, kept in self._kept.items():
            if name not in read | assigned:
                continue
            type = self._variables[name]
            first, always = assigned_before_read(body, name, False)
            if not first or (name in assigned and not always):
                before.append(Assign(name, Load(type, kept, (OWN,))))
            if name in assigned:
                after.append(Store(kept, (OWN,), Var(type, name)))
        return (replace(stmt, body=(*before, *body, *after)),)

    def _without_repeated(self, stmt: Stmt) -> tuple[Stmt, ...]:
        match stmt:
            case Assign() if stmt.name in self._repeated:
                return ()
            case Store() | Atomic() if stmt.array in self._moved:
                indices = (*stmt.indices, OWN)
                return (replace(stmt, array=self._moved[stmt.array], indices=indices),)
        return (stmt,)

    def _load(self, expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.array in self._moved:
            indices = (*expr.indices, OWN)
            return replace(expr, array=self._moved[expr.array], indices=indices)
        return expr


def _regions(body: Sequence[Stmt], again: bool) -> Iterator[tuple[WorkItemLoop, bool]]:
    """The work-item loops, each with whether it may run several times."""
    for stmt in body:
        if isinstance(stmt, WorkItemLoop):
            yield stmt, again
            continue
        for nested in nested_bodies(stmt):
            yield from _regions(nested, again or isinstance(stmt, For | While))


def _mentioned(body: Sequence[Stmt]) -> set[str]:
    """The variables and arrays that ``body`` reads or sets."""
    found: set[str] = set()
    for stmt in statements(body):
        name = assigned_variable(stmt)
        found |= {name} if name is not None else set()
        found |= {stmt.array} if isinstance(stmt, Store | Atomic) else set()
    for e in expressions(body):
        if isinstance(e, Var):
            found.add(e.name)
        elif isinstance(e, Load):
            found.add(e.array)
    return found
