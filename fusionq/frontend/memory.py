"""How arrays that a kernel declares lie in memory."""

from __future__ import annotations

from fusionq.frontend.record_arrays import FieldNames, field_arrays
from fusionq.frontend.signature import ArrayType, LocalType
from fusionq.ir.nodes import ArrayDecl, Space
from fusionq.ir.record_types import RecordType
from fusionq.ir.types import ScalarType, component_type


def declaration(
    name: str, dtype: ScalarType, shape: tuple[int, ...], space: Space
) -> ArrayDecl:
    """An array of the kernel's own; a complex one has its parts in one more dimension."""
    whole = (*shape, 2) if dtype.is_complex else shape
    return ArrayDecl(name, component_type(dtype), whole, space)


def declarations(
    name: str, kind: LocalType | ArrayType, shape: tuple[int, ...], space: Space, fields: FieldNames
) -> list[ArrayDecl]:
    """The arrays that one of the kernel's own is in the IR: of records, one for each field."""
    if not isinstance(kind.dtype, RecordType):
        return [declaration(name, kind.dtype, shape, space)]
    return [
        declaration(field.name, field.dtype, (*shape, *field.shape), space)
        for field in field_arrays(name, kind.dtype, fields)
    ]
