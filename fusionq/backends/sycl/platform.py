"""SYCL's devices as a platform."""

from __future__ import annotations

from fusionq.backends.platform import Platform
from fusionq.backends.sycl.backend import SyclBackend
from fusionq.backends.sycl.devices import device_info, opencl_devices
from fusionq.backends.sycl.launch import SyclEvent
from fusionq.backends.sycl.runtime import load_dpctl
from fusionq.base.device_info import DeviceInfo
from fusionq.base.errors import DeviceError


def _devices() -> list[DeviceInfo]:
    try:
        return [device_info(device) for device in opencl_devices()]
    except DeviceError:
        return []


def _is_of_dpctl(target: object) -> bool:
    return type(target).__module__.partition(".")[0] == "dpctl"


def _event(native: object) -> SyclEvent | None:
    if _is_of_dpctl(native) and isinstance(native, load_dpctl().SyclEvent):
        return SyclEvent(native)
    return None


_FILTERS = frozenset(("opencl", "level_zero", "cpu", "gpu", "accelerator"))
"""What SYCL's filter strings begin with: a backend, or a type of device."""

PLATFORM = Platform(SyclBackend, _devices, _is_of_dpctl, _event, _FILTERS)
