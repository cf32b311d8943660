"""SYCL's devices as a platform."""

from __future__ import annotations

from fusionq.backends.platform import Platform
from fusionq.backends.sycl.backend import SyclBackend
from fusionq.backends.sycl.devices import device_info, opencl_devices
from fusionq.base.errors import DeviceError
from fusionq.base.target import DeviceInfo


def _devices() -> list[DeviceInfo]:
    try:
        return [device_info(device) for device in opencl_devices()]
    except DeviceError:
        return []


def _is_dpctl_queue(target: object) -> bool:
    return type(target).__module__.partition(".")[0] == "dpctl"


_FILTERS = frozenset(("opencl", "level_zero", "cpu", "gpu", "accelerator"))
"""What dpctl's filter strings begin with, but for those of other vendors' devices."""

PLATFORM = Platform(SyclBackend, _devices, _is_dpctl_queue, _FILTERS)
