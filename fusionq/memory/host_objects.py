"""Objects on the host that show their memory by DLPack, ``__array_interface__`` or Python's buffer
protocol, as NumPy arrays that share it.

Source: DLPack 1.0, Python specification; NumPy, The array interface protocol, version 3; PEP 3118.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fusionq.base.dtypes import is_bfloat16
from fusionq.base.errors import ArgumentError
from fusionq.memory.foreign_array import contiguous_strides

if TYPE_CHECKING:
    from fusionq.memory.dlpack import Imported


def shared_array(value: object) -> np.ndarray[Any, Any] | None:
    """``value`` as an array over its memory, which keeps it alive, read-only where it is; None for
    what shows no memory of the host.  ArgumentError, with the reason, where it does not show it."""
    if isinstance(value, np.generic):
        return None  # a number
    try:
        if hasattr(value, "__array_interface__"):
            return np.asarray(value)
        shown: Any = value
        if hasattr(value, "__dlpack__"):
            from fusionq.memory.dlpack import HOST, PINNED, imported

            kind, _ = shown.__dlpack_device__()
            return _over(imported(shown.__dlpack__)) if kind in (HOST, PINNED) else None
        try:
            view = memoryview(shown)
        except TypeError:
            return None
        return np.asarray(view)
    except ArgumentError:
        raise
    except (TypeError, ValueError, RuntimeError, BufferError, NotImplementedError) as error:
        raise ArgumentError(
            f"this {type(value).__name__} does not show its memory: {error}"
        ) from None


class _Tensor:
    """A DLPack tensor by NumPy's array interface."""

    def __init__(self, tensor: Imported) -> None:
        self.tensor = tensor
        itemsize = tensor.dtype.itemsize
        strides = tensor.strides
        self.__array_interface__ = {
            "data": (tensor.address, not tensor.writable),
            "shape": tensor.shape,
            "strides": contiguous_strides(tensor.shape, itemsize)
            if strides is None
            else tuple(stride * itemsize for stride in strides),
            "typestr": f"<u{itemsize}" if is_bfloat16(tensor.dtype) else tensor.dtype.str,
            "version": 3,
        }


def _over(tensor: Imported) -> np.ndarray[Any, Any]:
    """An array over the tensor's memory, which goes back to its library when nobody uses it."""
    array = np.asarray(_Tensor(tensor))
    return array.view(tensor.dtype) if is_bfloat16(tensor.dtype) else array
