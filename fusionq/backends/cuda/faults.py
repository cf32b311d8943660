"""Errors that end a GPU's context: what was running, and what is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fusionq.backends.cuda.devices import Device
from fusionq.backends.cuda.runtime import CudaError
from fusionq.base.changes import CHANGES
from fusionq.base.errors import DeviceError, DeviceLost


@contextmanager
def faults_named(device: Device, doing: str) -> Iterator[None]:
    """Errors inside the block that end the context as DeviceErrors, which name all kernels in
    flight on the GPU.  From then on everything there raises DeviceLost: queues, and Buffers whose
    memory it had."""
    if device.lost is not None:
        raise DeviceLost(
            f"this GPU is lost, with its queues and memory: {device.lost}; start a new process, "
            "since CUDA lets no other context take its place"
        )
    try:
        yield
    except CudaError as error:
        if not error.is_lost:
            raise
        kernels = "; ".join(device.in_flight()) or "none of fusionq's"
        device.lost = f"{error}; kernels in flight on {device.info.filter_string}: {kernels}"
        CHANGES.latest = object()
        raise DeviceError(
            f"while {doing}: {device.lost}. All queues on this GPU and all memory there are lost. "
            "In a new process, check=True tests every access and names the first outside its array"
        ) from error
