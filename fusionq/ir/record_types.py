"""Records: NumPy's structured dtypes.

The IR has no records: each field of an array of them is an array of its own, over the same memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from fusionq.base.frozen import dataclass
from fusionq.ir.types import ScalarType, element_type


@dataclass(frozen=True, slots=True)
class Field:
    """A member of a record: an element, or for a ``shape`` an array of them."""

    name: str
    dtype: ScalarType | RecordType
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape) if self.shape else ''}"


@dataclass(frozen=True, slots=True)
class RecordType(ScalarType):
    """The type of a record: its fields in order, wherever they lie in it."""

    fields: tuple[Field, ...] = ()

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """A NumPy dtype with these fields, without padding."""
        return np.dtype([(f.name, f.dtype.dtype, f.shape) for f in self.fields])

    @property
    def strong(self) -> ScalarType:
        """Itself: a record is never a Python number."""
        return self

    def field(self, name: str) -> Field | None:
        """The field of that name, None if there is none."""
        return next((field for field in self.fields if field.name == name), None)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Member:
    """A field, or a field of a field, that is no record itself, as it lies in a record.

    ``path``: the fields' names from the outermost on.  ``offset``: bytes from the record's start.
    ``dtype``: of an element.  ``shape``, ``strides`` (bytes): of all arrays along the path.
    """

    path: tuple[str, ...]
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@lru_cache(1024)
def record_type(dtype: np.dtype[Any]) -> RecordType | None:
    """The type of the elements of a structured dtype; None where kernels cannot have them."""
    fields = []
    for name in dtype.names or ():
        element, shape = _element(dtype, name)
        kind = element_type(element) if element.names is None else record_type(element)
        if kind is None or 0 in shape:
            return None
        fields.append(Field(name, kind, shape))
    if not fields:
        return None
    return RecordType(f"record({', '.join(map(str, fields))})", fields=tuple(fields))


@lru_cache(1024)
def members(dtype: np.dtype[Any]) -> tuple[Member, ...]:
    """The members of a structured dtype, in the order of its fields."""
    return tuple(_members(dtype))


def _members(dtype: np.dtype[Any]) -> Iterator[Member]:
    for name in dtype.names or ():
        element, shape = _element(dtype, name)
        strides = tuple(
            element.itemsize * prod(shape[dim + 1 :]) for dim in range(len(shape))
        )
        assert dtype.fields is not None
        offset = dtype.fields[name][1]
        if element.names is None:
            yield Member((name,), offset, element, shape, strides)
        else:
            for m in members(element):
                yield Member(
                    (name, *m.path), offset + m.offset, m.dtype, shape + m.shape,
                    strides + m.strides,
                )  # fmt: skip


def _element(dtype: np.dtype[Any], name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The dtype of a field's elements, and its extents; none where it is no array."""
    assert dtype.fields is not None
    whole = dtype.fields[name][0]
    return (whole, ()) if whole.subdtype is None else whole.subdtype
