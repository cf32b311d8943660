"""Memory of a GPU, from a stream-ordered pool; small blocks are used again without asking that."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fusionq.backends.base import DeviceEvent
from fusionq.backends.block_pool import BlockPool, clear_all_pools
from fusionq.backends.cuda.devices import Device
from fusionq.backends.cuda.faults import faults_named
from fusionq.backends.cuda.pinned import pinned_bytes
from fusionq.backends.cuda.runtime import CudaError, checked, load_driver
from fusionq.backends.wrapped_event import WrappedEvent
from fusionq.base.errors import DeviceError

LARGEST_KEPT = 1 << 20
"""Bytes of the largest block that is kept for later allocations."""
MOST_KEPT = 64 << 20
"""What is kept on one GPU at most."""


class Pool:
    """A GPU's pool of memory, and the stream on which it is asked for, copied and given back."""

    def __init__(self, device: Device) -> None:
        driver = load_driver()
        device.make_current()
        self.device = device
        flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        self.stream = checked("a stream", driver.cuStreamCreate(flags))
        properties = driver.CUmemPoolProps()
        properties.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        properties.location.id = device.ordinal
        self.native = checked("a pool of memory", driver.cuMemPoolCreate(properties))
        # Keep what is given back: asking the system for memory takes hundreds of microseconds.
        keep = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        checked(
            "the pool's limit",
            driver.cuMemPoolSetAttribute(self.native, keep, driver.cuuint64_t(2**64 - 1)),
        )

        self.blocks = BlockPool(LARGEST_KEPT, MOST_KEPT, self.free)
        """Addresses of those of the pool that nobody has."""

    def in_use(self) -> int:
        """Bytes that are allocated now, and not kept for later."""
        driver = load_driver()
        used = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
        found = int(checked("the pool's use", driver.cuMemPoolGetAttribute(self.native, used)))
        return found - self.blocks.kept_bytes

    def new(self, nbytes: int) -> int:
        """The address of ``nbytes`` of it, or if there is no more, of what was kept, or is freed
        when launches have run; CudaError if that is not enough either."""
        try:
            return self._allocated(nbytes)
        except CudaError as error:
            if error.code != "CUDA_ERROR_OUT_OF_MEMORY":
                raise
        clear_all_pools()
        load_driver().cuCtxSynchronize()  # how that ends is for those who wait for launches
        return self._allocated(nbytes)

    def _allocated(self, nbytes: int) -> int:
        call = load_driver().cuMemAllocFromPoolAsync
        address = checked(f"{nbytes:,} bytes", call(nbytes, self.native, self.stream))
        self.finish()
        return int(address)

    def free(self, address: int) -> None:
        """Take memory back that no launch uses any longer; for finalizers."""
        _free_on(self.device, self.stream, address)

    def finish(self) -> None:
        """Block until what the pool's stream was asked for has happened."""
        checked("a copy failed", load_driver().cuStreamSynchronize(self.stream))


@functools.cache
def pool(device: Device) -> Pool:
    """The pool of a GPU, for the rest of the process."""
    return Pool(device)


class FreedInOrder:
    """Blocks of a pool that launches of one stream may still use: what is given to that stream from
    now on runs behind these, and may have them."""

    def __init__(self, device: Device, native_stream: Any) -> None:
        self.device, self._native_stream = device, native_stream
        self._blocks = BlockPool(LARGEST_KEPT, MOST_KEPT, partial(_free_on, device, native_stream))

    @property
    def is_captured(self) -> bool:
        """Whether somebody records what the stream is given; also where that cannot be told."""
        driver = load_driver()
        self.device.make_current()
        status, captured = driver.cuStreamIsCapturing(self._native_stream)
        return bool(status or captured)

    def take(self, nbytes: int) -> CudaAllocation | None:
        """``nbytes`` for what the stream is given next, and for others when that has run; None
        where there is none."""
        return _taken(pool(self.device), self._blocks, nbytes)

    def give(self, address: int, size: int | None) -> None:
        """Memory that launches of the stream are the last to use; ``size``: of a block."""
        if size is None:
            _free_on(self.device, self._native_stream, address)
        else:
            self._blocks.give(address, size)

    def clear(self) -> None:
        """Give all of it back to the driver, behind what the stream has been given."""
        self._blocks.clear()


def _free_on(device: Device, native_stream: Any, address: int) -> None:
    """Take memory back when a stream has run what it has been given so far; for finalizers."""
    try:
        device.make_current()
        driver = load_driver()
        driver.cuMemFreeAsync(driver.CUdeviceptr(address), native_stream)
    except Exception:  # at the end of the process the driver, or this module, may be gone
        return


class CudaAllocation:
    """Memory of a GPU, which the host does not see: of the pool, whose next user may have it
    without asking if it has ``size``, or of an ``owner``, which keeps it."""

    __slots__ = ("_is_freed", "_owner", "_pool", "_size", "address", "nbytes")

    usm_interface: dict[str, Any] | None = None
    """It is no USM."""

    def __init__(
        self,
        pool: Pool,
        address: int,
        nbytes: int,
        owner: object = None,
        size: int | None = None,
    ) -> None:
        self._pool = pool
        self.address = address
        self.nbytes = nbytes
        self._owner = owner
        self._size = size
        self._is_freed = False

    @property
    def gpu(self) -> int:
        """The GPU's number."""
        return self._pool.device.ordinal

    def host_view(self) -> None:
        """The host does not see it."""

    def read(self, into: npt.NDArray[np.uint8], offset: int = 0) -> None:
        """Copy the bytes from ``offset`` on to ``into``."""
        if into.size:
            source, count = self.address + offset, into.size
            with self._operation("copying from the GPU") as driver:
                copy = driver.cuMemcpyDtoHAsync(into.ctypes.data, source, count, self._pool.stream)
                checked("a copy from the GPU", copy)

    def fetched(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """A copy of ``nbytes`` from ``offset`` on, in pinned memory unless they are too few or too
        many."""
        self._pool.device.make_current()
        with faults_named(self._pool.device, "allocating pinned memory"):
            into = pinned_bytes(nbytes)
        if into is None:
            into = np.empty(nbytes, np.uint8)
        self.read(into, offset)
        return into

    def write(self, source: npt.NDArray[np.uint8], offset: int = 0) -> None:
        """Overwrite the bytes from ``offset`` on with ``source``."""
        if source.size:
            target, count = self.address + offset, source.size
            with self._operation("copying to the GPU") as driver:
                given = source.ctypes.data
                copy = driver.cuMemcpyHtoDAsync(target, given, count, self._pool.stream)
                checked("a copy to the GPU", copy)

    def copy(self, address: int, nbytes: int, offset: int = 0) -> None:
        """Overwrite the bytes from ``offset`` on with ``nbytes`` at ``address`` on the GPU."""
        if nbytes:
            target = self.address + offset
            with self._operation("copying on the GPU") as driver:
                copy = driver.cuMemcpyDtoDAsync(target, address, nbytes, self._pool.stream)
                checked("a copy on the GPU", copy)

    def zero(self) -> None:
        """Set all bytes to zero."""
        if self.nbytes:
            with self._operation("writing zeros") as driver:
                zeros = driver.cuMemsetD8Async(self.address, 0, self.nbytes, self._pool.stream)
                checked("zeros on the GPU", zeros)

    def free_after(self, event: DeviceEvent) -> bool:
        """In the order of the event's stream; False for an owner's memory, for events of others,
        and while somebody records what that stream is given."""
        while isinstance(event, WrappedEvent):
            event = event.inner
        stream: Any = getattr(event, "stream", None)
        freed = getattr(stream, "freed", None)
        if self._is_freed or self._owner is not None or not isinstance(freed, FreedInOrder):
            return False
        if stream.completed >= event.number:  # type: ignore[attr-defined]  # an event of a stream
            return False  # and nobody has to wait
        if freed.device is not self._pool.device or freed.is_captured:
            return False
        self._is_freed = True
        freed.give(self.address, self._size)
        return True

    @contextlib.contextmanager
    def _operation(self, doing: str) -> Iterator[Any]:
        """The driver, for an operation on the pool's stream, which has happened at the end of the
        block."""
        self._pool.device.make_current()
        with faults_named(self._pool.device, doing):
            yield load_driver()
            self._pool.finish()

    def __del__(self) -> None:
        if self._is_freed or self._owner is not None:
            return
        self._is_freed = True
        if self._size is not None:
            self._pool.blocks.give(self.address, self._size)
        else:
            self._pool.free(self.address)


def kept(device: Device, nbytes: int) -> CudaAllocation | None:
    """``nbytes`` of the GPU's memory that others had before; None where none is kept."""
    memory = pool(device)
    return _taken(memory, memory.blocks, nbytes)


def _taken(memory: Pool, blocks: BlockPool, nbytes: int) -> CudaAllocation | None:
    """``nbytes`` of a block of ``memory``; None where there is none."""
    size = blocks.size_for(nbytes)
    address = None if size is None else blocks.take(size)
    return None if address is None else CudaAllocation(memory, address, nbytes, None, size)


def allocate(device: Device, nbytes: int) -> CudaAllocation:
    """``nbytes`` of the GPU's memory, contents undefined; DeviceError, which says what is in use,
    if there is not enough."""
    memory = pool(device)
    size = memory.blocks.size_for(nbytes)
    device.make_current()
    try:
        address = memory.new(size or max(nbytes, 1))
    except CudaError as error:
        raise _refused(error, memory, nbytes) from error
    return CudaAllocation(memory, address, nbytes, None, size)


def _refused(error: CudaError, memory: Pool, nbytes: int) -> DeviceError:
    """That there is not so much memory; other errors as they are."""
    if error.code not in ("CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_INVALID_VALUE"):
        return error
    device = memory.device
    free, total = checked("the memory's state", load_driver().cuMemGetInfo())
    return DeviceError(
        f"{device.name} ({device.info.filter_string}) cannot allocate {nbytes:,} bytes: "
        f"{int(free):,} of {int(total):,} are free, and fusionq has {memory.in_use():,} in "
        "buffers; free buffers that are not needed any more, or use smaller ones"
    )
