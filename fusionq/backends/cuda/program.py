"""From the kernel IR to a kernel that the driver can launch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fusionq.backends.base import KeptProgram
from fusionq.backends.cuda.compiler import CompilationError, Cubin, compiled
from fusionq.backends.cuda.devices import Device
from fusionq.backends.cuda.runtime import CudaError, checked, load_driver
from fusionq.base.errors import DeviceError
from fusionq.base.target import FloatMode, Target
from fusionq.codegen.device_source import DeviceSource, Slot
from fusionq.ir.nodes import Kernel

_REGISTERS = 65536
"""32-bit registers that the threads of a block share, on every GPU from sm_50 on."""


@dataclass(frozen=True, slots=True)
class CudaProgram:
    """A built kernel; ``functions`` are the driver's, by the threads of a block that they are
    for."""

    kernel: Kernel
    device: Device
    fp: FloatMode
    generated: DeviceSource
    binary: bytes
    build_seconds: float
    function: Any
    """The driver's ``CUfunction``."""
    max_block: int
    """Threads of a block for which there are registers enough."""
    in_large_blocks: dict[int, Any] = field(default_factory=dict)
    """Functions that take fewer registers, by the threads of a block."""

    @property
    def source(self) -> str:
        """CUDA C++."""
        return self.generated.text

    @property
    def slots(self) -> tuple[Slot, ...]:
        """What each argument is."""
        return self.generated.slots

    def function_for(self, block: int) -> Any:
        """The function to launch in blocks of so many threads: compiled again, with fewer registers
        for each, if they have not enough."""
        if block <= self.max_block:
            return self.function
        if block not in self.in_large_blocks:
            registers = _REGISTERS // block // 8 * 8
            cubin = cubin_of(
                self.kernel, self.generated, self.fp, self.device.architecture,
                (f"--maxrregcount={registers}",),
            )  # fmt: skip
            self.in_large_blocks[block], _ = _loaded(self.device, cubin.code, self.generated)
        return self.in_large_blocks[block]


def generated(kernel: Kernel, fp: FloatMode, target: Target) -> DeviceSource:
    """The CUDA C++ of ``kernel``."""
    # Only now: programs that are restored need no code generator.
    from fusionq.codegen.cuda import CUDA_CPP
    from fusionq.codegen.kernel_source import generate

    return generate(kernel, fp, target, CUDA_CPP)


def cubin_of(
    kernel: Kernel,
    source: DeviceSource,
    fp: FloatMode,
    architecture: str,
    more_options: tuple[str, ...] = (),
) -> Cubin:
    """``source`` for an architecture such as ``sm_90``, which takes no GPU; DeviceError with the
    compiler's log and the source if NVRTC refuses it."""
    from fusionq.codegen.cuda import CUDA_CPP

    options = (*CUDA_CPP.unit.build_options(fp), *more_options)
    try:
        return compiled(source.text, architecture, options)
    except CompilationError as error:
        raise DeviceError(
            f"{kernel.span}: NVRTC refused the generated source of kernel {kernel.name!r}; this is "
            f"an error in fusionq, please report it.\n{error}\n{source.text}"
        ) from error


def build(device: Device, kernel: Kernel, fp: FloatMode) -> CudaProgram:
    """Generate and compile for ``device``; DeviceError as ``cubin_of``."""
    return _built(device, kernel, fp, generated(kernel, fp, device.target))


def restored(device: Device, kernel: Kernel, fp: FloatMode, kept: KeptProgram) -> CudaProgram:
    """The program of ``kernel`` from what was kept of it: from its binary, if the driver takes
    that, or compiled from its source, with DeviceError as ``build``."""
    if kept.binary is not None:
        try:
            function, max_block = _loaded(device, kept.binary, kept.source)
        except CudaError as error:
            if error.is_lost:
                raise
        else:
            return CudaProgram(
                kernel, device, fp, kept.source, kept.binary, 0.0, function, max_block
            )
    return _built(device, kernel, fp, kept.source)


def _built(device: Device, kernel: Kernel, fp: FloatMode, source: DeviceSource) -> CudaProgram:
    cubin = cubin_of(kernel, source, fp, device.architecture)
    function, max_block = _loaded(device, cubin.code, source)
    return CudaProgram(
        kernel, device, fp, source, cubin.code, cubin.seconds, function, max_block
    )


def _loaded(device: Device, code: bytes, source: DeviceSource) -> tuple[Any, int]:
    """The function in a cubin, and the threads of the largest block that it can run in.  What is
    loaded stays for the rest of the process."""
    driver = load_driver()
    device.make_current()
    module = checked("a cubin", driver.cuModuleLoadData(code))
    name = source.entry_point.encode()
    function = checked("a kernel of a cubin", driver.cuModuleGetFunction(module, name))
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
    largest = checked("a kernel's blocks", driver.cuFuncGetAttribute(attribute, function))
    return function, int(largest)
