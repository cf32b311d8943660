"""From the kernel IR to a kernel that dpctl can launch."""

from __future__ import annotations

import re
import time
from dataclasses import field
from typing import Any

from fusionq.backends.base import KeptProgram
from fusionq.backends.sycl.binary import binary_of, kernel_from_binary
from fusionq.backends.sycl.build_log import build_log
from fusionq.backends.sycl.runtime import load_dpctl
from fusionq.base.dataclass import dataclass
from fusionq.base.errors import DeviceError
from fusionq.base.target import FloatMode, Target
from fusionq.codegen import DeviceSource, Slot
from fusionq.ir.nodes import Kernel
from fusionq.ir.types import FLOAT16, FLOAT64
from fusionq.ir.work_bound import WorkBound


@dataclass(frozen=True, slots=True)
class SyclProgram:
    """A built kernel; ``slots`` are its arguments."""

    kernel: Kernel
    source: str
    build_seconds: float
    slots: tuple[Slot, ...]
    native: Any
    """The ``dpctl.program.SyclKernel``."""
    generated: DeviceSource | None = None
    """What it was built from, where that was OpenCL C."""
    work: WorkBound = field(init=False, compare=False)
    what: str = field(init=False, compare=False)
    """Its name and place in the program, for messages."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "work", WorkBound(self.kernel))
        object.__setattr__(self, "what", f"{self.kernel.name!r} ({self.kernel.span})")


def build(queue: Any, kernel: Kernel, fp: FloatMode, target: Target) -> SyclProgram:
    """Generate for ``target`` and compile; DeviceError if the device lacks a type, or with the
    compiler's log and the source if it refuses the text."""
    # Only now: programs that are restored need no code generator.
    from fusionq.codegen.kernel_source import generate
    from fusionq.codegen.opencl import OPENCL_C

    return _built(queue, kernel, generate(kernel, fp, target, OPENCL_C), fp)


def kept(queue: Any, program: SyclProgram) -> KeptProgram | None:
    """``program`` as data; None if it was not built from OpenCL C."""
    if program.generated is None:
        return None
    return KeptProgram(program.generated, binary_of(queue.sycl_device, program.native))


def restored(queue: Any, kernel: Kernel, fp: FloatMode, kept: KeptProgram) -> SyclProgram:
    """The program of ``kernel`` from what was kept of it: from its binary, if the device takes
    that, or compiled from its source, with DeviceError as ``build``."""
    source = kept.source
    if kept.binary is not None:
        start = time.perf_counter()
        native = kernel_from_binary(queue, kept.binary, source.entry_point)
        if native is not None:
            seconds = time.perf_counter() - start
            return SyclProgram(kernel, source.text, seconds, source.slots, native, source)
    return _built(queue, kernel, source, fp)


MOST_NESTED = 700
"""Brackets inside brackets: Intel's compiler for CPUs was seen to crash at 1,000, with the process,
and to take 500 (oneAPI 2026.0)."""


def _check_nesting(kernel: Kernel, text: str) -> None:
    """DeviceError where ``text`` is nested more deeply than compilers take."""
    if text.count("(") + text.count("{") <= MOST_NESTED:
        return
    depth = 0
    for bracket in re.finditer(r"[(){}]", text):
        depth += 1 if bracket[0] in "({" else -1
        if depth > MOST_NESTED:
            raise DeviceError(
                f"{kernel.span}: kernel {kernel.name!r} is nested too deeply for the device's "
                f"compiler, more than {MOST_NESTED} levels; assign parts of the expression to "
                "variables, or split deep branches into several kernels"
            )


def _built(queue: Any, kernel: Kernel, source: DeviceSource, fp: FloatMode) -> SyclProgram:
    from fusionq.codegen.opencl import OPENCL_C

    dpctl = load_dpctl()
    device = queue.sycl_device
    for type, present in (
        (FLOAT16, device.has_aspect_fp16),
        (FLOAT64, device.has_aspect_fp64),
    ):
        if type in source.types and not present:
            raise DeviceError(
                f"{kernel.span}: kernel {kernel.name!r} computes in {type}, which device "
                f"{device.filter_string} ({device.name}) does not support; use another type or "
                "another device"
            )
    _check_nesting(kernel, source.text)
    options = " ".join(OPENCL_C.unit.build_options(fp))
    start = time.perf_counter()
    try:
        program = dpctl.program.create_program_from_source(queue, source.text, options)
        native = program.get_sycl_kernel(source.entry_point)
    except dpctl.program.SyclProgramCompilationError as error:
        raise DeviceError(
            f"{kernel.span}: the OpenCL compiler of {device.name} refused the generated source "
            f"of kernel {kernel.name!r}; this is an error in fusionq, please report it.\n"
            f"{build_log(device, source.text, options)}\n{source.text}"
        ) from error
    seconds = time.perf_counter() - start
    return SyclProgram(kernel, source.text, seconds, source.slots, native, source)
