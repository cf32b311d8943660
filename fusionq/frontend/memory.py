"""How arrays that a kernel declares lie in memory."""

from __future__ import annotations

from fusionq.ir.nodes import ArrayDecl, Space
from fusionq.ir.types import ScalarType, component_type


def declaration(
    name: str, dtype: ScalarType, shape: tuple[int, ...], space: Space
) -> ArrayDecl:
    """An array of the kernel's own; a complex one has its parts in one more dimension."""
    whole = (*shape, 2) if dtype.is_complex else shape
    return ArrayDecl(name, component_type(dtype), whole, space)
