"""How far apart the elements are that neighbouring work-items access."""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.ir.nodes import (
    Binary,
    Cast,
    Const,
    Expr,
    Extent,
    For,
    ItemQuery,
    Kernel,
    Load,
    Param,
    Unary,
    Var,
)
from fusionq.ir.walk import operands, statements
from fusionq.planning.known_values import KnownValues

CONSECUTIVE = (-1, 0, 1)
"""Strides with which a vector's elements are one load or store."""


class Strides:
    """By how much expressions grow from a work-item to the next in a dimension, the last one if no
    other is asked for."""

    def __init__(self, kernel: Kernel, values: KnownValues, dim: int | None = None) -> None:
        self._dim = kernel.ndim - 1 if dim is None else dim
        self._values = values
        self._loops = {s.var: s for s in statements(kernel.body) if isinstance(s, For)}
        self._known: dict[str, int | None] = {}

    def are_consecutive(self, indices: Sequence[Expr]) -> bool:
        """Whether neighbours access neighbouring elements, or the same."""
        *outer, inner = map(self.of, indices)
        return not any(stride != 0 for stride in outer) and inner in CONSECUTIVE

    def of(self, expr: Expr) -> int | None:
        """Of an integer expression; None where it is not one number, or not known."""
        match expr:
            case Const() | Param() | Extent():
                return 0
            case ItemQuery(query="global_id" | "local_id", dim=dim):
                return int(dim == self._dim)
            case ItemQuery(query=query):
                return int(query == "local_linear_id")
            case Cast():
                return self.of(expr.operand)
            case Var():
                if expr.name not in self._known:
                    self._known[expr.name] = None  # where its value depends on itself
                    self._known[expr.name] = self._of_variable(expr.name)
                return self._known[expr.name]
            case Unary(op="neg"):
                stride = self.of(expr.operand)
                return None if stride is None else -stride
            case Binary(op="add" | "sub"):
                lhs, rhs = self.of(expr.lhs), self.of(expr.rhs)
                if lhs is None or rhs is None:
                    return None
                return lhs + rhs if expr.op == "add" else lhs - rhs
            case Binary(op="mul"):
                return self._of_product(expr.lhs, expr.rhs)
        if isinstance(expr, Load) or operands(expr):
            return 0 if all(self.of(e) == 0 for e in operands(expr)) else None
        return None

    def _of_variable(self, name: str) -> int | None:
        if name in self._loops:
            loop = self._loops[name]
            return self.of(loop.start) if self.of(loop.step) == 0 else None
        found = {self.of(value) for value in dict.fromkeys(self._values.assigned.get(name, ()))}
        return found.pop() if len(found) == 1 else None

    def _of_product(self, lhs: Expr, rhs: Expr) -> int | None:
        a, b = self.of(lhs), self.of(rhs)
        if a == b == 0:
            return 0
        for stride, other, by in ((a, rhs, b), (b, lhs, a)):
            if stride is not None and by == 0:
                value = self._values.value(other)
                return None if value is None else stride * value
        return None
