"""Negative indices in kernels of numba-dpex, which count from the end there.

An index that may be negative becomes ``i if i >= 0 else i + n`` with the extent ``n``, which is
what numba makes of it.  Most indices are not negative for certain: ids, extents, loop variables,
what is computed from these, and what a condition has been checked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from fusionq.ir.nodes import (
    Assign,
    Atomic,
    Binary,
    Block,
    Cast,
    Compare,
    Const,
    Expr,
    Extent,
    For,
    If,
    Kernel,
    Load,
    Logical,
    Select,
    Stmt,
    Store,
    While,
)
from fusionq.ir.types import INT64, UINT64
from fusionq.ir.value_bounds import Bounds
from fusionq.ir.walk import map_operands


def with_wraparound(kernel: Kernel) -> Kernel:
    """The kernel with numba's meaning of negative indices, in arrays of all kinds."""
    return replace(kernel, body=_Wrapping(kernel).body(kernel.body, Bounds.of(kernel)))


class _Wrapping:
    def __init__(self, kernel: Kernel) -> None:
        self._shapes: Mapping[str, tuple[int, ...]] = {a.name: a.shape for a in kernel.arrays}

    def body(self, body: Iterable[Stmt], known: Bounds) -> tuple[Stmt, ...]:
        """The statements, of which ``known`` holds at the start."""
        return tuple(self._statements(body, known))

    def _statements(self, body: Iterable[Stmt], known: Bounds) -> Iterator[Stmt]:
        for stmt in body:
            yield self._statement(stmt, known)
            known = known.after(stmt)

    def _statement(self, stmt: Stmt, known: Bounds) -> Stmt:
        match stmt:
            case Assign():
                return replace(stmt, value=self._expr(stmt.value, known))
            case Store():
                indices = self._indices(stmt.array, stmt.indices, known)
                return replace(stmt, indices=indices, value=self._expr(stmt.value, known))
            case Atomic():
                indices = self._indices(stmt.array, stmt.indices, known)
                operand = None if stmt.value is None else self._expr(stmt.value, known)
                return replace(stmt, indices=indices, value=operand)
            case If():
                return replace(
                    stmt,
                    cond=self._expr(stmt.cond, known),
                    then=self.body(stmt.then, known.where(stmt.cond)),
                    orelse=self.body(stmt.orelse, known.where(stmt.cond, holds=False)),
                )
            case For():
                start, stop, step = (
                    self._expr(e, known) for e in (stmt.start, stmt.stop, stmt.step)
                )
                body = self.body(stmt.body, known.inside(stmt))
                return replace(stmt, start=start, stop=stop, step=step, body=body)
            case While():
                cond = self._expr(stmt.cond, known)
                return replace(stmt, cond=cond, body=self.body(stmt.body, known.where(stmt.cond)))
            case Block():
                return replace(stmt, body=self.body(stmt.body, known))
        return stmt

    def _expr(self, expr: Expr, known: Bounds) -> Expr:
        match expr:
            case Load():
                return replace(expr, indices=self._indices(expr.array, expr.indices, known))
            case Select():
                return replace(
                    expr,
                    cond=self._expr(expr.cond, known),
                    then=self._expr(expr.then, known.where(expr.cond)),
                    orelse=self._expr(expr.orelse, known.where(expr.cond, holds=False)),
                )
            case Logical():
                rest = known.where(expr.lhs, holds=expr.op == "and")
                return replace(
                    expr, lhs=self._expr(expr.lhs, known), rhs=self._expr(expr.rhs, rest)
                )
        return map_operands(expr, lambda operand: self._expr(operand, known))

    def _indices(self, array: str, indices: tuple[Expr, ...], known: Bounds) -> tuple[Expr, ...]:
        return tuple(self._index(array, d, index, known) for d, index in enumerate(indices))

    def _index(self, array: str, dim: int, index: Expr, known: Bounds) -> Expr:
        found = self._expr(index, known)
        match found:  # unsigned: numba does not count from the end
            case Cast(operand=Cast(type=unsigned, operand=same)) if unsigned == UINT64:
                return same if same.type == INT64 else found
            case Cast(operand=operand) if operand.type == UINT64:
                return found
        least = known.least(index)
        if least is not None and least >= 0:
            return found
        shape = self._shapes.get(array)
        extent = Extent(array, dim) if shape is None else Const(INT64, shape[dim])
        if isinstance(index, Const):
            return Binary(INT64, "sub", extent, Const(INT64, -index.value))
        from_end = Binary(INT64, "add", extent, found)
        return Select(INT64, Compare("ge", found, Const(INT64, 0)), found, from_end)
