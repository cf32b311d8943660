"""The SYCL backend: one dpctl queue."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fusionq.backends.base import (
    Abilities,
    Allocation,
    Binding,
    KeptProgram,
    PreparedLaunch,
    Program,
    ResidentWorkers,
)
from fusionq.backends.new_memory import filled_now
from fusionq.backends.sycl.binary import code_generation_settings
from fusionq.backends.sycl.devices import device_target
from fusionq.backends.sycl.launch import LaunchOrder, SyclLaunch
from fusionq.backends.sycl.program import SyclProgram, build, build_together, kept, restored
from fusionq.backends.sycl.queue_pool import PooledQueue
from fusionq.backends.sycl.runtime import takes_structures
from fusionq.backends.sycl.usm import SyclAllocation, allocate, check_adopted, new_pool
from fusionq.base.device_info import DeviceInfo
from fusionq.base.interned import interned, interned_by_identity
from fusionq.base.target import FloatMode, LaunchShape
from fusionq.ir.functions import DEVICE_FUNCTIONS
from fusionq.ir.nodes import Kernel


class SyclBackend:
    """Runs kernels on a SYCL device of the OpenCL backend.

    ``target`` is None, a SYCL filter string or a ``dpctl.SyclQueue``; ``profiling`` makes
    events record when they ran.  Launches run in order, on a queue that is not in-order too.
    Raises DeviceError where there is no such device.
    """

    abilities = Abilities(
        runtime="sycl",
        asynchronous=True,
        keeps_programs=True,
        resizes=True,
        device_functions=frozenset(DEVICE_FUNCTIONS),
    )

    def __init__(self, target: Any = None, profiling: bool = False) -> None:
        self._pooled = PooledQueue(target, profiling)
        self.sycl_queue = self._pooled.queue
        self.target = device_target(self.sycl_queue.sycl_device)
        if not takes_structures():
            self.abilities = replace(self.abilities, resizes=False)
        self._pool = new_pool(self.sycl_queue.sycl_device)
        self.memory_domain: Hashable = interned(("sycl", self.sycl_queue.sycl_context))
        """Equal for backends of one SYCL context, whose USM is theirs in common."""
        self._order = LaunchOrder(self.sycl_queue.is_in_order, self.info.name)

    @property
    def info(self) -> DeviceInfo:
        """The device as people see it."""
        return self.target.device

    @property
    def native(self) -> Any:
        """The ``dpctl.SyclQueue``; it is the caller's as well from now on."""
        self._pooled.is_shared = True
        return self.sycl_queue

    @property
    def program_domain(self) -> Hashable:
        """Equal for backends that can run each other's programs: those of one SYCL context."""
        return self.memory_domain, interned_by_identity(self.target)

    def allocate(self, nbytes: int) -> SyclAllocation:
        """USM shared memory, contents undefined; DeviceError if there is not enough."""
        return allocate(self.sycl_queue, nbytes, self._pool)

    def filled(
        self, nbytes: int, contents: npt.NDArray[np.uint8] | None = None
    ) -> tuple[Allocation, None]:
        """Has its contents at once."""
        return filled_now(self.allocate(nbytes), contents)

    def unfilled(self, nbytes: int) -> tuple[Allocation, None]:
        """Others may use it at once, too."""
        return self.allocate(nbytes), None

    def trim(self) -> None:
        """Give back the memory that is kept for later allocations."""
        self._pool.clear()

    def build(self, kernel: Kernel, fp: FloatMode) -> SyclProgram:
        """Compile; DeviceError with the compiler's log and the source if that fails."""
        return build(self.sycl_queue, kernel, fp, self.target)

    def build_together(self, kernels: Sequence[Kernel], fp: FloatMode) -> list[SyclProgram]:
        """One program of those that may be joined."""
        return build_together(self.sycl_queue, kernels, fp, self.target)

    @property
    def keep_domain(self) -> tuple[object, ...]:
        """What a kept program depends on beside kernel and floating mode."""
        settings = code_generation_settings(self.info.kind)
        return (type(self).__name__, self.target, settings, takes_structures())

    def keep(self, program: Program) -> KeptProgram | None:
        """``program`` as data; None if it was not built from OpenCL C."""
        assert isinstance(program, SyclProgram), "a program built by a SyclBackend"
        return kept(self.sycl_queue, program)

    def restore(self, kernel: Kernel, fp: FloatMode, kept: KeptProgram) -> SyclProgram:
        """What ``build`` gives, from what it gave before; DeviceError as there."""
        return restored(self.sycl_queue, kernel, fp, kept)

    def prepare(
        self, program: Program, arguments: Sequence[Binding], shape: LaunchShape
    ) -> SyclLaunch:
        """Arguments in the order of ``kernel.params``; ArgumentError where they do not fit."""
        assert isinstance(program, SyclProgram), "a program built by a SyclBackend"
        return SyclLaunch(self.sycl_queue, self._order, program, arguments, shape)

    def workers(self, program: Program) -> ResidentWorkers:
        """As the target has them."""
        lanes = self.target.worker_size
        return ResidentWorkers(self.target.resident_workers, lanes, lanes)

    def movable(self, launch: PreparedLaunch, places: Mapping[str, int]) -> SyclLaunch | None:
        """A copy of ``launch``, prepared here."""
        return launch.copy(places) if isinstance(launch, SyclLaunch) else None

    def repeated(self, launches: Sequence[PreparedLaunch]) -> None:
        """None: nothing is cheaper than the launches."""

    def seconds(self, run: Callable[[], object]) -> float:
        """By the host's clock, until all has run."""
        started = time.perf_counter()
        run()
        self.wait()
        return time.perf_counter() - started

    def stopwatch(self, launch: PreparedLaunch | None) -> None:
        """None: the host's clock tells as much."""

    def wait(self) -> None:
        """Block until all that was launched has run; Ctrl-C ends the wait."""
        self._order.wait(self.sycl_queue.wait)

    def __del__(self) -> None:
        """A queue that still runs what somebody did not wait for serves nobody else; memory is no
        longer kept."""
        if hasattr(self, "_order") and self._order.interrupted:
            self._pooled.is_shared = True
        if hasattr(self, "_pool"):
            self._pool.close()

    def adopt(self, interface: dict[str, Any]) -> None:
        """DeviceError unless kernels can reach memory described by
        ``__sycl_usm_array_interface__``."""
        check_adopted(self.sycl_queue, interface)
