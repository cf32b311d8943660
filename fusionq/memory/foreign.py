"""Memory of other libraries: NumPy arrays and ``__sycl_usm_array_interface__``."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from fusionq.base.errors import ArgumentError, DeviceError
from fusionq.ir.types import SCALAR_TYPES, scalar_type
from fusionq.memory.region import Region


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

    @property
    def region(self) -> Region:
        """The bytes from its first to its last element."""
        below, above = byte_bounds(self.shape, self.strides, self.dtype.itemsize)
        return Region(None, self.address + below, self.address + above)


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
    if scalar_type(dtype) is None:
        hint = "; convert it with .astype()"
        if not dtype.isnative:
            hint = f"; {dtype.str!r} is not in this machine's byte order{hint}"
        raise ArgumentError(
            f"arrays of dtype {dtype} are not supported; a kernel can use "
            f"{', '.join(SCALAR_TYPES)}{hint}"
        )
    return dtype


def foreign_token(value: object) -> Hashable | None:
    """What identifies a foreign array to the caches: equal tokens, same memory and layout.
    None if ``value`` is no array that a kernel can take."""
    if isinstance(value, np.ndarray):
        data = value.__array_interface__["data"]
        return type(value), data, value.shape, value.strides, value.dtype
    interface = getattr(value, "__sycl_usm_array_interface__", None)
    if interface is None:
        return None
    return (
        interface["data"],
        interface.get("offset", 0),
        interface["shape"],
        interface.get("strides"),
        interface["typestr"],
        interface["syclobj"],
    )


def describe(value: object) -> ForeignArray | None:
    """Where a foreign array's elements are; None if ``value`` is no array that a kernel can
    take; ArgumentError for an array that is not supported, with the reason."""
    if isinstance(value, np.ndarray):
        return _describe_numpy(value)
    interface = getattr(value, "__sycl_usm_array_interface__", None)
    return None if interface is None else _describe_usm(value, interface)


def _describe_numpy(array: np.ndarray[Any, Any]) -> ForeignArray:
    if isinstance(array, np.ma.MaskedArray):
        raise ArgumentError(
            "masked arrays are not supported: a kernel would not see the mask; pass .data and "
            ".mask as two arrays"
        )
    address, read_only = array.__array_interface__["data"]
    return _checked(
        ForeignArray(address, array.shape, array.strides, array.dtype, not read_only, array, None)
    )


def _describe_usm(value: object, interface: dict[str, Any]) -> ForeignArray:
    dtype = np.dtype(interface["typestr"])
    shape = tuple(interface["shape"])
    pointer, read_only = interface["data"]
    strides = interface.get("strides")
    strides_in_bytes = (
        contiguous_strides(shape, dtype.itemsize)
        if strides is None
        else tuple(stride * dtype.itemsize for stride in strides)
    )
    # dpctl's own memory objects declare themselves read-only without being it.
    writable = not read_only or type(value).__module__.startswith("dpctl.memory")
    return _checked(
        ForeignArray(
            pointer + interface.get("offset", 0) * dtype.itemsize,
            shape,
            strides_in_bytes,
            dtype,
            writable,
            value,
            interface,
        )
    )


def _checked(array: ForeignArray) -> ForeignArray:
    check_dtype(array.dtype)
    if not array.shape:
        raise ArgumentError(
            "0-dimensional arrays are not supported; pass a scalar (x[()]) or an array of "
            "shape (1,) (x.reshape(1))"
        )
    itemsize = array.dtype.itemsize
    if array.address % itemsize or any(stride % itemsize for stride in array.strides):
        raise ArgumentError(
            f"the array's elements do not lie at multiples of their size ({itemsize} bytes): "
            f"address {array.address:#x}, strides {array.strides}; pass a copy (x.copy())"
        )
    return array


def check_host_access(array: ForeignArray) -> None:
    """DeviceError unless the host can read and write the array's memory: USM device memory of
    anything but a CPU is out of its reach."""
    if array.usm_interface is None:
        return
    memory = sys.modules["dpctl.memory"].as_usm_memory(array.owner)
    if memory.get_usm_type() == "device" and not memory.sycl_device.is_cpu:
        raise DeviceError(
            "the host cannot read USM device memory; allocate USM shared memory, or copy it with "
            "dpctl.memory"
        )
