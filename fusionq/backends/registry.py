"""Which backend a queue runs on."""

from __future__ import annotations

import functools
from typing import Any

from fusionq.backends.base import Backend
from fusionq.base.errors import DeviceError
from fusionq.base.target import DeviceInfo


def backend_for(target: Any, profiling: bool = False) -> Backend:
    """A new backend for ``target``: None (the default SYCL device), a SYCL filter string, a
    ``dpctl.SyclQueue``, ``"dpex"`` or ``"dpex:"`` and a filter string (numba-dpex compiles), or
    ``"reference"``.

    DeviceError where there is no such device, ArgumentError for another type of target.
    """
    if isinstance(target, str) and target == "reference":
        from fusionq.backends.reference import ReferenceBackend

        return ReferenceBackend()
    if isinstance(target, str) and target.partition(":")[0] == "dpex":
        from fusionq.backends.dpex.backend import DpexBackend

        return DpexBackend(target, profiling)
    from fusionq.backends.sycl.backend import SyclBackend

    return SyclBackend(target, profiling)


@functools.cache
def default_backend() -> Backend:
    """The backend that holds memory which no queue has asked for: the default SYCL device's,
    or the reference backend's where there is no device."""
    try:
        return backend_for(None)
    except DeviceError:
        return backend_for("reference")


def list_devices() -> list[DeviceInfo]:
    """The devices that ``backend_for`` takes: SYCL's, its favourite first, then the reference
    interpreter, which is always there."""
    from fusionq.backends.sycl.devices import device_info, opencl_devices

    try:
        devices = [device_info(device) for device in opencl_devices()]
    except DeviceError:
        devices = []
    return [*devices, backend_for("reference").info]
