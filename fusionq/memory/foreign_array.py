"""What fusionq knows of an array of another library."""

from __future__ import annotations

from dataclasses import replace
from math import gcd, prod
from typing import Any

import numpy as np

from fusionq.backends.base import DeviceEvent, MemoryHome
from fusionq.base.errors import ArgumentError
from fusionq.base.frozen import dataclass
from fusionq.ir.record_types import Member, members
from fusionq.ir.types import ELEMENT_TYPES, element_type
from fusionq.memory.region import MemoryRegion


@dataclass(frozen=True, slots=True)
class ForeignArray:
    """An array that another library owns; ``address`` is that of element [0, …], ``strides``
    are in bytes."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    writable: bool
    owner: object
    usm_interface: dict[str, Any] | None
    home: MemoryHome | None = None
    """The GPU whose memory it is; None for USM and the host's memory."""
    work: DeviceEvent | None = None
    """What its library has given to a GPU's stream, after which the contents are there."""

    def member(self, member: Member) -> ForeignArray:
        """A field of an array of records."""
        return replace(
            self,
            address=self.address + member.offset,
            shape=self.shape + member.shape,
            strides=self.strides + member.strides,
            dtype=member.dtype,
        )

    @property
    def region(self) -> MemoryRegion:
        """The bytes from its first to its last element."""
        below, above = byte_bounds(self.shape, self.strides, self.dtype.itemsize)
        return MemoryRegion(None, self.address + below, self.address + above)


def byte_bounds(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """First byte and end of an array's memory, relative to element [0, …]."""
    if 0 in shape:
        return 0, 0
    reach = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    return sum(r for r in reach if r < 0), sum(r for r in reach if r > 0) + itemsize


def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of a C-contiguous array."""
    return tuple(itemsize * prod(shape[d + 1 :]) for d in range(len(shape)))


def check_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """``dtype`` if kernels can use it; ArgumentError, which says what is allowed, if not."""
    if dtype.names is not None:
        _check_fields(dtype)
    elif element_type(dtype) is None:
        hint = "; convert it with .astype()"
        if not dtype.isnative:
            hint = f"; {dtype.str!r} is not in this machine's byte order{hint}"
        raise ArgumentError(
            f"arrays of dtype {dtype} are not supported; a kernel can use "
            f"{', '.join(ELEMENT_TYPES)}{hint}"
        )
    return dtype


def _check_fields(dtype: np.dtype[Any]) -> None:
    """ArgumentError, which names the field, where kernels cannot have such records."""
    if not members(dtype):
        raise ArgumentError("records without fields are not supported")
    for member in members(dtype):
        name = ".".join(member.path)
        try:
            check_dtype(member.dtype)
        except ArgumentError as error:
            raise ArgumentError(f"the field {name!r}: {error}") from None
        if 0 in member.shape:
            raise ArgumentError(f"the field {name!r} has no elements: its shape is {member.shape}")


def component_size(dtype: np.dtype[Any]) -> int:
    """Bytes of a number that kernels read and write: of a complex element, of one of its parts."""
    return dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize


def alignment(dtype: np.dtype[Any], address: int, strides: tuple[int, ...]) -> int | None:
    """Bytes of which all elements of an array lie at multiples, where that is less than the size of
    a number: the first at ``address``, the others ``strides`` (bytes) apart.  Else None."""
    size = component_size(dtype)
    common = gcd(size, address, *strides)
    return None if common == size else common


def components(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Extents and strides (bytes) of an array as kernels get it: of a complex one, its parts in one
    more dimension."""
    if dtype.kind != "c":
        return shape, strides
    return (*shape, 2), (*strides, component_size(dtype))


def checked_array(array: ForeignArray) -> ForeignArray:
    """``array``; ArgumentError, with the reason, if kernels cannot take it."""
    check_dtype(array.dtype)
    if not array.shape:
        raise ArgumentError(
            "0-dimensional arrays are not supported; pass a scalar (x[()]) or an array of "
            "shape (1,) (x.reshape(1))"
        )
    return array
