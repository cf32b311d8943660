"""What a Buffer is made of: extents, the contents of an array, or an array's own memory."""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from fusionq.base.errors import ArgumentError
from fusionq.base.units import shown
from fusionq.memory.foreign import check_host_access, check_not_masked
from fusionq.memory.foreign_array import ForeignArray, byte_bounds, check_dtype
from fusionq.memory.host_access import StoredArray, host_array
from fusionq.memory.storage import Storage


def checked_extents(shape: Any, dtype: np.dtype[Any] | None) -> tuple[int, ...]:
    """The extents of a Buffer of ``shape``; ArgumentError where there can be none."""
    given = shape if isinstance(shape, tuple) else (shape,)
    if any(isinstance(e, (bool, np.bool_)) or not hasattr(e, "__index__") for e in given):
        raise ArgumentError(f"a Buffer's shape is an integer or a tuple of integers, not {shape!r}")
    extents = tuple(map(index, given))
    if dtype is None:
        raise ArgumentError("a Buffer made from a shape needs a dtype: Buffer(n, np.float32)")
    if not extents:
        raise ArgumentError("a Buffer has at least one dimension; use the shape (1,)")
    if min(extents) < 0:
        raise ArgumentError(f"a Buffer's extents cannot be negative: {extents}")
    if prod(max(e, 1) for e in extents) * dtype.itemsize >= 1 << 63:
        raise ArgumentError(
            f"a Buffer of the extents {shown(extents)} and dtype {dtype} has 2**63 bytes or "
            "more, which no address reaches; give smaller extents"
        )
    return extents


def host_contents(array: Any) -> npt.NDArray[Any]:
    """The contents of ``array`` as a NumPy array, shared where possible."""
    if isinstance(array, np.ndarray):
        check_not_masked(array)
        return array
    from fusionq.memory.dlpack_arrays import described

    foreign = described(array)
    if foreign is not None:
        stored = stored_array(foreign)
        stored.storage.wait()
        return host_array(stored)
    if hasattr(array, "__array__") or hasattr(array, "__array_interface__"):
        return np.asarray(array)
    raise ArgumentError(
        f"a Buffer is made from an int or tuple (its shape) or from an array, not from "
        f"{type(array).__name__}; for contents use np.array(...)"
    )


def converted_dtype(found: np.dtype[Any], wanted: np.dtype[Any] | None) -> np.dtype[Any]:
    """The dtype of a Buffer with contents of dtype ``found``."""
    target = check_dtype(found) if wanted is None else wanted
    if not np.can_cast(found, target, "same_kind"):
        raise ArgumentError(
            f"an array of dtype {found} does not convert to {target}; convert it yourself with "
            ".astype()"
        )
    return target


def shared_array(array: Any, dtype: np.dtype[Any] | None) -> StoredArray:
    """The memory of ``array``, which is no Buffer, for a Buffer that shares it."""
    from fusionq.memory.dlpack_arrays import described

    foreign = described(array)
    if foreign is None:
        raise ArgumentError(
            f"copy=False needs a NumPy array, a Buffer or an object with "
            "__sycl_usm_array_interface__, __cuda_array_interface__, __dlpack__ or the "
            "buffer protocol, not "
            f"{type(array).__name__}"
        )
    check_same_dtype(foreign.dtype, dtype)
    stored = stored_array(foreign)
    if foreign.work is not None:  # whose stream may end before this buffer
        from fusionq.memory.gpu_arrays import marked

        (stored.storage.last_event,) = marked([foreign.work])
    return stored


def stored_array(array: ForeignArray) -> StoredArray:
    """A foreign array as one in a storage.  DeviceError for USM that the host does not see, which
    is no GPU's as CUDA has them."""
    if array.home is None:
        check_host_access(array)
    below, _ = byte_bounds(array.shape, array.strides, array.dtype.itemsize)
    return StoredArray(Storage.adopted(array), array.shape, array.strides, -below, array.dtype)


def check_same_dtype(found: np.dtype[Any], wanted: np.dtype[Any] | None) -> None:
    """ArgumentError where memory of dtype ``found`` is to be shared as another."""
    if wanted is not None and wanted != found:
        raise ArgumentError(
            f"copy=False shares the array's memory and cannot convert {found} to {wanted}; "
            "convert it first, or leave out copy=False"
        )
