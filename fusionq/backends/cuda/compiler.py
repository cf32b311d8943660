"""CUDA C++ to cubins by NVRTC, which needs no GPU."""

from __future__ import annotations

import functools
import re
import time
from typing import Any

from fusionq.backends.cuda.runtime import load_nvrtc
from fusionq.base.errors import DeviceError
from fusionq.base.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Resources:
    """What a kernel takes of the device, from the compiler's report."""

    registers: int
    """32-bit registers of a thread."""
    shared_bytes: int
    """Shared memory of a block."""
    stack_bytes: int
    """Local memory of a thread: arrays whose indices are no constants, and spills."""
    spill_stores: int
    """Bytes of registers that are stored for want of registers."""
    spill_loads: int


@dataclass(frozen=True, slots=True)
class Cubin:
    """Binary code for one architecture."""

    code: bytes
    resources: Resources
    seconds: float
    """That the compiler took."""


class CompilationError(Exception):
    """NVRTC refuses a text; the message is its log."""


@functools.cache
def nvrtc_version() -> tuple[int, int]:
    """Major and minor version; DeviceError where NVRTC is not there."""
    _, major, minor = load_nvrtc().nvrtcVersion()
    return int(major), int(minor)


@functools.cache
def architectures() -> tuple[int, ...]:
    """The architectures that NVRTC compiles for, such as 90 of ``sm_90``."""
    nvrtc = load_nvrtc()
    _, count = nvrtc.nvrtcGetNumSupportedArchs()
    return tuple(map(int, nvrtc.nvrtcGetSupportedArchs()[1][:count]))


def compiled(text: str, architecture: str, options: tuple[str, ...]) -> Cubin:
    """``text`` for ``architecture``, such as ``sm_90``; CompilationError if NVRTC refuses it,
    DeviceError where it does not know the architecture or is not there."""
    nvrtc = load_nvrtc()
    if int(re.sub(r"\D", "", architecture)) not in architectures():
        known = ", ".join(f"sm_{number}" for number in architectures())
        version = ".".join(map(str, nvrtc_version()))
        raise DeviceError(
            f"NVRTC {version} does not compile for {architecture}, but for {known}; install a "
            'version that does: pip install --upgrade nvidia-cuda-nvrtc'
        )
    start = time.perf_counter()
    status, program = nvrtc.nvrtcCreateProgram(text.encode(), b"kernel.cu", 0, [], [])
    _require(nvrtc, status)
    try:
        given = [f"--gpu-architecture={architecture}", *options, "--ptxas-options=-v"]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(given), [o.encode() for o in given])
        log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        report = log.rstrip(b"\0").decode(errors="replace")
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompilationError(f"{status.name}\n{report}")
        code = _text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return Cubin(code, resources_in(report), time.perf_counter() - start)


def resources_in(report: str) -> Resources:
    """What the report of ptxas says of the kernel, and of the functions that it calls."""

    def greatest(pattern: str) -> int:
        return max((int(found) for found in re.findall(pattern, report)), default=0)

    return Resources(
        registers=greatest(r"Used (\d+) registers"),
        shared_bytes=greatest(r"(\d+) bytes smem"),
        stack_bytes=max(
            greatest(r"(\d+) bytes stack frame"), greatest(r"(\d+) bytes cumulative stack size")
        ),
        spill_stores=greatest(r"(\d+) bytes spill stores"),
        spill_loads=greatest(r"(\d+) bytes spill loads"),
    )


def _require(nvrtc: Any, status: Any) -> None:
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise DeviceError(f"NVRTC does not start a compilation: {status.name}")


def _text(size_of: Any, get: Any, program: Any) -> bytes:
    _, size = size_of(program)
    content = bytes(int(size))  # which nobody else has, as everybody has b" " * 1
    get(program, content)
    return content
