"""From the kernel IR to a kernel that dpctl can launch."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from fusionq.backends.base import KeptProgram
from fusionq.backends.sycl.binary import binary_of, kernel_from_binary
from fusionq.backends.sycl.build_log import build_log
from fusionq.backends.sycl.lanes import lacks_lanes, with_emulated_lanes
from fusionq.backends.sycl.runtime import load_dpctl, takes_structures
from fusionq.base.errors import DeviceError
from fusionq.base.frozen import dataclass
from fusionq.base.target import FloatMode, Target
from fusionq.codegen import DeviceSource, Slot
from fusionq.ir.nodes import Kernel
from fusionq.ir.types import FLOAT16, FLOAT64
from fusionq.ir.walk import is_persistent
from fusionq.ir.work_bound import WorkBound

if TYPE_CHECKING:
    from fusionq.codegen.dialect import Dialect


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
    entry_point: str | None = None
    """What the kernel is called in a program of several."""

    @property
    def is_packed(self) -> bool:
        """Whether its arguments are one structure."""
        return self.generated is not None and self.generated.is_packed

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

    return _built(queue, kernel, generate(kernel, fp, target, _dialect()), fp)


def build_together(
    queue: Any, kernels: Sequence[Kernel], fp: FloatMode, target: Target
) -> list[SyclProgram]:
    """``build`` of each: one program of ``MOST_JOINED`` of those that may be joined, whose fixed
    part of a build, half of a small kernel's, and whose 3 MB in the runtime are there once."""
    from fusionq.codegen.joined_source import may_be_joined

    joinable = [kernel for kernel in kernels if may_be_joined(kernel)]
    made: dict[int, SyclProgram] = {}
    for first in range(0, len(joinable), MOST_JOINED):
        part = joinable[first : first + MOST_JOINED]
        if len(part) > 1:
            built = _built_together(queue, part, fp, target)
            made |= {id(program.kernel): program for program in built}
    return [made.get(id(kernel)) or build(queue, kernel, fp, target) for kernel in kernels]


def _dialect() -> Dialect:
    """The language of this runtime's kernels."""
    from fusionq.codegen.opencl import OPENCL_C, OPENCL_C_OF_MANY_ARGUMENTS

    return OPENCL_C if takes_structures() else OPENCL_C_OF_MANY_ARGUMENTS


MOST_JOINED = 32
"""Kernels of one program: when one of them is needed in another process, all are read."""


def _built_together(
    queue: Any, kernels: Sequence[Kernel], fp: FloatMode, target: Target
) -> list[SyclProgram]:
    """The programs; none where one of them cannot be built, which is then found out alone."""
    from fusionq.codegen.joined_source import joined
    from fusionq.codegen.kernel_source import generate

    dpctl, dialect = load_dpctl(), _dialect()
    options = " ".join(dialect.unit.build_options(fp))
    sources = [generate(kernel, fp, target, dialect) for kernel in kernels]
    text, names = joined(sources)
    start = time.perf_counter()
    try:
        for kernel, source in zip(kernels, sources, strict=True):
            _check_types(queue.sycl_device, kernel, source)
            _check_nesting(kernel, source.text)
        program = dpctl.program.create_program_from_source(queue, text, options)
        natives = [program.get_sycl_kernel(name) for name in names]
    except (DeviceError, dpctl.program.SyclProgramCompilationError):
        return []
    seconds = (time.perf_counter() - start) / len(kernels)
    return [
        SyclProgram(kernel, source.text, seconds, source.slots, native, source, name)
        for kernel, source, native, name in zip(kernels, sources, natives, names, strict=True)
    ]


def kept(queue: Any, program: SyclProgram) -> KeptProgram | None:
    """``program`` as data; None if it was not built from OpenCL C."""
    if program.generated is None:
        return None
    binary = binary_of(queue.sycl_device, program.native)
    return KeptProgram(program.generated, binary, program.entry_point)


def restored(queue: Any, kernel: Kernel, fp: FloatMode, kept: KeptProgram) -> SyclProgram:
    """The program of ``kernel`` from what was kept of it: from its binary, if the device takes
    that, or compiled from its source, with DeviceError as ``build``."""
    source = kept.source
    if kept.binary is not None:
        start = time.perf_counter()
        name = kept.entry_point or source.entry_point
        native = kernel_from_binary(queue, kept.binary, name, kept.entry_point is not None)
        if native is not None:
            seconds = time.perf_counter() - start
            return SyclProgram(
                kernel, source.text, seconds, source.slots, native, source, kept.entry_point
            )
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


def _check_types(device: Any, kernel: Kernel, source: DeviceSource) -> None:
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


def _built(queue: Any, kernel: Kernel, source: DeviceSource, fp: FloatMode) -> SyclProgram:
    dpctl = load_dpctl()
    device = queue.sycl_device
    _check_types(device, kernel, source)
    _check_nesting(kernel, source.text)
    options = " ".join(_dialect().unit.build_options(fp))
    start = time.perf_counter()
    build = dpctl.program.create_program_from_source
    try:
        native = build(queue, source.text, options).get_sycl_kernel(source.entry_point)
        if lacks_lanes(device, source.text, source.entry_point, native, options):
            source = _with_emulated_lanes(device, kernel, source)
            native = build(queue, source.text, options).get_sycl_kernel(source.entry_point)
    except dpctl.program.SyclProgramCompilationError as error:
        raise DeviceError(
            f"{kernel.span}: the OpenCL compiler of {device.name} refused the generated source "
            f"of kernel {kernel.name!r}; this is an error in fusionq, please report it.\n"
            f"{build_log(device, source.text, options)}\n{source.text}"
        ) from error
    seconds = time.perf_counter() - start
    return SyclProgram(kernel, source.text, seconds, source.slots, native, source)


def _with_emulated_lanes(device: Any, kernel: Kernel, source: DeviceSource) -> DeviceSource:
    """DeviceError for a persistent kernel: its list takes less time unfused."""
    text = None if is_persistent(kernel) else with_emulated_lanes(source.text)
    if text is None:
        raise DeviceError(
            f"{kernel.span}: the OpenCL compiler of {device.name} did not vectorise kernel "
            f"{kernel.name!r}, so that it has no sub-groups of the size that it requires"
        )
    return replace(source, text=text)
