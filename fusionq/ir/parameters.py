"""Parameters and arrays of kernels of the kernel IR."""

from __future__ import annotations

from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fusionq.base.frozen import dataclass
from fusionq.ir.expressions import Space
from fusionq.ir.types import ScalarType

SMALL = (1 << 31) - (1 << 16)
"""A size up to which 32 bits hold an index, and what a kernel adds to one."""


@dataclass(frozen=True, slots=True)
class ArrayParam:
    """An array in global memory.

    ``contiguous``: C-contiguous, so that strides follow from the extents.
    ``unit_stride``: neighbours in the last dimension are neighbours in memory.
    ``restrict``: no other array of the kernel shares memory with it.
    ``unwritten``: no launch of the list writes memory that it shares; known only where code
    generation asks.
    ``stored_by_one``: no two work-items store to one and the same element; known only where code
    generation asks.
    ``alignment``: bytes of which all elements lie at multiples, where that is less than their size,
    as of packed records; strides are then multiples of that many bytes, and the array is not
    ``contiguous`` nor has it ``unit_stride``.
    ``extents``: the last ones of a contiguous array, where the kernel has them as constants; of a
    persistent kernel's array all, contiguous or not.
    """

    name: str
    dtype: ScalarType
    ndim: int
    contiguous: bool = True
    restrict: bool = False
    unit_stride: bool = False
    alignment: int | None = None
    unwritten: bool = False
    stored_by_one: bool = False
    extents: tuple[int, ...] = ()

    def extent(self, dim: int) -> int | None:
        """That of a dimension, if it is a constant."""
        known = dim - self.ndim + len(self.extents)
        return self.extents[known] if known >= 0 else None


@dataclass(frozen=True, slots=True)
class ScalarParam:
    """A scalar passed by value; ``type`` is concrete.

    ``bounds``: the inclusive range of its values, where that is known: for a Python ``int``
    argument that the kernel converts to a narrower integer, those for which that is exact.
    """

    name: str
    type: ScalarType
    bounds: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ArrayDecl:
    """A fixed-size array in private or local memory, contents undefined at first; or in constant
    memory, which is only read.

    Local arrays of one ``memory`` are never in use at the same time, so that they may lie in the
    same place.  ``contents``: a constant array's elements in C order, each in little-endian bytes,
    as hexadecimal digits.
    """

    name: str
    dtype: ScalarType
    shape: tuple[int, ...]
    space: Space
    memory: str | None = None
    contents: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes that it takes by itself."""
        return prod(self.shape) * self.dtype.nbytes

    @property
    def elements(self) -> npt.NDArray[np.generic]:
        """A constant array's contents, in its shape."""
        stored = np.frombuffer(bytes.fromhex(self.contents), self.dtype.dtype.newbyteorder("<"))
        return stored.astype(self.dtype.dtype).reshape(self.shape)


KernelParam: TypeAlias = ArrayParam | ScalarParam
