"""Arrays of other libraries on NVIDIA GPUs: ``__cuda_array_interface__``, and streams.

Source: Numba, CUDA Array Interface, version 3.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fusionq.backends.base import DeviceEvent
from fusionq.base.dtypes import bfloat16
from fusionq.base.errors import ArgumentError, DeviceError
from fusionq.memory.foreign_array import ForeignArray, checked_array, contiguous_strides


def gpu_interface(value: object) -> dict[str, Any] | None:
    """``__cuda_array_interface__``; None for what has none.  ArgumentError, with the reason, for an
    array that its library does not show."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor) and value.is_cuda:
        if value.requires_grad:
            raise ArgumentError(
                "this tensor requires a gradient, which kernels do not compute; pass x.detach()"
            )
        if value.is_neg() or value.is_conj():
            raise ArgumentError(
                "PyTorch negates this tensor's elements when it reads them; pass "
                "x.resolve_neg() or x.resolve_conj()"
            )
    interface: dict[str, Any] | None = getattr(value, "__cuda_array_interface__", None)
    return interface


class GpuToken(NamedTuple):
    """What identifies an array on a GPU to the caches: equal tokens, same memory and layout."""

    data: tuple[int, bool]
    """Address, and whether it may not be written."""
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    """In bytes; None where it is contiguous."""
    typestr: str
    is_masked: bool


def gpu_argument(value: object) -> tuple[GpuToken, DeviceEvent | None] | None:
    """The token of an array on a GPU and ``work_before``; None for what is no such array.  Raises
    as ``gpu_interface``."""
    interface = gpu_interface(value)
    if interface is None:
        return None
    token = GpuToken(
        interface["data"],
        interface["shape"],
        interface.get("strides"),
        interface["typestr"],
        interface.get("mask") is not None,
    )
    return token, work_before(value, interface)


def gpu_of(token: GpuToken) -> int | None:
    """The number of the GPU that has an array's memory; None where it has none, or none has it."""
    from fusionq.backends.cuda.foreign import owner_of

    address, _ = token.data
    try:
        return owner_of(address).ordinal if address else None
    except DeviceError:
        return None


def describe_gpu_array(value: object, interface: dict[str, Any]) -> ForeignArray:
    """The array on its GPU; ArgumentError for one that kernels cannot take, DeviceError where
    there is no driver, or no GPU has its memory."""
    from fusionq.backends.cuda.foreign import owner_of

    if interface.get("mask") is not None:
        raise ArgumentError(
            "masked arrays are not supported: a kernel would not see the mask; pass data and mask "
            "as two arrays"
        )
    dtype = np.dtype(interface["typestr"])
    if dtype.str == "<V2" and str(getattr(value, "dtype", "")).endswith("bfloat16"):
        dtype = bfloat16()  # PyTorch's and ours: the interface has no letter for it
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    address, read_only = interface["data"]
    home = owner_of(address) if address else None  # an empty array has no address
    return checked_array(
        ForeignArray(
            address,
            shape,
            contiguous_strides(shape, dtype.itemsize) if strides is None else tuple(strides),
            dtype,
            not read_only,
            value,
            None,
            home,
            work_before(value, interface),
        )
    )


def work_before(value: object, interface: dict[str, Any]) -> DeviceEvent | None:
    """What its library has given to the array's stream, after which the contents are there; None
    where nobody has to wait.

    Interfaces older than version 3 do not say what has to be waited for.  JAX's is one, and its
    arrays may not even be on their way to the GPU: this blocks until they are there, or where an
    array has no ``block_until_ready``, until its GPU has done all work of the process.
    """
    address = interface["data"][0]
    if not address:
        return None
    from fusionq.backends.cuda.foreign import finish, owner_of
    from fusionq.backends.cuda.streams import StreamWork

    handle = _stream_of(value, interface)
    if handle is not None:
        return StreamWork(owner_of(address), handle)
    if interface.get("version", 0) < 3:
        ready = getattr(value, "block_until_ready", None)
        finish(owner_of(address)) if ready is None else ready()
    return None


def _stream_of(value: object, interface: dict[str, Any]) -> int | None:
    """The handle of the stream.  PyTorch does not say: it is the current one of the tensor's
    GPU."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return int(torch.cuda.current_stream(value.device).cuda_stream)
    handle = interface.get("stream")
    return None if handle is None else int(handle)


def work_before_all(arrays: Sequence[object]) -> list[DeviceEvent]:
    """``work_before`` of those among ``arrays`` that are on a GPU, each stream once."""
    found: dict[object, DeviceEvent] = {}
    for value in arrays:
        interface = gpu_interface(value)
        work = None if interface is None else work_before(value, interface)
        if work is not None:
            found.setdefault(getattr(work, "handle", work), work)
    return list(found.values())


def marked(events: Sequence[DeviceEvent]) -> list[DeviceEvent]:
    """``events`` that may be waited for later, when a stream of theirs may have ended."""
    if "fusionq.backends.cuda.streams" not in sys.modules:
        return list(events)
    from fusionq.backends.cuda.streams import StreamWork

    return [event.marked() if isinstance(event, StreamWork) else event for event in events]
