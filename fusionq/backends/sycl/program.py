"""From the kernel IR to a kernel that dpctl can launch."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from fusionq.backends.base import FloatMode
from fusionq.backends.sycl.build_log import build_log
from fusionq.backends.sycl.runtime import load_dpctl
from fusionq.codegen import Slot, generate
from fusionq.codegen.opencl_c import OPENCL_C
from fusionq.errors import DeviceError
from fusionq.ir.nodes import Kernel
from fusionq.ir.types import FLOAT16, FLOAT64


@dataclass(frozen=True, slots=True)
class SyclProgram:
    """A built kernel; ``slots`` are its arguments."""

    kernel: Kernel
    source: str
    build_seconds: float
    slots: tuple[Slot, ...]
    native: Any
    """The ``dpctl.program.SyclKernel``."""


def build(queue: Any, kernel: Kernel, fp: FloatMode) -> SyclProgram:
    """Generate and compile; DeviceError if the device lacks a type, or with the compiler's log
    and the source if it refuses the text."""
    dpctl = load_dpctl()
    device = queue.sycl_device
    source = generate(kernel, fp)
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
    options = OPENCL_C.build_options(fp)
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
    return SyclProgram(kernel, source.text, time.perf_counter() - start, source.slots, native)
