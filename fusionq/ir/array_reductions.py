"""Array reductions: arrays that a kernel changes by atomic operations only, whose results nobody
takes, in whatever order they are done."""

from __future__ import annotations

from typing import Literal, TypeAlias

from fusionq.ir.nodes import ArrayParam, Atomic, Fence, Kernel, Load, Store
from fusionq.ir.walk import expressions, statements

ReductionOp: TypeAlias = Literal["add", "min", "max", "and", "or", "xor"]

_OPS: dict[str, ReductionOp] = {
    "add": "add", "sub": "add", "min": "min", "max": "max", "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip
"""By an atomic operation the one that combines several of them."""

_SCOPES = ("device", "system")


def array_reductions(kernel: Kernel) -> dict[str, ReductionOp]:
    """The array parameters of ``kernel`` of integers that it uses in relaxed atomic operations
    alone, without their results, with the operation that combines all of them."""
    found: dict[str, ReductionOp] = {}
    other = {e.array for e in expressions(kernel.body) if isinstance(e, Load)}
    for stmt in statements(kernel.body):
        match stmt:
            case Atomic():
                op = _OPS.get(stmt.op)
                plain = stmt.order == "relaxed" and stmt.scope in _SCOPES and stmt.result is None
                if op is None or not plain or found.setdefault(stmt.array, op) != op:
                    other.add(stmt.array)
            case Store():
                other.add(stmt.array)
            case Fence():
                return {}
    params = {p.name for p in kernel.params if isinstance(p, ArrayParam) and p.dtype.is_integer}
    return {array: op for array, op in found.items() if array in params - other}
