"""USM allocations, huge pages where they are profitable, and memory that others allocated."""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fusionq.backends.block_pool import BlockPool, clear_all_pools
from fusionq.backends.host_visible import HostVisible
from fusionq.backends.sycl.runtime import load_dpctl
from fusionq.backends.sycl.staggering import PERIOD, next_offset
from fusionq.base.errors import DeviceError

HUGE_PAGE = 2 << 20
"""Bytes of a huge page on x86-64 and most arm64 kernels."""

_HUGE_FROM = 4 << 20

LARGEST_KEPT = 256 << 20
"""Bytes of the largest allocation that is kept for later ones: new memory is mapped and zeroed page
by page where it is first touched, which takes up to 20 times as long as to overwrite it."""
MOST_KEPT = 1 << 30
"""What one queue keeps at most."""
KEPT_PART = 16
"""The same, as a part of the device's memory: one byte of so many."""


def new_pool(device: Any) -> BlockPool:
    """A pool of the blocks (``UsmBlock``) of one queue on a ``dpctl.SyclDevice``."""
    return BlockPool(LARGEST_KEPT, min(MOST_KEPT, device.global_mem_size // KEPT_PART))


class UsmBlock(NamedTuple):
    """A ``dpctl.memory.MemoryUSMShared``, and where in it what it is used for begins."""

    memory: Any
    address: int


class SyclAllocation(HostVisible):
    """USM shared memory; freed when this and all views of it are garbage, or else given to
    ``pool``, which takes it if it has ``size``."""

    __slots__ = ("_block", "_pool", "_size", "address", "nbytes")

    def __init__(
        self, block: UsmBlock, nbytes: int, pool: BlockPool | None = None, size: int | None = None
    ) -> None:
        self._block = block
        self._pool, self._size = pool, size
        self.nbytes = nbytes
        self.address = block.address

    def __del__(self) -> None:
        if self._pool is not None and self._size is not None:
            self._pool.give(self._block, self._size)

    @property
    def usm_interface(self) -> dict[str, Any]:
        """``__sycl_usm_array_interface__`` of its bytes."""
        interface: dict[str, Any] = self._block.memory.__sycl_usm_array_interface__
        return {**interface, "data": (self.address, False), "shape": (self.nbytes,)}

    def host_view(self) -> npt.NDArray[np.uint8]:
        """The bytes, shared, not copied."""
        return np.asarray(_HostBytes(self))

    def zero(self) -> None:
        """Set all bytes to zero."""
        ctypes.memset(self.address, 0, self.nbytes)


class _HostBytes:
    """An allocation as NumPy's array interface, which keeps it alive."""

    def __init__(self, allocation: SyclAllocation) -> None:
        self.__array_interface__ = {
            "data": (allocation.address, False),
            "shape": (allocation.nbytes,),
            "typestr": "|u1",
            "version": 3,
        }
        self._allocation = allocation


def allocate(queue: Any, nbytes: int, pool: BlockPool | None = None) -> SyclAllocation:
    """``nbytes`` of USM shared memory, contents undefined; few bytes from ``pool``, if it has them.

    From 4 MiB on it lies on huge pages where the system has them: on a CPU that is worth
    1.2 to 1.6 times the bandwidth.  It begins at a cache line, and large ones in different sets of
    the cache (``staggering``).  Raises DeviceError if there is not enough memory.
    """
    pooled = None if pool is None else pool.size_for(nbytes)
    if pool is not None and pooled is not None:
        block = pool.take(pooled)
        if block is not None:
            return SyclAllocation(block, nbytes, pool, pooled)
    dpctl = load_dpctl()
    size = pooled or max(nbytes, 1)
    huge = size >= _HUGE_FROM
    offset = next_offset(size)
    needed = size + (PERIOD if offset else 0)
    if huge:
        size = -(-size // HUGE_PAGE) * HUGE_PAGE
        needed = max(needed, size)
    alignment = HUGE_PAGE if huge else 64

    def new() -> Any:
        return dpctl.memory.MemoryUSMShared(needed, alignment=alignment, queue=queue)

    refused = MemoryError, dpctl.memory.USMAllocationError
    try:
        try:
            memory = new()
        except refused:
            clear_all_pools()
            memory = new()
    except refused as error:
        device = queue.sycl_device
        raise DeviceError(
            f"{device.name} cannot allocate {nbytes:,} bytes: one allocation holds at most "
            f"{device.max_mem_alloc_size:,} bytes, its memory {device.global_mem_size:,}; free "
            "buffers that are not needed any more, or use smaller ones"
        ) from error
    if huge:  # what goes on behind them, a page at most, is on small pages
        _advise_huge_pages()(memory._pointer, size)
    return SyclAllocation(UsmBlock(memory, memory._pointer + offset), nbytes, pool, pooled)


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
