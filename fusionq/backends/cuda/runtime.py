"""The CUDA driver and NVRTC through cuda.bindings, and what is missing where they do not come up.

Every call of the driver returns a status first.  Some are the end of the process's context, such as
an address that no memory has: everything in it is lost then, and every later call fails.
"""

from __future__ import annotations

import ctypes
import functools
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fusionq.base.errors import DeviceError

INSTALL = 'pip install "fusionq[cuda]"'

_LOST = frozenset({
    "CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_LAUNCH_TIMEOUT", "CUDA_ERROR_ASSERT",
    "CUDA_ERROR_HARDWARE_STACK_ERROR", "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    "CUDA_ERROR_MISALIGNED_ADDRESS", "CUDA_ERROR_INVALID_ADDRESS_SPACE", "CUDA_ERROR_INVALID_PC",
    "CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_ECC_UNCORRECTABLE", "CUDA_ERROR_CONTEXT_IS_DESTROYED",
    "CUDA_ERROR_EXTERNAL_DEVICE", "CUDA_ERROR_CONTAINED", "CUDA_ERROR_TENSOR_MEMORY_LEAK",
})  # fmt: skip
"""After these the context is lost (CUDA Driver API 13, CUresult)."""


class CudaError(DeviceError):
    """A call of the driver failed; ``code`` is the status's name, such as
    ``CUDA_ERROR_OUT_OF_MEMORY``; "" where the error says a line of the user's, too."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code

    @property
    def is_lost(self) -> bool:
        """Whether the context is lost, with all memory in it."""
        return self.code in _LOST


@functools.cache
def load_driver() -> Any:
    """``cuda.bindings.driver``, initialised; DeviceError, which says what is missing, if that
    fails."""
    if find_spec("cuda") is None or find_spec("cuda.bindings") is None:
        raise DeviceError(f"NVIDIA GPUs need cuda.bindings. Install it with: {INSTALL}")
    try:
        driver = import_module("cuda.bindings.driver")
        status = driver.cuInit(0)[0]
    except (ImportError, RuntimeError, OSError) as error:
        raise DeviceError(
            f"the NVIDIA driver (libcuda.so.1) cannot be loaded ({error}); install the driver of "
            "the GPU, 580 or newer"
        ) from error
    if status != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(
            f"the NVIDIA driver does not start ({status.name}: {_meaning(driver, status)}); "
            "nvidia-smi says whether the system sees a GPU and its driver"
        )
    return driver


@functools.cache
def driver_function(name: str, *parameters: Any) -> Any:
    """A function of the driver as C has it, of ``parameters`` as ``ctypes`` names their types; it
    gives the status as a number."""
    driver = load_driver()
    flags = driver.CUdriverProcAddress_flags.CU_GET_PROC_ADDRESS_DEFAULT
    found = driver.cuGetProcAddress(name.encode(), 10_000, flags)
    address, _ = checked(f"the driver's {name}", found)
    return ctypes.CFUNCTYPE(ctypes.c_int, *parameters)(address)


@functools.cache
def load_nvrtc() -> Any:
    """``cuda.bindings.nvrtc``; DeviceError, which says what is missing, if NVRTC is not there."""
    try:
        nvrtc = import_module("cuda.bindings.nvrtc")
        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError, OSError) as error:
        raise DeviceError(
            f"NVIDIA GPUs need NVRTC, the compiler, which cannot be loaded ({error}). "
            f"Install it with: {INSTALL}"
        ) from error
    return nvrtc


def checked(what: str, result: tuple[Any, ...]) -> Any:
    """What a call of the driver gives beside its status; CudaError if that is no success.  ``what``
    says what the call was for."""
    status = result[0]
    if status.value != 0:
        driver = load_driver()
        raise CudaError(f"{what}: {status.name} ({_meaning(driver, status)})", status.name)
    return result[1] if len(result) == 2 else result[1:]


def _meaning(driver: Any, status: Any) -> str:
    text = driver.cuGetErrorString(status)[1]
    return text.decode() if text else "unknown"
