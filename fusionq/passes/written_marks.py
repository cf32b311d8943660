"""Marks of which elements have been written: a byte each, in memory as near as the array's own.

    tile[k] = value          tile[k] = value
                      →      tile_written[k] = 1

Marks of private and local arrays are arrays of the kernel, cleared at its start; those of arrays
in global memory are parameters, which begin as whoever launches the kernel sets them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import reduce
from math import prod

from fusionq.base.span import Span
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Barrier,
    Binary,
    Compare,
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
from fusionq.ir.types import INT64, UINT8

_ONE, _ZERO = Const(UINT8, 1), Const(UINT8, 0)


class WrittenMarks:
    """The marks of a kernel's private and local arrays and of its parameters ``tracked``."""

    def __init__(self, kernel: Kernel, tracked: Collection[str], names: FreshNames) -> None:
        self._span = kernel.span
        self._own = {a.name: a for a in kernel.arrays if a.space in ("local", "private")}
        arrays = [p for p in kernel.params if isinstance(p, ArrayParam) and p.name in tracked]
        self._names = {name: names.fresh(f"{name}_written") for name in self._own}
        self._names |= {p.name: names.fresh(f"{p.name}_written") for p in arrays}
        self._loop = names.fresh("element")
        self.params = tuple(replace(p, name=self._names[p.name], dtype=UINT8) for p in arrays)
        """Of the ``tracked``, in the order of the kernel's parameters, each with its layout."""
        self.arrays = tuple(
            ArrayDecl(self._names[a.name], UINT8, (prod(a.shape),), a.space)
            for a in self._own.values()
        )
        """To be declared by the kernel."""
        self.start = self._cleared(kernel.ndim)
        """What the kernel begins with."""

    def mark(self, array: str, indices: Sequence[Expr], span: Span) -> list[Stmt]:
        """After an element was written; nothing for arrays without marks."""
        if array not in self._names:
            return []
        return [Store(self._names[array], self._place(array, indices), _ONE, span)]

    def unwritten(self, array: str, indices: Sequence[Expr], span: Span) -> Expr | None:
        """Whether an element inside the array has not been written; None for arrays without
        marks."""
        if array not in self._names:
            return None
        mark = Load(UINT8, self._names[array], self._place(array, indices), span)
        return Compare("eq", mark, _ZERO)

    def _place(self, array: str, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        own = self._own.get(array)
        return tuple(indices) if own is None else (_linear(indices, own.shape),)

    def _cleared(self, ndim: int) -> tuple[Stmt, ...]:
        """The own marks set to 0: private ones by each work-item, local ones by the group's
        work-items together."""
        items = [(ItemQuery("local_id", d), ItemQuery("local_range", d)) for d in range(ndim)]
        first: Expr = Const(INT64, 0)
        count: Expr = Const(INT64, 1)
        for number, extent in items:
            first = Binary(INT64, "add", Binary(INT64, "mul", first, extent), number)
            count = Binary(INT64, "mul", count, extent)
        cleared: list[Stmt] = []
        for marks in self.arrays:
            alone = marks.space == "private"
            clear = Store(marks.name, (Var(INT64, self._loop),), _ZERO, self._span)
            start, step = (Const(INT64, 0), Const(INT64, 1)) if alone else (first, count)
            stop = Const(INT64, marks.shape[0])
            cleared.append(For(self._loop, start, stop, step, (clear,), self._span))
        if any(marks.space == "local" for marks in self.arrays):
            cleared.append(Barrier(False, True, self._span))
        return tuple(cleared)


def _linear(indices: Sequence[Expr], shape: Sequence[int]) -> Expr:
    """The position of an element in C order."""
    return reduce(
        lambda place, dim: Binary(
            INT64, "add", Binary(INT64, "mul", place, Const(INT64, shape[dim])), indices[dim]
        ),
        range(1, len(shape)),
        indices[0],
    )
