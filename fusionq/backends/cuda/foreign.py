"""Memory of other libraries on a GPU, and what they have given to their streams.

A handle is CUDA's number of a stream, 1 for the default one.
"""

from __future__ import annotations

import ctypes

from fusionq.backends.base import DeviceEvent, MemoryHome
from fusionq.backends.cuda.allocation import CudaAllocation, pool
from fusionq.backends.cuda.devices import Device, device
from fusionq.backends.cuda.events import CudaEvent
from fusionq.backends.cuda.faults import faults_named
from fusionq.backends.cuda.runtime import checked, driver_function, load_driver
from fusionq.backends.cuda.streams import StreamWork


def owner_of(address: int) -> Device:
    """The GPU that memory belongs to; DeviceError where no GPU knows the address.

    Asked of the driver itself: cuda.bindings 13 says 0 for memory of each GPU.
    """
    driver, ordinal = load_driver(), ctypes.c_int(-1)
    asked = int(driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
    get = driver_function("cuPointerGetAttribute", ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64)
    status = driver.CUresult(get(ctypes.addressof(ordinal), asked, address))
    checked(f"the GPU whose memory is at {address:#x}", (status,))
    return device(ordinal.value)


def finish(device: Device) -> None:
    """Block until a GPU has done all that the process has given to it, on any stream."""
    device.make_current()
    with faults_named(device, "waiting for another library's work"):
        checked("the GPU's work failed", load_driver().cuCtxSynchronize())


def adopted(home: MemoryHome, address: int, nbytes: int, owner: object) -> CudaAllocation:
    """Memory of ``owner`` on a GPU, which lives at least as long as this."""
    assert isinstance(home, Device), "owner_of gave it"
    return CudaAllocation(pool(home), address, nbytes, owner)


def pool_stream(device: Device) -> int:
    """The handle of the stream on which a GPU's memory is copied."""
    return int(pool(device).stream)


def stream_in_use(event: DeviceEvent | None) -> int | None:
    """The handle of the stream whose work ``event`` ends; None where that has run, or the event is
    another device's, which this waits for."""
    if event is None or event.complete:
        return None
    if isinstance(event, CudaEvent):
        return event.stream.handle
    if isinstance(event, StreamWork):
        return event.handle
    event.wait()
    return None


def let_wait(ordinal: int, handle: int, event: DeviceEvent | None) -> None:
    """Let what a stream of a GPU is given from now on run after ``event``."""
    before = stream_in_use(event)
    if before is not None and before != handle:
        StreamWork(device(ordinal), before).order_before(handle)
