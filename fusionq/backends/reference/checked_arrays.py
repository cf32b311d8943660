"""The reference device's memory: host memory, and arrays over it that check every access."""

from __future__ import annotations

import ctypes
import mmap
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from fusionq.backends.base import ArrayBinding
from fusionq.backends.host_visible import HostVisible
from fusionq.backends.reference.scalars import Scalar
from fusionq.base.errors import DeviceError
from fusionq.base.span import Span
from fusionq.ir.types import ScalarType
from fusionq.language.casts import integer_limits

_PRIVATE: dict[str, int] = {} if sys.platform == "win32" else {"flags": mmap.MAP_PRIVATE}
"""A process that was forked has memory of its own, as of any other allocation."""


class OutOfBounds(DeviceError, IndexError):
    """A kernel accesses an array outside its extents."""


class HostAllocation(HostVisible):
    """Page-aligned host memory, which the system provides page by page on first touch."""

    usm_interface: dict[str, Any] | None = None
    """It is no USM."""

    def __init__(self, nbytes: int) -> None:
        try:
            pages = mmap.mmap(-1, max(nbytes, 1), **_PRIVATE)
        except (OSError, OverflowError, ValueError) as error:
            raise DeviceError(
                f"the reference device cannot allocate {nbytes:,} bytes: {error}; "
                "use smaller buffers or free some"
            ) from error
        self._bytes: npt.NDArray[np.uint8] = np.frombuffer(pages, np.uint8)[:nbytes]

    @property
    def address(self) -> int:
        """Where the memory starts."""
        return int(self._bytes.ctypes.data)

    @property
    def nbytes(self) -> int:
        """Size as asked for."""
        return int(self._bytes.size)

    def host_view(self) -> npt.NDArray[np.uint8]:
        """The bytes, shared, not copied."""
        return self._bytes


def array_at(
    binding: ArrayBinding, dtype: np.dtype[Any], unit: int | None = None
) -> npt.NDArray[Any]:
    """A NumPy array over the memory that ``binding`` describes; the caller keeps it alive.
    ``unit``: bytes that the strides count in; None: elements."""
    if 0 in binding.shape:
        return np.empty(binding.shape, dtype)
    strides = tuple(stride * (unit or dtype.itemsize) for stride in binding.strides)
    reach = [stride * (n - 1) for stride, n in zip(strides, binding.shape, strict=True)]
    below = -sum(r for r in reach if r < 0)
    span = below + sum(r for r in reach if r > 0) + dtype.itemsize
    block = (ctypes.c_char * span).from_address(binding.address - below)
    memory = np.frombuffer(memoryview(block), np.uint8)
    array: npt.NDArray[Any] = np.ndarray(binding.shape, dtype, memory, below, strides)
    return array


class CheckedArray:
    """An array that a kernel may only access inside its extents."""

    __slots__ = ("data", "extents", "kernel", "name")

    def __init__(self, kernel: str, name: str, data: npt.NDArray[Any]) -> None:
        self.kernel = kernel
        self.name = name
        self.data = data
        self.extents = tuple(map(np.int64, data.shape))

    def load(self, span: Span, *indices: Scalar) -> Scalar:
        """The element; OutOfBounds if there is none."""
        for index in indices:
            if index < 0:  # which NumPy counts from the end
                raise self._outside(span, indices)
        try:
            return self.data[indices]
        except IndexError:
            raise self._outside(span, indices) from None

    def store(self, span: Span, value: Scalar, *indices: Scalar) -> None:
        """Replace the element; OutOfBounds if there is none."""
        for index in indices:
            if index < 0:
                raise self._outside(span, indices)
        try:
            self.data[indices] = value
        except IndexError:
            raise self._outside(span, indices) from None

    def _outside(self, span: Span, indices: tuple[Scalar, ...]) -> OutOfBounds:
        text = f": {span.text.strip()}" if span.text else ""
        return OutOfBounds(
            f"kernel '{self.kernel}' accesses {self.name}{[int(i) for i in indices]}, "
            f"which has the extents {self.data.shape}, at {span}{text}; "
            "guard the access with a condition, or submit a smaller range"
        )


def new_bytes(nbytes: int) -> npt.NDArray[np.uint8]:
    """Private or local memory."""
    return np.empty(nbytes, np.uint8)


def declared_array(
    kernel: str,
    name: str,
    shape: tuple[int, ...],
    dtype: ScalarType,
    memory: npt.NDArray[np.uint8],
) -> CheckedArray:
    """An array at the start of ``memory``, filled with what no kernel should rely on."""
    if dtype.is_float:
        poison: float = np.nan
    else:
        poison = True if dtype.is_bool else integer_limits(dtype.dtype)[1]
    data: npt.NDArray[Any] = np.ndarray(shape, dtype.dtype, memory)
    data.fill(poison)
    return CheckedArray(kernel, name, data)
