"""Arrays on GPUs that show their memory by DLPack and in no other way."""

from __future__ import annotations

from typing import Any

from fusionq.base.errors import ArgumentError
from fusionq.memory.dlpack import GPU, MANAGED, imported
from fusionq.memory.foreign import describe
from fusionq.memory.foreign_array import ForeignArray, checked_array, contiguous_strides


def described(value: object) -> ForeignArray | None:
    """As ``foreign.describe``, and arrays with ``__dlpack__``, on the host or a GPU."""
    found = describe(value)
    if found is not None or not hasattr(value, "__dlpack__"):
        return found
    array: Any = value
    kind, number = array.__dlpack_device__()
    if kind in (GPU, MANAGED):
        return _on_gpu(array, int(number))
    raise ArgumentError(
        f"DLPack's device type {int(kind)} is neither the host (1) nor an NVIDIA GPU (2); copy the "
        "array to one of them"
    )


def _on_gpu(array: Any, number: int) -> ForeignArray:
    """The array, and the work of its library on the stream on which a GPU's memory is copied, that
    its library lets wait for it."""
    from fusionq.backends.cuda.devices import device
    from fusionq.backends.cuda.foreign import pool_stream
    from fusionq.backends.cuda.streams import StreamWork

    home = device(number)
    stream = pool_stream(home)
    tensor = imported(array.__dlpack__, stream=stream)
    itemsize = tensor.dtype.itemsize
    return checked_array(
        ForeignArray(
            tensor.address,
            tensor.shape,
            contiguous_strides(tensor.shape, itemsize)
            if tensor.strides is None
            else tuple(stride * itemsize for stride in tensor.strides),
            tensor.dtype,
            tensor.writable,
            tensor,
            None,
            home,
            StreamWork(home, stream),
        )
    )
