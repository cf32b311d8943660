"""Bringing up dpctl, and saying what is missing where that fails."""

from __future__ import annotations

import functools
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from fusionq.backends.sycl.oneapi_2024 import load_sycl_runtime
from fusionq.base.errors import DeviceError

INSTALL = 'pip install "fusionq[sycl]"'
_LOADER_VARIABLE = "OCL_ICD_FILENAMES"
_CPU_DRIVER = "libintelocl.so"
_OPENCL_ADAPTER = "libur_adapter_opencl.so"


def _libraries() -> list[Path]:
    """Where pip puts shared libraries: this environment, the one below it, the user's."""
    user = os.environ.get("PYTHONUSERBASE", str(Path.home() / ".local"))
    return [Path(root) / "lib" for root in dict.fromkeys((sys.prefix, sys.base_prefix, user))]


def _library(name: str) -> Path | None:
    return next((d / name for d in _libraries() if (d / name).exists()), None)


@functools.cache
def load_dpctl() -> Any:
    """The ``dpctl`` package with its memory and program modules.

    Tells the OpenCL loader where pip has put Intel's CPU driver, unless the user has set
    ``OCL_ICD_FILENAMES``: the driver's own ``.icd`` file names a path that does not exist.
    Raises DeviceError if dpctl cannot be imported.
    """
    if _LOADER_VARIABLE not in os.environ and (driver := _library(_CPU_DRIVER)) is not None:
        os.environ[_LOADER_VARIABLE] = str(driver)
    load_sycl_runtime()
    try:
        dpctl = import_module("dpctl")
        import_module("dpctl.memory")
        import_module("dpctl.program")
    except ImportError as error:
        raise DeviceError(
            f"SYCL devices need dpctl, which cannot be imported ({error}). "
            f"Install it with: {INSTALL}"
        ) from error
    return dpctl


@functools.cache
def takes_structures() -> bool:
    """Whether an argument of a kernel may be any bytes, and so a structure."""
    raw = getattr(load_dpctl(), "RawKernelArg", None)
    return raw is not None and bool(raw.is_available())


def _version(package: str) -> str | None:
    from importlib import metadata  # slow to import, and only for what goes wrong

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def missing_parts() -> str:
    """Why no OpenCL device may have appeared, and what to do about each cause; one a line."""
    causes = []
    if _library(_CPU_DRIVER) is None and _version("intel-opencl-rt") is None:
        causes.append(f"Intel's OpenCL CPU driver (intel-opencl-rt) is not installed: {INSTALL}")
    adapters = _version("intel-cmplr-lib-ur")
    if adapters is None:
        causes.append(f"the SYCL runtime's adapters (intel-cmplr-lib-ur) are missing: {INSTALL}")
    elif _library(_OPENCL_ADAPTER) is None:
        causes.append(
            f"intel-cmplr-lib-ur {adapters} is installed without an OpenCL adapter "
            f"({_OPENCL_ADAPTER}; version 2026.2.0 ships none): "
            'pip install "intel-cmplr-lib-ur>=2026.0,<2026.2" "intel-sycl-rt>=2026.0,<2026.2"'
        )
    if selector := os.environ.get("ONEAPI_DEVICE_SELECTOR"):
        causes.append(f"ONEAPI_DEVICE_SELECTOR={selector!r} is set and may hide devices: unset it")
    drivers = os.environ.get(_LOADER_VARIABLE, "")
    for driver in filter(None, drivers.split(os.pathsep)):
        if not Path(driver).exists():
            causes.append(f"{_LOADER_VARIABLE} names {driver!r}, which does not exist: unset it")
    if not causes:
        causes.append(
            "SYCL devices may have been listed before fusionq could name the OpenCL driver: "
            "use fusionq before other users of dpctl, or set OCL_ICD_FILENAMES to the path of "
            f"{_CPU_DRIVER}"
        )
    return "\n".join(f"  - {cause}" for cause in causes)
