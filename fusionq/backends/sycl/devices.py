"""From a target (nothing, a filter string, a dpctl queue) to a queue, and what a device is."""

from __future__ import annotations

import sys
from typing import Any, Literal

from fusionq.backends.sycl.caches import cache_sizes
from fusionq.backends.sycl.runtime import load_dpctl, missing_parts
from fusionq.base.device_info import DeviceInfo
from fusionq.base.errors import ArgumentError, DeviceError
from fusionq.base.target import Target, target_of


def opencl_devices() -> list[Any]:
    """The devices that can compile OpenCL C, SYCL's favourite first; DeviceError without dpctl."""
    devices = load_dpctl().get_devices(backend="opencl")
    return sorted(devices, key=lambda device: -device.default_selector_score)


def queue_for(target: Any, profiling: bool) -> Any:
    """A ``dpctl.SyclQueue`` for None, a SYCL filter string, or a queue, which is taken as it is.

    Raises DeviceError where there is no such device, where it cannot compile OpenCL C, or
    where ``profiling`` is asked of a queue made without; ArgumentError for another type.
    """
    dpctl = load_dpctl()
    if isinstance(target, dpctl.SyclQueue):
        _check_backend(target.sycl_device)
        if profiling and not target.has_enable_profiling:
            raise DeviceError(
                "profiling=True needs a queue that records times; make it with "
                'dpctl.SyclQueue(device, property="enable_profiling")'
            )
        return target
    if target is None:
        devices = opencl_devices()
        if not devices:
            raise DeviceError(
                f"there is no SYCL device of the OpenCL backend.\n{missing_parts()}\n"
                'FusionQueue("reference") runs anywhere, slowly.'
            )
        device = devices[0]
    elif isinstance(target, str):
        device = _device_named(target)
    else:
        raise ArgumentError(
            "a queue's target is None, a SYCL filter string such as 'opencl:cpu', a "
            f"dpctl.SyclQueue or 'reference', not {type(target).__name__}: {target!r}"
        )
    _check_backend(device)
    properties = ["in_order", "enable_profiling"] if profiling else ["in_order"]
    return dpctl.SyclQueue(device, property=properties)


def _device_named(filter_string: str) -> Any:
    dpctl = load_dpctl()
    try:
        device = dpctl.SyclDevice(filter_string)
    except (dpctl.SyclDeviceCreationError, ValueError) as error:
        found = [d.filter_string for d in dpctl.get_devices()]
        listing = f"devices here: {', '.join(found)}" if found else missing_parts()
        raise DeviceError(
            f"no SYCL device matches {filter_string!r} ({error}).\n{listing}"
        ) from error
    if device.backend.name != "opencl" and ":" not in filter_string:
        # "cpu" or "gpu" alone: the same kind of device, by way of OpenCL, if there is one.
        for other in opencl_devices():
            if other.device_type == device.device_type:
                return other
    return device


def _check_backend(device: Any) -> None:
    if device.backend.name != "opencl":
        usable = ", ".join(d.filter_string for d in opencl_devices()) or "none"
        raise DeviceError(
            f"device {device.filter_string} ({device.name}) belongs to SYCL's "
            f"{device.backend.name} backend, and kernels are compiled from OpenCL C source, which "
            f"needs a device of the OpenCL backend; devices to use instead: {usable}"
        )


def device_info(device: Any) -> DeviceInfo:
    """What the compiler needs to know of a ``dpctl.SyclDevice``."""
    masks = not device.is_cpu or device.native_vector_width_float >= _MASKED_FLOATS
    intel = bool(device.is_cpu and device.sycl_platform.name == "Intel(R) OpenCL")
    has_lanes = max(device.sub_group_sizes, default=0) >= _MOST_LANES
    return DeviceInfo(
        name=device.name,
        vendor=device.vendor,
        driver=device.driver_version,
        filter_string=device.filter_string,
        kind=_kind(device),
        compute_units=device.max_compute_units,
        max_work_group_size=device.max_work_group_size,
        local_memory_bytes=device.local_mem_size,
        has_fp16=device.has_aspect_fp16,
        has_fp64=device.has_aspect_fp64,
        host_memory=device.has_aspect_usm_system_allocations,
        private_memory_bytes=device.global_mem_size if device.is_cpu else None,
        sub_group_sizes=tuple(size for size in device.sub_group_sizes if not size & size - 1),
        yields_processor=_yields_processor(device),
        masks_vectors=masks,
        group_lanes=device.native_vector_width_float if intel else 0,
        splits_rows=bool(device.is_cpu) and has_lanes,
        jams_items=bool(device.is_cpu),
        jams_rows=bool(device.is_cpu) and has_lanes,
        streams_stores=intel,
    )


_MASKED_FLOATS = 16
"""Of a vector of AVX-512, which has registers for masks; AVX2 has none."""

_FIRST_TO_YIELD = 2026
"""The first version of Intel's CPU driver with which that was tried."""


def _yields_processor(device: Any) -> bool:
    """Whether kernels can call ``sched_yield``: Intel's CPU driver compiles into this process, and
    finds functions without a body among those of the process."""
    if not (device.is_cpu and sys.platform == "linux"):
        return False
    version = device.driver_version.partition(".")[0]
    is_tried = version.isdecimal() and int(version) >= _FIRST_TO_YIELD
    return is_tried and bool(device.sycl_platform.name == "Intel(R) OpenCL")


_MOST_LANES = 16
"""Of a sub-group.  A CPU offers 4 to 64: with 8 lanes persistent kernels took up to 1.2 times as
long, with 32 up to 1.4 times, also where code for AVX2 was generated."""


def device_target(device: Any) -> Target:
    """A ``dpctl.SyclDevice`` as the compiler sees it."""
    info = device_info(device)
    lanes = max((size for size in device.sub_group_sizes if size <= _MOST_LANES), default=0)
    return target_of(
        info,
        sub_group_size=lanes,
        worker_size=lanes,
        vector_width=max(device.native_vector_width_float, lanes),
        cache_line_bytes=device.global_mem_cache_line_size,
        **cache_sizes(device.is_cpu, device.global_mem_cache_size, device.max_compute_units),
    )


def _kind(device: Any) -> Literal["cpu", "gpu", "accelerator"]:
    if device.is_cpu:
        return "cpu"
    return "gpu" if device.is_gpu else "accelerator"
