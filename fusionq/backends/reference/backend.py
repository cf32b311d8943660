"""The reference backend: executes the IR at once, strictly checked, in a chosen order."""

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
from fusionq.backends.reference.checked_arrays import HostAllocation
from fusionq.backends.reference.compile import compile_kernel
from fusionq.backends.reference.launch import ReferenceLaunch, ReferenceProgram
from fusionq.backends.reference.order import Order
from fusionq.backends.reference.persistent import (
    PersistentProgram,
    PersistentReferenceLaunch,
    build_persistent,
)
from fusionq.base.articles import with_article
from fusionq.base.device_info import DeviceInfo
from fusionq.base.errors import DeviceError
from fusionq.base.frozen import dataclass
from fusionq.base.interned import interned_by_identity
from fusionq.base.target import FloatMode, LaunchShape, target_of
from fusionq.ir.nodes import Kernel
from fusionq.ir.printer import print_kernel
from fusionq.ir.verifier import verify
from fusionq.ir.walk import persistent_of

REFERENCE_DEVICE = DeviceInfo(
    name="reference interpreter",
    vendor="fusionq",
    driver=f"NumPy {np.__version__}",
    filter_string="reference",
    kind="reference",
    compute_units=3,
    max_work_group_size=8192,
    local_memory_bytes=256 * 1024,
    has_fp16=True,
    has_fp64=True,
    host_memory=True,
    private_memory_bytes=4 << 30,
    sub_group_sizes=(1, 2, 4, 8, 16, 32, 64),
)


class ReferenceBackend:
    """Runs kernels in pure Python.

    ``order`` is the order of work-groups, and of work-items inside a group; ``seed``
    determines the shuffled one, and how the ``workers`` of a persistent kernel are interleaved.
    Raises DeviceError where a kernel leaves an array's extents or reads a variable that it has
    not assigned.
    """

    def __init__(
        self,
        order: Order = "shuffled",
        seed: int = 0,
        workers: int = REFERENCE_DEVICE.compute_units,
    ) -> None:
        self.target = target_of(replace(REFERENCE_DEVICE, compute_units=workers))
        self._order: Order = order
        self._seed = seed

    @property
    def info(self) -> DeviceInfo:
        """The device as people see it."""
        return self.target.device

    abilities = Abilities(runtime=None, asynchronous=False, resizes=True)
    native = None
    """There is no runtime below."""

    memory_domain: Hashable = "host"
    keep_domain: tuple[object, ...] = ()

    @property
    def program_domain(self) -> Hashable:
        """Equal for backends that can run each other's programs."""
        return interned_by_identity(self.target)

    def allocate(self, nbytes: int) -> HostAllocation:
        """Page-aligned host memory, contents undefined; DeviceError if there is not enough."""
        return HostAllocation(nbytes)

    def filled(
        self, nbytes: int, contents: npt.NDArray[np.uint8] | None = None
    ) -> tuple[Allocation, None]:
        """Has its contents at once."""
        return filled_now(self.allocate(nbytes), contents)

    def unfilled(self, nbytes: int) -> tuple[Allocation, None]:
        """Others may use it at once, too."""
        return self.allocate(nbytes), None

    def trim(self) -> None:
        """No memory is kept."""

    def build(self, kernel: Kernel, fp: FloatMode) -> ReferenceProgram | PersistentProgram:
        """Compile ``kernel`` to Python.  Its arithmetic is NumPy's in either ``fp`` mode."""
        start = time.perf_counter()
        verify(kernel)
        source = print_kernel(kernel)
        persistent = persistent_of(kernel)
        if persistent is not None:
            return build_persistent(kernel, persistent, source, start)
        bind = compile_kernel(kernel)
        return ReferenceProgram(kernel, bind, source, time.perf_counter() - start)

    def build_together(
        self, kernels: Sequence[Kernel], fp: FloatMode
    ) -> list[ReferenceProgram | PersistentProgram]:
        """Each by itself."""
        return [self.build(kernel, fp) for kernel in kernels]

    def keep(self, program: Program) -> None:
        """Programs are Python functions, which do not outlive the process."""

    def restore(
        self, kernel: Kernel, fp: FloatMode, kept: KeptProgram
    ) -> ReferenceProgram | PersistentProgram:
        """What ``build`` gives."""
        return self.build(kernel, fp)

    def prepare(
        self, program: Program, arguments: Sequence[Binding], shape: LaunchShape
    ) -> ReferenceLaunch | PersistentReferenceLaunch:
        """Arguments in the order of ``kernel.params``; ArgumentError where they do not fit,
        DeviceError where the launch shape does not."""
        if isinstance(program, PersistentProgram):
            return PersistentReferenceLaunch(
                program, arguments, shape, self._order, self._seed, self.target
            )
        if isinstance(program, ReferenceProgram):
            return ReferenceLaunch(program, arguments, shape, self._order, self._seed)
        raise DeviceError(
            f"the reference device cannot run {with_article(type(program).__name__)}; "
            "build the kernel with the backend that runs it"
        )

    def workers(self, program: Program) -> ResidentWorkers:
        """As the target has them."""
        lanes = self.target.worker_size
        return ResidentWorkers(self.target.resident_workers, lanes, lanes)

    def movable(
        self, launch: PreparedLaunch, places: Mapping[str, int]
    ) -> ReferenceLaunch | PersistentReferenceLaunch | None:
        """A copy of ``launch``, prepared here."""
        own = ReferenceLaunch, PersistentReferenceLaunch
        return launch.copy(places) if isinstance(launch, own) else None

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
        """Everything that was launched has run already."""

    def adopt(self, interface: dict[str, Any]) -> None:
        """DeviceError unless the memory is SYCL memory that the host can reach."""
        try:
            from dpctl.memory import as_usm_memory
        except ImportError as error:
            raise DeviceError(
                "the reference device cannot tell where an argument's SYCL memory lies, because "
                f"dpctl cannot be imported ({error}); pass a NumPy array or a fusionq Buffer"
            ) from error
        usm_type = as_usm_memory(_Adopted(interface)).get_usm_type()
        if usm_type not in ("shared", "host"):
            raise DeviceError(
                f"an argument lies in USM {usm_type} memory, and the reference device runs on "
                "the host; copy it to a NumPy array or a fusionq Buffer first"
            )


@dataclass(frozen=True, slots=True)
class _Adopted:
    __sycl_usm_array_interface__: dict[str, Any]
