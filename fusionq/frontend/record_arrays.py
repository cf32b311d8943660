"""The arrays that stand for an array of records in the IR: one for each field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from fusionq.base.frozen import dataclass
from fusionq.frontend.signature import ArgumentType, ArrayType, LocalType, part_names
from fusionq.ir.record_types import RecordType
from fusionq.ir.types import ScalarType

FieldNames = dict[str, dict[str, str]]
"""By the name of an array of records: for each field the name of its array, which may be one of
records again."""


@dataclass(frozen=True, slots=True)
class FieldArray:
    """The array of a field that is no record: its name, its ``shape`` beyond the records'."""

    name: str
    dtype: ScalarType
    shape: tuple[int, ...]


def name_fields(
    arguments: Sequence[tuple[str, ArgumentType]], taken: set[str]
) -> FieldNames:
    """Names for the fields of those ``arguments``, each with its type, that are arrays of records;
    none is ``taken``, which they then are, nor that of a part of a complex number."""
    found: FieldNames = {}
    for name, kind in arguments:
        if isinstance(kind, ScalarType) and kind.is_complex:
            taken.update(part_names(name, tuple(taken)))
    for name, kind in arguments:
        if isinstance(kind, (ArrayType, LocalType)) and isinstance(kind.dtype, RecordType):
            _name_fields(name, kind.dtype, taken, found)
    return found


def _name_fields(name: str, dtype: RecordType, taken: set[str], found: FieldNames) -> None:
    own = found[name] = {}
    for field in dtype.fields:
        candidate = f"{name}_{re.sub(r'[^A-Za-z0-9_]', '_', field.name)}"
        while candidate in taken:
            candidate += "_"
        taken.add(candidate)
        own[field.name] = candidate
        if isinstance(field.dtype, RecordType):
            _name_fields(candidate, field.dtype, taken, found)


def field_arrays(
    name: str, dtype: RecordType, names: Mapping[str, Mapping[str, str]]
) -> Iterator[FieldArray]:
    """The arrays of an array's fields, in the order of ``ir.record_types.members``."""
    for field in dtype.fields:
        array = names[name][field.name]
        if isinstance(field.dtype, RecordType):
            for inner in field_arrays(array, field.dtype, names):
                yield FieldArray(inner.name, inner.dtype, field.shape + inner.shape)
        else:
            yield FieldArray(array, field.dtype, field.shape)
