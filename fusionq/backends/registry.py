"""Which backend a queue runs on."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from fusionq.backends.base import Backend, DeviceEvent
from fusionq.backends.platform import Platform
from fusionq.base.device_info import DeviceInfo
from fusionq.base.entry_points import names, registered
from fusionq.base.errors import ArgumentError, DeviceError

_DEFAULT = "sycl"
"""The platform of a queue without a target, and of texts that name none: SYCL's filter strings."""


def backend_for(target: object, profiling: bool = False) -> Backend:
    """A new backend for ``target``: None (the default SYCL device, else a GPU), a SYCL filter
    string, a ``dpctl.SyclQueue``, a CUDA stream, or a platform's name, alone or with a colon and
    one of its devices: ``"reference"``, ``"cuda"`` or ``"cuda:1"`` (NVIDIA GPUs), ``"dpex"`` or
    ``"dpex:opencl:cpu"`` (numba-dpex compiles).

    DeviceError where there is no such device, ArgumentError for another type of target.
    """
    if target is None:
        return _default(profiling)
    if isinstance(target, str):
        platform, device = _named(target)
        return platform.open(device, profiling)
    for platform in _platforms():
        if platform.recognises(target):
            return platform.open(target, profiling)
    raise ArgumentError(
        "a queue's target is None, a SYCL filter string such as 'opencl:cpu', a dpctl.SyclQueue, "
        "a CUDA stream, 'cuda' or 'reference', "
        f"not {type(target).__name__}: {target!r}"
    )


def builder_for(target: str) -> Backend:
    """As ``backend_for``, for who only builds: another process may be using the device."""
    platform, device = _named(target)
    return platform.open(device, False) if platform.builder is None else platform.builder(device)


def _named(target: str) -> tuple[Platform, str | None]:
    """The platform of a device's text, and what that one opens."""
    default = _platform(_DEFAULT)
    assert default is not None
    name, _, device = target.partition(":")
    named = None if name in default.filters else _platform(name)
    return (default, target) if named is None else (named, device or None)


def _default(profiling: bool) -> Backend:
    """The default SYCL device; without one the first GPU of another platform."""
    sycl = _platform(_DEFAULT)
    assert sycl is not None
    try:
        return sycl.open(None, profiling)
    except DeviceError:
        for platform in _platforms():
            if platform is not sycl and any(d.kind == "gpu" for d in platform.devices()):
                return platform.open(None, profiling)
        raise


def event_of(native: object) -> DeviceEvent | None:
    """An event of a device's runtime, such as a ``dpctl.SyclEvent``, as one of ours; None for other
    objects."""
    found = (platform.event(native) for platform in _platforms())
    return next((event for event in found if event is not None), None)


@functools.cache
def default_backend() -> Backend:
    """The backend that holds memory which no queue has asked for, for the host to see: the default
    SYCL device's, or the reference backend's where there is none."""
    sycl = _platform(_DEFAULT)
    assert sycl is not None
    try:
        return sycl.open(None, False)
    except DeviceError:
        return backend_for("reference")


def list_devices() -> list[DeviceInfo]:
    """The devices that ``backend_for`` takes: SYCL's, its favourite first, those of platforms
    that other packages register, and the reference interpreter, which is always there, last."""
    found = [device for platform in _platforms() for device in platform.devices()]
    return sorted(found, key=lambda device: device.kind == "reference")


def missing_devices() -> list[str]:
    """Why platforms whose packages are installed have no devices, and what to do."""
    reasons = (platform.missing() for platform in _platforms())
    return [reason for reason in reasons if reason is not None]


def advice() -> list[str]:
    """What platforms' users had better install in place of what they have, and why."""
    found = (platform.advice() for platform in _platforms())
    return [advice for advice in found if advice is not None]


def _platform(name: str) -> Platform | None:
    found: Platform | None = registered("fusionq.backends", name)
    return found


def _platforms() -> Iterator[Platform]:
    for name in names("fusionq.backends"):
        platform = _platform(name)
        if platform is not None:
            yield platform
