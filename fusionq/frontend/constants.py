"""What a kernel takes from outside as a constant: numbers, and tables of numbers.

A table is a tuple, a list or a small array.  What can change later is copied when it is read.
"""

from __future__ import annotations

import hashlib
from enum import Enum

import numpy as np

from fusionq.base.dtypes import numba_dtype
from fusionq.frontend.signature import ConstantType
from fusionq.ir.types import complex_type_of, element_type, type_of_scalar

MOST_TABLE_BYTES = 65536
"""Of one constant array: what OpenCL C guarantees of constant memory (CL_DEVICE_MAX_CONSTANT_
BUFFER_SIZE, OpenCL 3.0 API, table 4.3)."""


def is_table(obj: object) -> bool:
    """Whether an array is small enough to be a constant, and of a type that kernels have."""
    return (
        isinstance(obj, np.ndarray)
        and 0 < obj.nbytes <= MOST_TABLE_BYTES
        and not isinstance(obj, np.ma.MaskedArray)
        and element_type(obj.dtype.newbyteorder("=")) is not None
    )


def frozen(obj: object) -> object:
    """``obj`` as it is now: lists become tuples, small arrays are copied."""
    if isinstance(obj, (tuple, list)):
        items = tuple(map(frozen, obj))
        make = getattr(type(obj), "_make", None)
        return make(items) if make and field_names(obj) else items
    if isinstance(obj, np.ndarray) and is_table(obj):
        copy = np.array(obj, obj.dtype.newbyteorder("="), order="C", subok=False)
        copy.flags.writeable = False
        return copy
    return obj


def field_names(obj: object) -> tuple[str, ...]:
    """The names of a named tuple's fields; none of another object."""
    names = getattr(type(obj), "_fields", ()) if isinstance(obj, tuple) else ()
    return names if hasattr(type(obj), "_make") else ()


def constant_type(value: object) -> ConstantType | None:
    """The type of an argument that is no array and no number: a tuple or list of numbers, and of
    tuples and lists of these, a string, None, a member of an enumeration.  None for others."""
    if isinstance(value, Enum):
        kind = type(value)
        return ConstantType(f"{kind.__module__}.{kind.__qualname__} {identity(value)}", value)
    if value is None or isinstance(value, str):
        return ConstantType(identity(value), value)
    if not isinstance(value, (tuple, list)):
        return None
    items = frozen(value)
    assert isinstance(items, tuple)
    return ConstantType(identity(items), items) if _is_of_numbers(items) else None


def _is_of_numbers(items: tuple[object, ...]) -> bool:
    return all(
        _is_of_numbers(item)
        if isinstance(item, tuple)
        else (type_of_scalar(item) or complex_type_of(item)) is not None
        for item in items
    )


def identity(obj: object) -> str:
    """Text that differs for constants that differ; objects go by their name."""
    if isinstance(obj, tuple):
        names = field_names(obj)
        of = f"{type(obj).__name__}[{', '.join(names)}]" if names else ""
        return f"{of}({', '.join(map(identity, obj))})"
    if isinstance(obj, np.ndarray) and is_table(obj):
        contents = hashlib.sha256(obj.tobytes()).hexdigest()
        return f"array {obj.dtype.str} {obj.shape} {contents}"
    if isinstance(obj, Enum):
        return f"{obj} {identity(obj.value)}"
    if type(obj) is int and obj.bit_length() > 256:  # whose decimal digits Python may not give
        return f"int {obj:#x}"
    if isinstance(obj, (bool, int, float, complex, str, np.generic, type(None))):
        return f"{type(obj).__name__} {obj!r}"
    if isinstance(obj, (np.finfo, np.iinfo)):
        return f"{type(obj).__name__} {obj.dtype}"
    if isinstance(obj, np.dtype):
        return repr(obj)
    if numba_dtype(obj) is not None:
        return f"numba {obj}"
    module = getattr(obj, "__module__", None)
    name = getattr(obj, "__qualname__", getattr(obj, "__name__", type(obj).__qualname__))
    return f"{module}.{name}"
