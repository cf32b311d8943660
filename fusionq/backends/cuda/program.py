"""From the kernel IR to a kernel that the driver can launch."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import field
from math import prod
from typing import Any

from fusionq.backends.arguments import bound_by_name
from fusionq.backends.base import ArrayBinding, Binding, KeptProgram
from fusionq.backends.cuda.compiler import CompilationError, Cubin, compiled
from fusionq.backends.cuda.devices import Device
from fusionq.backends.cuda.grid import IN_ORDER, Grid
from fusionq.backends.cuda.runtime import CudaError, checked, load_driver
from fusionq.base.errors import DeviceError
from fusionq.base.frozen import dataclass
from fusionq.base.target import FloatMode, LaunchShape, Target
from fusionq.codegen.cuda.shared_memory import pooled_bytes
from fusionq.codegen.cuda.unit import IN_TURN, LOADS_EARLY
from fusionq.codegen.device_source import DeviceSource, Slot
from fusionq.ir.nodes import ArrayParam, Kernel
from fusionq.ir.unrecorded import unrecorded
from fusionq.ir.walk import is_persistent

_REGISTERS = 65536
"""32-bit registers that the threads of a block share, on every GPU from sm_50 on."""
_MOST_REGISTERS = 255
"""Of a thread, on every GPU so far."""
_LARGEST_BLOCK = 1024
"""Threads of a block, at most, on every GPU so far (CUDA C++ Programming Guide 13, Compute
Capabilities)."""
_LARGEST_KEEPING = 512
"""The same of a kernel that keeps what it has loaded ahead, unless it is compiled again."""
_LARGEST_OF_FEW = 256
"""The same of launches of few work-items: each may have all registers that a thread can have."""
_SPILLED_BY_ALL, _SPILLED_BY_HALF = 64, 512
"""Bytes that each thread of a persistent kernel may store for want of registers so that all workers
run at once, or half of them.  H100: of a stencil of three points 64 took nothing, of one of five
points 400 doubled the time; a decode step of 16 layers took 5.9 ms with half of the workers, which
stored 228, and 8.6 ms with a quarter."""
THREADS_LEFT = 0.25
"""Of the threads that run at once, those that a launch has at least if each does several
work-items.  H100: copies of 300,000 elements take 0.88 to 0.97 of the time so, of 100,000 1.0 to
1.1, with 0.07 to 0.28 and 0.02 to 0.09 of the threads."""
ROWS_FILLED = 0.8
"""Of the work-items that the threads of a row can do then, those that there are.  H100: stencils
over rows that fill three quarters take 1.00 to 1.02 of the time, a quarter 1.1 to 1.6."""
_REGISTERS_OF_HALF = 64
"""Of a thread, with which a multiprocessor runs half of the threads that it has room for."""


@dataclass(frozen=True)
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
    wide: Any = None
    """The driver's function whose work-items do ``generated.neighbours`` each; None where there is
    none."""
    variants: dict[tuple[int, str], Any] = field(default_factory=dict)
    """Functions for other grids, by the threads of a block, 0 where those do not matter, and by
    ``Grid.axes``."""

    residents: dict[int, int] = field(default_factory=dict)
    """Blocks that run at once, by their threads, as far as anybody has asked."""

    @functools.cached_property
    def shared_bytes(self) -> int:
        """Of a block's shared memory, what a launch has to ask for."""
        return _shared_bytes(self.device, self.kernel, self.generated)

    def resident_blocks(self, threads: int) -> int:
        """How many blocks of so many threads run at once, by what the kernel takes of registers
        and shared memory."""
        known = self.residents.get(threads)
        if known is None:
            self.device.make_current()
            occupancy = load_driver().cuOccupancyMaxActiveBlocksPerMultiprocessor
            found = occupancy(self.function, threads, self.shared_bytes)
            blocks = int(checked("a kernel's occupancy", found))
            known = self.residents[threads] = blocks * self.device.info.compute_units
        return known

    @functools.cached_property
    def runs_at_once(self) -> bool:
        """Whether all blocks of a launch have to run at once."""
        return is_persistent(self.kernel)

    @functools.cached_property
    def waits_itself(self) -> bool:
        """Whether it waits for the launch before it, so that its blocks may be there while that
        one's last blocks run (programmatic dependent launch)."""
        return self.device.has_dependent_launches and IN_TURN in self.generated.text

    @functools.cached_property
    def loads_early(self) -> bool:
        """Whether it loads before that what no launch of its list writes."""
        return LOADS_EARLY in self.generated.text

    @property
    def source(self) -> str:
        """CUDA C++."""
        return self.generated.text

    @property
    def slots(self) -> tuple[Slot, ...]:
        """What each argument is."""
        return self.generated.slots

    def vector_bytes(
        self, bindings: Sequence[Binding], shape: LaunchShape
    ) -> dict[str, int] | None:
        """Where a launch can be of ``wide``, if only the memory of each array begins at a multiple
        of so many bytes: the rows behind do as well, and the range leaves work for enough threads.
        None where it cannot, wherever the arrays are."""
        items = self.generated.neighbours
        fewest = items * self.device.threads * THREADS_LEFT
        if self.wide is None or prod(shape.global_range) < fewest:
            return None
        groups = shape.global_range[-1] // shape.local_range[-1]
        if groups < ROWS_FILLED * items * -(-groups // items):
            return None
        by_name = bound_by_name(self.kernel, bindings)
        found = {}
        for param in self.kernel.params:
            binding = by_name[param.name]
            if isinstance(param, ArrayParam) and isinstance(binding, ArrayBinding):
                rows = binding.shape[-1:] if param.contiguous else binding.strides[:-1]
                if param.ndim > 1 and any(number % items for number in rows):
                    return None
                found[param.name] = items * param.dtype.nbytes
        return found

    def function_for(self, grid: Grid) -> Any:
        """The function to launch over ``grid``: compiled again where a thread's registers are too
        many for so large a block, or the grid's axes are in another order."""
        block = grid.block_size if grid.block_size > self.max_block else 0
        if not block and grid.axes == IN_ORDER:
            return self.function
        if (block, grid.axes) not in self.variants:
            source = self.generated
            if grid.axes != IN_ORDER:
                source = generated(self.kernel, self.fp, self.device.target, grid.axes)
            cubin = cubin_of(self.kernel, source, self.fp, self.device.architecture, block)
            function, _, _ = _loaded(self.device, cubin.code, source, self.shared_bytes)
            self.variants[block, grid.axes] = function
        return self.variants[block, grid.axes]


def generated(kernel: Kernel, fp: FloatMode, target: Target, axes: str = IN_ORDER) -> DeviceSource:
    """The CUDA C++ of ``kernel``, for grids with these axes."""
    # Only now: programs that are restored need no code generator.
    from fusionq.codegen.cuda import dialect_for
    from fusionq.codegen.kernel_source import generate

    return generate(kernel, fp, target, dialect_for(axes))


def cubin_of(
    kernel: Kernel,
    source: DeviceSource,
    fp: FloatMode,
    architecture: str,
    block: int = 0,
) -> Cubin:
    """``source`` for an architecture such as ``sm_90``, which takes no GPU; DeviceError with the
    compiler's log and the source if NVRTC refuses it.

    ``block``: threads of a block that the function has to run in; 0 leaves the registers of a
    thread to the compiler.  Where loops wait for memory, that chooses so few that half of a block's
    would be left, with few loads in flight; there a thread may have as many as the largest block
    leaves room for, but if it spills.
    """
    from fusionq.codegen.cuda import CUDA_CPP
    from fusionq.codegen.cuda.unit import STREAMING_LOOP

    options = CUDA_CPP.unit.build_options(fp)
    streams = source.keeps_loads or STREAMING_LOOP in source.text
    largest = _LARGEST_KEEPING if source.keeps_loads else _LARGEST_BLOCK
    if source.keeps_loads and kernel.few_items:
        largest = _LARGEST_OF_FEW
    most = min(_REGISTERS // (block or largest) // 8 * 8, _MOST_REGISTERS)
    limit = (f"--maxrregcount={most}",) if block or streams else ()
    try:
        if is_persistent(kernel):
            return _persistent_cubin(source.text, architecture, options)
        cubin = compiled(source.text, architecture, (*options, *limit))
        if cubin.resources.spill_stores and limit and not block:
            return compiled(source.text, architecture, options)
        return cubin
    except CompilationError as error:
        raise DeviceError(
            f"{kernel.span}: NVRTC refused the generated source of kernel {kernel.name!r}; this is "
            f"an error in fusionq, please report it.\n{error}\n{source.text}"
        ) from error


def _persistent_cubin(text: str, architecture: str, options: tuple[str, ...]) -> Cubin:
    """A thread has as few registers as let all workers run at once, or else half of them, if it
    then spills little: outside of the loops over work-items, that is.  Where loops do several
    work-items at once, fewer workers have as much in flight, and all of them no registers for it
    (H100, a stencil of three points: 1056, 792 and 528 workers 214, 128 and 147 µs).  No fewer
    registers where tables leave room for few workers.

    Builds take seconds, so that few registers are not tried where a thread takes so many more by
    itself that it would spill too much, four bytes each: so did all 52 of 62 kernels."""
    from fusionq.codegen.cuda.workers import LARGE_TABLES, part_resident
    from fusionq.codegen.tile_loop import TOGETHER

    free = compiled(text, architecture, options)
    if LARGE_TABLES in text:
        return free
    beyond = free.resources.registers - _REGISTERS_OF_HALF // 2
    if TOGETHER not in text and 0 < beyond <= _SPILLED_BY_ALL // 4:
        most = compiled(text, architecture, (*options, part_resident(1)))
        if most.resources.spill_stores <= _SPILLED_BY_ALL:
            return most
    if free.resources.registers <= _REGISTERS_OF_HALF:
        return free
    half = compiled(text, architecture, (*options, part_resident(2)))
    return half if half.resources.spill_stores <= _SPILLED_BY_HALF else free


def with_all_workers(
    kernel: Kernel,
    source: DeviceSource,
    fp: FloatMode,
    target: Target,
    architecture: str,
    cubin: Cubin,
) -> Cubin:
    """``cubin``, of ``kernel``; where records take registers, and so workers, from a persistent
    kernel, compiled for as many as run at once without them: a profile is about those.  Rows of
    4096, 16 million elements on an H100: 660 workers take 98 µs, 528 with records 108."""
    from fusionq.codegen.cuda.workers import LARGE_TABLES, resident

    plain = unrecorded(kernel)
    if plain is None or LARGE_TABLES in source.text:
        return cubin
    without = cubin_of(plain, generated(plain, fp, target), fp, architecture)
    blocks = _blocks(without, target)
    if _blocks(cubin, target) >= blocks:
        return cubin
    from fusionq.codegen.cuda import CUDA_CPP

    options = (*CUDA_CPP.unit.build_options(fp), resident(blocks))
    found = compiled(source.text, architecture, options)
    return found if found.resources.spill_stores <= _SPILLED_BY_HALF else cubin


def _blocks(cubin: Cubin, target: Target) -> int:
    """Workers of a multiprocessor at once, by their registers."""
    registers = -(-max(cubin.resources.registers, 1) // 8) * 8
    return _REGISTERS // (registers * target.worker_size)


def build(device: Device, kernel: Kernel, fp: FloatMode) -> CudaProgram:
    """Generate and compile for ``device``; DeviceError as ``cubin_of``."""
    return _built(device, kernel, fp, generated(kernel, fp, device.target))


def restored(device: Device, kernel: Kernel, fp: FloatMode, kept: KeptProgram) -> CudaProgram:
    """The program of ``kernel`` from what was kept of it: from its binary, if the driver takes
    that, or compiled from its source, with DeviceError as ``build``."""
    if kept.binary is not None:
        try:
            shared = _shared_bytes(device, kernel, kept.source)
            function, wide, max_block = _loaded(device, kept.binary, kept.source, shared)
        except CudaError as error:
            if error.is_lost:
                raise
        else:
            return CudaProgram(
                kernel, device, fp, kept.source, kept.binary, 0.0, function, max_block, wide
            )
    return _built(device, kernel, fp, kept.source)


def _built(device: Device, kernel: Kernel, fp: FloatMode, source: DeviceSource) -> CudaProgram:
    cubin = cubin_of(kernel, source, fp, device.architecture)
    cubin = with_all_workers(kernel, source, fp, device.target, device.architecture, cubin)
    shared = _shared_bytes(device, kernel, source)
    function, wide, max_block = _loaded(device, cubin.code, source, shared)
    return CudaProgram(
        kernel, device, fp, source, cubin.code, cubin.seconds, function, max_block, wide
    )


def _shared_bytes(device: Device, kernel: Kernel, source: DeviceSource) -> int:
    """Of a block's shared memory, what a launch has to ask for."""
    if source.worker is not None:
        return source.worker.shared_bytes
    return pooled_bytes(kernel, device.info.local_memory_bytes)


def _loaded(
    device: Device, code: bytes, source: DeviceSource, shared_bytes: int
) -> tuple[Any, Any, int]:
    """The function in a cubin, which launches give so much shared memory, the wide one where there
    is one, and the threads of the largest block that they can run in.  What is loaded stays for the
    rest of the process."""
    driver = load_driver()
    device.make_current()
    module = checked("a cubin", driver.cuModuleLoadData(code))
    functions = [None, None]
    for place, name in enumerate((source.entry_point, source.wide_entry_point)):
        if not place or source.neighbours:
            found = driver.cuModuleGetFunction(module, name.encode())
            functions[place] = checked("a kernel of a cubin", found)
    function, wide = functions
    attributes = driver.CUfunction_attribute
    if shared_bytes:
        most = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        checked("shared memory", driver.cuFuncSetAttribute(function, most, shared_bytes))
    threads = attributes.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
    largest = [
        int(checked("a kernel's blocks", driver.cuFuncGetAttribute(threads, one)))
        for one in functions
        if one is not None
    ]
    return function, wide, min(largest)
