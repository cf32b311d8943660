"""What atomic operations are in every language: the orders that an operation takes, and floating
types' operations as repeated exchanges of their bits."""

from __future__ import annotations

from fusionq.ir.nodes import AtomicOp, MemoryOrderName
from fusionq.ir.types import UINT32, UINT64, ScalarType

FLOAT_UPDATES: dict[AtomicOp, str] = {
    "add": "before + value",
    "sub": "before - value",
    "min": "value < before ? value : before",
    "max": "value > before ? value : before",
}
"""What a floating element becomes, of ``before`` and ``value``."""


DIFFERS = "before != expected && (before == before || expected == expected)"
"""Where a ``compare_exchange`` leaves the element as it is."""


def order_of(order: MemoryOrderName, op: AtomicOp | None) -> MemoryOrderName:
    """A load cannot release and a store cannot acquire: they take the other half."""
    if op == "load" and order in ("acq_rel", "release"):
        return "acquire" if order == "acq_rel" else "relaxed"
    if op == "store" and order in ("acq_rel", "acquire"):
        return "release" if order == "acq_rel" else "relaxed"
    return order


def bits_of(type: ScalarType) -> ScalarType:
    """The unsigned type as wide as ``type``, which has 32 or 64 bits."""
    return UINT32 if type.bits == 32 else UINT64
