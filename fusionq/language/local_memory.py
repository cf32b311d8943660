"""Arrays in fast memory: one a work-group (LocalAccessor), or one a work-item (PrivateArray)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from fusionq.base.call_site import user_span
from fusionq.base.dtypes import as_dtype, is_bfloat16
from fusionq.base.errors import ArgumentError
from fusionq.language.casts import integer_limits
from fusionq.language.execute import KernelArray, ScalarConstructor
from fusionq.language.scalar_functions import to_int

_KINDS = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8), "c": (8, 16)}
"""The dtypes of the kernel language: NumPy's kind letters, with sizes in bytes."""


class LocalAccessor:
    """An array in local memory: each work-group has its own, which its work-items share.

    An argument of ``submit`` for a kernel over an NdRange.  ``shape``: an int or one to three
    of them, each at least 1.  ``dtype``: bool, int8 … int64, uint8 … uint64, float16/32/64,
    bfloat16, complex64/128, also as numba's types, and records of these.  The contents are
    undefined when a work-group starts.  Equal shapes and dtypes are equal accessors; the kernel is
    compiled for them.  Raises ArgumentError for anything else.
    Source: SYCL 2020, section 4.7.6.11.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: int | Sequence[int], dtype: npt.DTypeLike) -> None:
        self.shape = array_shape(shape, "a LocalAccessor")
        self.dtype = element_dtype(dtype, "a LocalAccessor")

    def __repr__(self) -> str:
        shape = str(self.shape[0]) if len(self.shape) == 1 else str(self.shape)
        return f"LocalAccessor({shape}, {self.dtype.name})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalAccessor) and (
            (self.shape, self.dtype) == (other.shape, other.dtype)
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __getitem__(self, index: Any) -> Any:
        raise _host_access(self)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise _host_access(self)

    @property
    def nbytes(self) -> int:
        """Bytes of local memory that a work-group takes for it."""
        return prod(self.shape) * self.dtype.itemsize


def work_group_array(accessor: LocalAccessor) -> KernelArray:
    """One work-group's array, for a kernel that runs as plain Python."""
    return KernelArray(undefined(accessor.shape, accessor.dtype))


def _host_access(accessor: LocalAccessor) -> TypeError:
    return TypeError(
        f"{accessor!r} has elements inside a kernel only, one array for each work-group; store "
        "what the host needs in a Buffer"
    )


class PrivateArray(KernelArray):
    """An array of a work-item's own, made inside a kernel.

    ``shape``: an int or a tuple of them, at least 1, known when the kernel is compiled.
    ``fill_zeros``: whether the elements start as 0; they are undefined otherwise.
    """

    def __init__(self, shape: int | Sequence[int], dtype: Any, fill_zeros: bool = False) -> None:
        dtype = int if dtype is to_int else dtype  # as which kernels see int
        element = dtype.dtype if isinstance(dtype, ScalarConstructor) else as_dtype(dtype)
        make = np.zeros if fill_zeros else undefined
        super().__init__(make(array_shape(shape, "a PrivateArray"), element))


def array_shape(shape: object, what: str) -> tuple[int, ...]:
    """``shape`` as a tuple of one to three positive ints; ArgumentError if it is none."""
    extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if not 1 <= len(extents) <= 3:
        raise ArgumentError(
            f"{user_span()}: {what} has 1 to 3 dimensions, not {len(extents)}: {shape!r}"
        )
    if not all(_is_positive(extent) for extent in extents):
        raise ArgumentError(
            f"{user_span()}: the shape of {what} is an int or a tuple of ints, each at least 1, "
            f"not {shape!r}"
        )
    return tuple(map(index, extents))


def _is_positive(extent: Any) -> bool:
    """Whether ``extent`` is an integer from 1."""
    if isinstance(extent, (bool, np.bool_)):
        return False
    try:
        return index(extent) >= 1
    except TypeError:
        return False


def element_dtype(dtype: Any, what: str) -> np.dtype[Any]:
    """``dtype`` as NumPy's, if the kernel language has it, or records of it; ArgumentError if
    not."""
    try:
        found: np.dtype[Any] | None = None if dtype is None else as_dtype(dtype)
    except TypeError:
        found = None
    if found is not None and is_bfloat16(found):
        return found
    if found is not None and found.names:
        for name in found.names:
            element_dtype(found[name].base, f"the field {name!r} of {what}")
        return found
    if found is None or not found.isnative or found.itemsize not in _KINDS.get(found.kind, ()):
        raise ArgumentError(
            f"{user_span()}: the dtype of {what} is bool, int8 … int64, uint8 … uint64 or "
            f"bfloat16, float16, float32, float64, complex64, complex128, not {dtype!r}"
        )
    return found


def undefined(shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """A new array of what no kernel should rely on."""
    if dtype.names is not None:
        made: npt.NDArray[Any] = np.zeros(shape, dtype)
        for name in dtype.names:
            made[name] = undefined(made[name].shape, made[name].dtype)
        return made
    if dtype.kind in "fc" or is_bfloat16(dtype):
        return np.full(shape, np.nan, dtype)
    return np.full(shape, True if dtype.kind == "b" else integer_limits(dtype)[1], dtype)
