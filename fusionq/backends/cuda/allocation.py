"""Memory of a GPU, from a stream-ordered pool."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fusionq.backends.cuda.devices import Device
from fusionq.backends.cuda.faults import faults_named
from fusionq.backends.cuda.pinned import pinned_bytes
from fusionq.backends.cuda.runtime import CudaError, checked, load_driver
from fusionq.base.errors import DeviceError


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

    def in_use(self) -> int:
        """Bytes that are allocated now."""
        driver = load_driver()
        used = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
        return int(checked("the pool's use", driver.cuMemPoolGetAttribute(self.native, used)))

    def finish(self) -> None:
        """Block until what the pool's stream was asked for has happened."""
        checked("a copy failed", load_driver().cuStreamSynchronize(self.stream))


@functools.cache
def pool(device: Device) -> Pool:
    """The pool of a GPU, for the rest of the process."""
    return Pool(device)


class CudaAllocation:
    """Memory of a GPU, which the host does not see: of the pool, or of an ``owner``, which keeps
    it."""

    __slots__ = ("_owner", "_pool", "address", "nbytes")

    usm_interface: dict[str, Any] | None = None
    """It is no USM."""

    def __init__(self, pool: Pool, address: int, nbytes: int, owner: object = None) -> None:
        self._pool = pool
        self.address = address
        self.nbytes = nbytes
        self._owner = owner

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
        """A copy of ``nbytes`` from ``offset`` on, in pinned memory if they are not too many."""
        with self._operation("allocating pinned memory"):
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

    @contextlib.contextmanager
    def _operation(self, doing: str) -> Iterator[Any]:
        """The driver, for an operation on the pool's stream, which has happened at the end of the
        block."""
        self._pool.device.make_current()
        with faults_named(self._pool.device, doing):
            yield load_driver()
            self._pool.finish()

    def __del__(self) -> None:
        if self._owner is not None:
            return
        try:
            self._pool.device.make_current()
            driver = load_driver()
            driver.cuMemFreeAsync(driver.CUdeviceptr(self.address), self._pool.stream)
        except Exception:  # at the end of the process the driver, or this module, may be gone
            return


def allocate(device: Device, nbytes: int) -> CudaAllocation:
    """``nbytes`` of the GPU's memory, contents undefined; DeviceError, which says what is in use,
    if there is not enough."""
    driver = load_driver()
    device.make_current()
    memory = pool(device)
    try:
        address = checked(
            f"{nbytes:,} bytes",
            driver.cuMemAllocFromPoolAsync(max(nbytes, 1), memory.native, memory.stream),
        )
        memory.finish()
    except CudaError as error:
        if error.code not in ("CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_INVALID_VALUE"):
            raise
        free, total = checked("the memory's state", driver.cuMemGetInfo())
        raise DeviceError(
            f"{device.name} ({device.info.filter_string}) cannot allocate {nbytes:,} bytes: "
            f"{int(free):,} of {int(total):,} are free, and fusionq has {memory.in_use():,} in "
            "buffers; free buffers that are not needed any more, or use smaller ones"
        ) from error
    return CudaAllocation(memory, int(address), nbytes)
