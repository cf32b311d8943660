"""CUDA C++ to cubins by NVRTC, which needs no GPU."""

from __future__ import annotations

import functools
import re
import time
from typing import Any

from fusionq.backends.cuda import lost_minus
from fusionq.backends.cuda.runtime import load_nvrtc
from fusionq.base.errors import DeviceError
from fusionq.base.frozen import dataclass

UPGRADE = "pip install --upgrade nvidia-cuda-nvrtc"


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
    if int(re.sub(r"\D", "", architecture)) not in architectures():
        known = ", ".join(f"sm_{number}" for number in architectures())
        version = ".".join(map(str, nvrtc_version()))
        raise DeviceError(
            f"NVRTC {version} does not compile for {architecture}, but for {known}; install a "
            f"version that does: {UPGRADE}"
        )
    start = time.perf_counter()
    made = _made(text, architecture, options)
    if lost_minus.happens(nvrtc_version(), architecture) and lost_minus.may_be_lost(made.ptx):
        made = _made(lost_minus.kept_apart(text), architecture, options)
        if lost_minus.may_be_lost(made.ptx):
            made = _made(text, architecture, (*options, *lost_minus.UNOPTIMISED))
    return Cubin(made.code, resources_in(made.report), time.perf_counter() - start)


@dataclass(frozen=True, slots=True)
class _Made:
    """What NVRTC gives."""

    code: bytes
    ptx: str
    report: str


def _made(text: str, architecture: str, options: tuple[str, ...]) -> _Made:
    nvrtc = load_nvrtc()
    status, program = nvrtc.nvrtcCreateProgram(text.encode(), b"kernel.cu", 0, [], [])
    _require(nvrtc, status)
    try:
        given = [f"--gpu-architecture={architecture}", *options, "--ptxas-options=-v"]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(given), [o.encode() for o in given])
        report = _decoded(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompilationError(f"{status.name}\n{report}")
        code = _content(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
        ptx = _decoded(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return _Made(code, ptx, report)


def advice() -> str | None:
    """What a newer NVRTC does better than the one that is there; None for those, or without one."""
    try:
        version = nvrtc_version()
    except DeviceError:
        return None
    if version >= lost_minus.FIRST_RIGHT:
        return None
    number = ".".join(map(str, version))
    worse = "compiles minima and maxima of negated integers wrongly on sm_90, which fusionq avoids "
    worse += "at the price of slower kernels"
    if version == (13, 0):
        worse += "; it does not end on some persistent kernels of work-groups"
    better = ".".join(map(str, lost_minus.FIRST_RIGHT))
    return f"NVRTC {number} {worse}. {better} and newer do not: {UPGRADE}"


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


def _decoded(size_of: Any, get: Any, program: Any) -> str:
    return _content(size_of, get, program).rstrip(b"\0").decode(errors="replace")


def _content(size_of: Any, get: Any, program: Any) -> bytes:
    _, size = size_of(program)
    content = bytes(int(size))  # which nobody else has, as everybody has b" " * 1
    get(program, content)
    return content
