"""USM allocations, huge pages where they pay, and memory that others allocated."""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fusionq.backends.host_visible import HostVisible
from fusionq.backends.sycl.runtime import load_dpctl
from fusionq.base.errors import DeviceError

HUGE_PAGE = 2 << 20
"""Bytes of a huge page on x86-64 and most arm64 kernels."""

_HUGE_FROM = 4 << 20


class SyclAllocation(HostVisible):
    """USM shared memory; freed when this and all views of it are garbage."""

    __slots__ = ("_memory", "address", "nbytes")

    def __init__(self, memory: Any, nbytes: int) -> None:
        self._memory = memory
        self.nbytes = nbytes
        self.address: int = memory._pointer

    @property
    def usm_interface(self) -> dict[str, Any]:
        """``__sycl_usm_array_interface__`` of the ``dpctl.memory.MemoryUSMShared``."""
        interface: dict[str, Any] = self._memory.__sycl_usm_array_interface__
        return interface

    def host_view(self) -> npt.NDArray[np.uint8]:
        """The bytes, shared, not copied."""
        return np.frombuffer(self._memory, dtype=np.uint8, count=self.nbytes)


def allocate(queue: Any, nbytes: int) -> SyclAllocation:
    """``nbytes`` of USM shared memory, contents undefined.

    From 4 MiB on it lies on huge pages where the system has them: on a CPU that is worth
    1.2 to 1.6 times the bandwidth.  Raises DeviceError if there is not enough memory.
    """
    dpctl = load_dpctl()
    huge = nbytes >= _HUGE_FROM
    size = -(-nbytes // HUGE_PAGE) * HUGE_PAGE if huge else max(nbytes, 1)
    alignment = HUGE_PAGE if huge else 64
    try:
        memory = dpctl.memory.MemoryUSMShared(size, alignment=alignment, queue=queue)
    except (MemoryError, dpctl.memory.USMAllocationError) as error:
        device = queue.sycl_device
        raise DeviceError(
            f"{device.name} cannot allocate {nbytes:,} bytes: one allocation holds at most "
            f"{device.max_mem_alloc_size:,} bytes, its memory {device.global_mem_size:,}; free "
            "buffers that are not needed any more, or use smaller ones"
        ) from error
    if huge:
        _advise_huge_pages()(memory._pointer, size)
    return SyclAllocation(memory, nbytes)


@functools.cache
def _advise_huge_pages() -> Callable[[int, int], object]:
    """``madvise(address, nbytes, MADV_HUGEPAGE)``, or nothing where there is no such thing.

    Advice that the kernel turns down costs speed only, so its result does not matter.
    """
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is None:
        return lambda address, nbytes: None
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return lambda address, nbytes: madvise(address, nbytes, advice)


class _Adopted:
    """Memory described by an interface alone."""

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__sycl_usm_array_interface__ = interface


def check_adopted(queue: Any, interface: dict[str, Any]) -> None:
    """DeviceError unless kernels on ``queue`` can reach the memory that
    ``__sycl_usm_array_interface__`` describes.

    Reachable is what belongs to the queue's context, and on a device that reaches all host
    memory (a CPU) also what lies on the host.
    """
    dpctl = load_dpctl()
    try:
        memory = dpctl.memory.as_usm_memory(_Adopted(interface))
    except (TypeError, ValueError) as error:
        raise DeviceError(
            f"an array's __sycl_usm_array_interface__ does not describe USM memory: {error}"
        ) from error
    if memory.get_usm_type(queue.sycl_context) != "unknown":
        return
    own, other = queue.sycl_device, memory.sycl_device
    on_host = other.is_cpu or memory.get_usm_type() == "host"
    if own.has_aspect_usm_system_allocations and on_host:
        return
    raise DeviceError(
        f"device {own.filter_string} ({own.name}) cannot reach memory that was allocated on "
        f"{other.filter_string} ({other.name}) in another SYCL context; allocate it with this "
        "queue's context (FusionQueue.sycl_queue), or copy it to a fusionq Buffer"
    )
