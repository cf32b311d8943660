"""Arrays of other libraries: NumPy's, those with ``__sycl_usm_array_interface__``, GPUs', which
``memory.gpu_arrays`` describes, and what ``memory.host_objects`` makes arrays of."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from operator import index
from typing import Any

import numpy as np

from fusionq.base.errors import ArgumentError, DeviceError
from fusionq.ir.record_types import Member, members
from fusionq.memory.array_data import array_data
from fusionq.memory.foreign_array import (
    ForeignArray,
    byte_bounds,
    checked_array,
    contiguous_strides,
)
from fusionq.memory.gpu_arrays import describe_gpu_array, gpu_interface
from fusionq.memory.host_objects import shared_array


def foreign_token(value: object) -> Hashable | None:
    """What identifies an array of the host or of SYCL to the caches: equal tokens, same memory and
    layout.  None if ``value`` is no such array."""
    if isinstance(value, np.ndarray):
        return type(value), array_data(value), value.shape, value.strides, value.dtype
    interface = usm_interface(value)
    if interface is None:
        return None
    return (
        interface.get("data"),
        interface.get("offset", 0),
        interface.get("shape"),
        interface.get("strides"),
        interface.get("typestr"),
        interface.get("syclobj"),
    )


def array_members(value: object) -> tuple[Member, ...]:
    """The members of the records in an array that has a token; none of any other array."""
    if isinstance(value, np.ndarray):
        return () if value.dtype.names is None else members(value.dtype)
    interface = usm_interface(value)
    if interface is None or interface.get("typestr", "")[1:2] != "V":
        return ()
    return members(_dtype_by(interface))


def _dtype_by(interface: dict[str, Any]) -> np.dtype[Any]:
    """The dtype by an array interface, which has the fields of records in ``descr``."""
    fields, typestr = interface.get("descr"), interface["typestr"]
    if isinstance(fields, list) and typestr[1:2] == "V":
        typestr = np.lib.format.descr_to_dtype(fields)
    dtype: np.dtype[Any] = np.dtype(typestr)
    return dtype


def usm_interface(value: object) -> dict[str, Any] | None:
    """``value.__sycl_usm_array_interface__``; None where there is none, or no dictionary."""
    interface = getattr(value, "__sycl_usm_array_interface__", None)
    return interface if isinstance(interface, dict) else None


def describe(value: object) -> ForeignArray | None:
    """Where a foreign array's elements are; None if ``value`` is no array that a kernel can
    take; ArgumentError for an array that is not supported, with the reason, DeviceError for a GPU's
    where there is no driver."""
    if isinstance(value, np.ndarray):
        return _describe_numpy(value)
    interface = usm_interface(value)
    if interface is not None:
        return _describe_usm(value, interface)
    interface = gpu_interface(value)
    if interface is not None:
        return describe_gpu_array(value, interface)
    shared = shared_array(value)
    return None if shared is None else _describe_numpy(shared)


def _describe_numpy(array: np.ndarray[Any, Any]) -> ForeignArray:
    check_not_masked(array)
    address, read_only = array_data(array)
    return checked_array(
        ForeignArray(address, array.shape, array.strides, array.dtype, not read_only, array, None)
    )


def check_not_masked(array: np.ndarray[Any, Any]) -> None:
    """ArgumentError for an array with a mask."""
    # Until somebody has imported numpy.ma, which takes a while, there are none.
    if "numpy.ma" in sys.modules and isinstance(array, np.ma.MaskedArray):
        raise ArgumentError(
            "masked arrays are not supported: a kernel would not see the mask; pass .data and "
            ".mask as two arrays"
        )


def _describe_usm(value: object, interface: dict[str, Any]) -> ForeignArray:
    try:
        dtype = _dtype_by(interface)
        shape = tuple(map(index, interface["shape"]))
        pointer, read_only = interface["data"]
        strides = interface.get("strides")
        strides_in_bytes = (
            contiguous_strides(shape, dtype.itemsize)
            if strides is None
            else tuple(index(stride) * dtype.itemsize for stride in strides)
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"its __sycl_usm_array_interface__ is malformed ({type(error).__name__}: {error}); "
            "pass an array of dpctl or dpnp, or a fusionq Buffer"
        ) from None
    address = pointer + interface.get("offset", 0) * dtype.itemsize
    if dtype.names is not None:
        interface = _as_bytes(interface, address, shape, strides_in_bytes, dtype.itemsize)
    # dpctl's own memory objects declare themselves read-only without being it.
    writable = not read_only or type(value).__module__.startswith("dpctl.memory")
    return checked_array(
        ForeignArray(
            address,
            shape,
            strides_in_bytes,
            dtype,
            writable,
            value,
            interface,
        )
    )


def _as_bytes(
    interface: dict[str, Any],
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    itemsize: int,
) -> dict[str, Any]:
    """The interface of an array of records as one of its bytes, since dpctl knows no records."""
    below, above = byte_bounds(shape, strides, itemsize)
    return {
        "data": (address + below, interface["data"][1]),
        "shape": (max(above - below, 1),),
        "strides": None,
        "offset": 0,
        "typestr": "|u1",
        "version": 1,
        "syclobj": interface.get("syclobj"),
    }


class _Shown:
    """An object with that interface."""

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__sycl_usm_array_interface__ = interface


def check_host_access(array: ForeignArray) -> None:
    """DeviceError unless the host can read and write the array's memory: a GPU's, and USM device
    memory of anything but a CPU, is out of its reach."""
    if array.home is not None:
        raise DeviceError(
            f"the host cannot read memory of {array.home.info.name}; copy it to a fusionq Buffer"
        )
    if array.usm_interface is None:
        return
    memory = sys.modules["dpctl.memory"].as_usm_memory(_Shown(array.usm_interface))
    if memory.get_usm_type() == "device" and not memory.sycl_device.is_cpu:
        raise DeviceError(
            "the host cannot read USM device memory; allocate USM shared memory, or copy it with "
            "dpctl.memory"
        )
