"""The CUDA backend: one stream."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fusionq.backends.base import (
    Abilities,
    Binding,
    KeptProgram,
    PreparedLaunch,
    Program,
    ResidentWorkers,
)
from fusionq.backends.cuda.allocation import CudaAllocation, allocate, kept, pool
from fusionq.backends.cuda.compiler import nvrtc_version
from fusionq.backends.cuda.events import CudaEvent, EventStopwatch, new_event
from fusionq.backends.cuda.graph import DriverGraph
from fusionq.backends.cuda.launch import CudaLaunch
from fusionq.backends.cuda.program import CudaProgram, build, restored
from fusionq.backends.cuda.repeated import RepeatedLaunches
from fusionq.backends.cuda.runtime import checked, load_driver
from fusionq.backends.cuda.streams import stream_of
from fusionq.backends.new_memory import filled_now
from fusionq.base.device_info import DeviceInfo
from fusionq.base.errors import DeviceError
from fusionq.base.interned import interned_by_identity
from fusionq.base.target import FloatMode, LaunchShape
from fusionq.ir.functions import DEVICE_FUNCTIONS
from fusionq.ir.nodes import Kernel

LARGEST_IN_ORDER = 1 << 16
"""Bytes of new memory's contents that are copied in the order of launches; the host waits for
more."""


class CudaBackend:
    """Runs kernels on an NVIDIA GPU.

    ``target`` is None, a GPU's number as text, or a stream of another library, with whose work
    launches are then in order; ``profiling`` makes events record when they ran.  Raises DeviceError
    where there is no such GPU, no driver or no compiler.
    """

    abilities = Abilities(
        runtime="cuda",
        asynchronous=True,
        keeps_programs=True,
        builds_apart=True,
        resizes=True,
        launches_lists=True,
        reaches_others=False,
        # Multiprocessors have a cycle counter each, which do not agree.
        device_functions=frozenset(DEVICE_FUNCTIONS) - {"record_row", "cycle_counter"},
    )

    def __init__(self, target: object = None, profiling: bool = False) -> None:
        self._stream = stream_of(target)
        self.device = self._stream.device
        self.target = self.device.target
        nvrtc_version()  # is there
        self._base: Any = None
        if profiling:
            self._base = new_event()
            checked("an event", load_driver().cuEventRecord(self._base, self._stream.native))

    @property
    def info(self) -> DeviceInfo:
        """The GPU as people see it."""
        return self.device.info

    @property
    def native(self) -> Any:
        """The driver's ``CUstream``."""
        return self._stream.native

    @property
    def program_domain(self) -> Hashable:
        """Equal for backends that can run each other's programs: those of one GPU."""
        return "cuda", self.device.ordinal, interned_by_identity(self.target)

    @property
    def memory_domain(self) -> Hashable:
        """Equal for backends of one GPU."""
        return self.device.memory_domain

    def allocate(self, nbytes: int) -> CudaAllocation:
        """Memory of the GPU, contents undefined; DeviceError if there is not enough."""
        memory = kept(self.device, nbytes) if self.device.lost is None else None
        if memory is not None:
            return memory
        with self._stream.errors_named("allocating memory"):
            return allocate(self.device, nbytes)

    def filled(
        self, nbytes: int, contents: npt.NDArray[np.uint8] | None = None
    ) -> tuple[CudaAllocation, CudaEvent | None]:
        """Filled on the stream, but for large contents, and while others record what that is
        given; of memory that launches there may still use, if there is some."""
        stream, driver = self._stream, load_driver()
        is_large = contents is not None and contents.size > LARGEST_IN_ORDER
        stream.device.make_current()
        status, is_captured = driver.cuStreamIsCapturing(stream.native)
        if is_large or is_captured or status:
            return filled_now(self.allocate(nbytes), contents)
        if contents is not None:
            stream.let_keep()
        memory = stream.freed.take(nbytes) or self.allocate(nbytes)
        if contents is None:
            (status,) = driver.cuMemsetD8Async(memory.address, 0, nbytes, stream.native)
        elif contents.size:
            source, _ = contents.__array_interface__["data"]
            filled = driver.cuMemcpyHtoDAsync
            (status,) = filled(memory.address, source, contents.size, stream.native)
        if status or stream.device.lost is not None:
            with stream.errors_named("filling memory"):
                checked("new memory's contents", (status,))
        event = CudaEvent(stream, stream.launched("the filling of new memory"), None)
        if contents is not None:
            stream.keep(event.number, contents)
        return memory, event

    def unfilled(self, nbytes: int) -> tuple[CudaAllocation, CudaEvent | None]:
        """Of memory that launches here may still use, if there is some."""
        stream = self._stream
        memory = None if stream.is_captured else stream.freed.take(nbytes)
        if memory is None:
            return self.allocate(nbytes), None
        return memory, CudaEvent(stream, stream.launched("what used the memory before"), None)

    def trim(self) -> None:
        """Give back the small blocks that are kept for later allocations; the driver keeps memory,
        too."""
        self._stream.freed.clear()
        pool(self.device).blocks.clear()

    def build(self, kernel: Kernel, fp: FloatMode) -> CudaProgram:
        """Compile; DeviceError with the compiler's log and the source if that fails."""
        with self._stream.errors_named(f"loading {kernel.name}"):
            return build(self.device, kernel, fp)

    def build_together(self, kernels: Sequence[Kernel], fp: FloatMode) -> list[CudaProgram]:
        """Each by itself."""
        return [self.build(kernel, fp) for kernel in kernels]

    @property
    def keep_domain(self) -> tuple[object, ...]:
        """The architecture and the compiler's version."""
        return ("cuda", self.device.architecture, *nvrtc_version())

    def keep(self, program: Program) -> KeptProgram:
        """``program`` as data."""
        assert isinstance(program, CudaProgram), "a program built by a CudaBackend"
        return KeptProgram(program.generated, program.binary)

    def restore(self, kernel: Kernel, fp: FloatMode, kept: KeptProgram) -> CudaProgram:
        """What ``build`` gives, from what it gave before; DeviceError as there."""
        with self._stream.errors_named(f"loading {kernel.name}"):
            return restored(self.device, kernel, fp, kept)

    def prepare(
        self, program: Program, arguments: Sequence[Binding], shape: LaunchShape
    ) -> CudaLaunch:
        """Arguments in the order of ``kernel.params``; ArgumentError where they do not fit,
        DeviceError where the GPU does not take so many work-groups."""
        assert isinstance(program, CudaProgram), "a program built by a CudaBackend"
        return CudaLaunch(self._stream, program, arguments, shape, self._base)

    def workers(self, program: Program) -> ResidentWorkers:
        """The target's, or fewer where a block takes more registers or shared memory."""
        assert isinstance(program, CudaProgram), "a program built by a CudaBackend"
        own = program.generated.worker
        lanes = self.target.worker_size if own is None else own.lanes
        threads = lanes if own is None else own.threads
        most = self.target.resident_workers * self.target.worker_size // lanes
        return ResidentWorkers(min(program.resident_blocks(threads), most), lanes, threads)

    def movable(self, launch: PreparedLaunch, places: Mapping[str, int]) -> CudaLaunch | None:
        """A copy of ``launch``, prepared here."""
        return launch.copy(places) if isinstance(launch, CudaLaunch) else None

    def repeated(self, launches: Sequence[PreparedLaunch]) -> RepeatedLaunches | None:
        """The launches as a CUDA graph; None where each has to record its times, while the
        stream is captured, and where there are very many graphs."""
        has_room = DriverGraph.has_room(self.device)
        if self._base is not None or not has_room or self._stream.is_captured:
            return None
        own = [launch for launch in launches if isinstance(launch, CudaLaunch)]
        assert len(own) == len(launches), "launches that a CudaBackend prepared"
        with self._stream.errors_named("making a graph"):
            return RepeatedLaunches(self._stream, own)

    def seconds(self, run: Callable[[], object]) -> float:
        """By events on the stream before and behind."""
        driver, stream = load_driver(), self._stream
        stream.device.make_current()
        with stream.errors_named("measuring launches"):
            begin, end = new_event(), new_event()
            checked("an event", driver.cuEventRecord(begin, stream.native))
            run()
            checked("an event", driver.cuEventRecord(end, stream.native))
            checked("the launches failed", driver.cuEventSynchronize(end))
            taken = checked("their time", driver.cuEventElapsedTime(begin, end))
            for event in (begin, end):
                driver.cuEventDestroy(event)
        return float(taken) * 1e-3

    def stopwatch(self, launch: PreparedLaunch | None) -> EventStopwatch | None:
        """Of events in the launch's graph, or on the stream; None while that is captured."""
        self._stream.device.make_current()
        if self._stream.is_captured:
            return None
        if isinstance(launch, RepeatedLaunches):
            with self._stream.errors_named("making a graph"):
                return launch.watched()
        return EventStopwatch(self._stream)

    def wait(self) -> None:
        """Block until all that was launched has run."""
        self._stream.wait()

    def adopt(self, interface: dict[str, Any]) -> None:
        """DeviceError: a GPU's driver knows nothing of SYCL's memory."""
        raise DeviceError(
            f"{self.info.name} ({self.info.filter_string}) cannot reach USM of SYCL; copy it to a "
            "fusionq Buffer"
        )
