"""A buffer's memory as other libraries take it: USM, ``__cuda_array_interface__``, DLPack."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from fusionq.base.dtypes import is_bfloat16
from fusionq.memory.dlpack import GPU, HOST, capsule_of, host_capsule
from fusionq.memory.host_access import StoredArray
from fusionq.memory.storage import Ownership


def usm_interface(stored: StoredArray) -> dict[str, Any]:
    """``__sycl_usm_array_interface__``; AttributeError where the memory is not USM."""
    storage = stored.storage
    if storage.usm_interface is None or storage.address is None:
        raise AttributeError("this Buffer's memory is not SYCL USM")
    itemsize = stored.dtype.itemsize
    return {
        "data": (storage.address + stored.offset, not storage.writable),
        "shape": stored.shape,
        "strides": tuple(stride // itemsize for stride in stored.strides),
        "offset": 0,
        "typestr": stored.dtype.str,
        **({} if stored.dtype.names is None else {"descr": stored.dtype.descr}),
        "version": 1,
        "syclobj": storage.usm_interface["syclobj"],
    }


def cuda_interface(stored: StoredArray) -> dict[str, Any]:
    """``__cuda_array_interface__``; AttributeError where the memory is not a GPU's."""
    storage = stored.storage
    if storage.gpu is None or storage.address is None:
        raise AttributeError("this Buffer's memory is not on an NVIDIA GPU")
    from fusionq.backends.cuda.foreign import stream_in_use

    address = storage.address + stored.offset if 0 not in stored.shape else 0
    return {
        "data": (address, not storage.writable),
        "shape": stored.shape,
        "strides": None if stored.is_contiguous else stored.strides,
        "typestr": stored.dtype.str,
        "version": 3,
        "stream": stream_in_use(storage.last_event),
    }


def host_dlpack(
    array: npt.NDArray[Any],
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """A DLPack capsule of ``array``, as NumPy makes it; of bfloat16, which NumPy refuses, too."""
    if is_bfloat16(array.dtype) and dl_device in (None, (HOST, 0)):
        return host_capsule(array, max_version, copy)
    options = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
    given = {name: value for name, value in options.items() if value is not None}
    return array.__dlpack__(**given)  # type: ignore[arg-type]  # what it was given


def gpu_capsule(
    stored: StoredArray,
    ownership: Ownership,
    stream: int | None,
    max_version: tuple[int, int] | None,
) -> Any:
    """A DLPack capsule of memory on a GPU, which keeps ``ownership``; the consumer's ``stream``
    waits for the work that uses it, unless it is -1."""
    from fusionq.backends.cuda.foreign import let_wait

    storage = stored.storage
    assert storage.address is not None and storage.gpu is not None
    if stream != -1:
        let_wait(storage.gpu, 1 if stream is None else stream, storage.last_event)
    return capsule_of(
        storage.address + stored.offset,
        stored.shape,
        tuple(stride // stored.dtype.itemsize for stride in stored.strides),
        stored.dtype,
        (GPU, storage.gpu),
        ownership,
        max_version is not None and max_version[0] >= 1,
        storage.writable,
    )
