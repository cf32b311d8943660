"""From the kernel IR to a kernel that numba-dpex has compiled and dpctl can launch."""

from __future__ import annotations

import hashlib
import linecache
import time
from importlib import import_module
from typing import Any

from fusionq.backends.sycl.program import SyclProgram
from fusionq.backends.sycl.runtime import load_dpctl
from fusionq.base.errors import DeviceError
from fusionq.base.target import FloatMode
from fusionq.codegen import DeviceSource
from fusionq.dpex.backend.source import argument_type, generate
from fusionq.dpex.backend.spirv import without_contraction
from fusionq.dpex.environment import load_numba_dpex
from fusionq.ir.nodes import Kernel
from fusionq.ir.python_text import uses_groups
from fusionq.ir.types import FLOAT64

_BUILD_OPTIONS = "-cl-fp32-correctly-rounded-divide-sqrt"


def build(queue: Any, kernel: Kernel, fp: FloatMode) -> SyclProgram:
    """Print the kernel as Python, compile it with numba-dpex, build its SPIR-V.

    ``strict``: every operation rounds once; ``fast`` allows contraction.  Raises DeviceError for
    what numba-dpex cannot compile, with its message and the source.
    """
    load_numba_dpex()
    dpctl = load_dpctl()
    source = generate(kernel)
    device = queue.sycl_device
    if FLOAT64 in source.types and not device.has_aspect_fp64:
        raise DeviceError(
            f"{kernel.span}: kernel {kernel.name!r} computes in float64, which device "
            f"{device.filter_string} ({device.name}) does not support"
        )
    start = time.perf_counter()
    try:
        name, module = _compile(source, kernel)
    except Exception as error:  # numba raises errors of many kinds
        raise DeviceError(
            f"{kernel.span}: numba-dpex cannot compile kernel {kernel.name!r}: "
            f"{type(error).__name__}: {error}\n{source.text}"
        ) from error
    if fp == "strict":
        module = without_contraction(module)
    try:
        program = dpctl.program.create_program_from_spirv(queue, module, _BUILD_OPTIONS)
    except dpctl.program.SyclProgramCompilationError as error:
        raise DeviceError(
            f"{kernel.span}: device {device.filter_string} ({device.name}) refused what numba-dpex "
            f"made of kernel {kernel.name!r}: {error}\n{source.text}"
        ) from error
    native = program.get_sycl_kernel(name)
    return SyclProgram(kernel, source.text, time.perf_counter() - start, source.slots, native)


def _compile(source: DeviceSource, kernel: Kernel) -> tuple[str, bytes]:
    """The kernel's name in the SPIR-V module, and the module."""
    # What numba has for range(…), as for all built-ins, comes with its CPU target.
    import_module("numba.cpython.rangeobj")
    from numba.core import types
    from numba.core.compiler_lock import global_compiler_lock
    from numba_dpex.core.types.kernel_api.index_space_ids import ItemType, NdItemType

    item = (NdItemType if uses_groups(kernel) else ItemType)(kernel.ndim)
    arguments = [getattr(types, argument_type(slot, kernel).name) for slot in source.slots]
    dispatcher = _module(source.text)[source.entry_point]
    # Not through the dispatcher itself, which wants a USM array among the arguments.
    with global_compiler_lock:
        compiled = dispatcher._compiler.compile((item, *arguments), types.void)
    made = compiled.kernel_device_ir_module
    return made.kernel_name, made.kernel_bitcode


def _module(text: str) -> dict[str, Any]:
    """The names that the source defines.  numba reads bytecode; the text is for its messages."""
    file = f"<numba-dpex kernel {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": "fusionq_generated"}
    exec(compile(text, file, "exec"), namespace)
    return namespace
