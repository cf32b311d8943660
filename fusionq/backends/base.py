"""What every backend offers: memory, programs, prepared launches, events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from fusionq.base.target import DeviceInfo, FloatMode, LaunchShape, Target
from fusionq.codegen.device_source import DeviceSource
from fusionq.ir.nodes import Kernel


class Allocation(Protocol):
    """Device memory that the host can read and write too; freed when it is garbage."""

    @property
    def address(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def handle(self) -> Any:
        """The object that owns the memory (dpctl's for SYCL, NumPy's for the reference)."""

    def host_view(self) -> npt.NDArray[np.uint8]:
        """The bytes, shared, not copied."""


@dataclass(frozen=True, slots=True)
class ArrayBinding:
    """Where an array parameter's memory is: the address of element [0, …], extents, and
    strides in elements (negative strides allowed)."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


Binding = ArrayBinding | bool | int | float | np.generic


class DeviceEvent(Protocol):
    def wait(self) -> None: ...
    @property
    def complete(self) -> bool: ...
    @property
    def native(self) -> Any:
        """dpctl's SyclEvent, or None."""


class Program(Protocol):
    """A built kernel."""

    @property
    def source(self) -> str: ...
    @property
    def build_seconds(self) -> float: ...


@dataclass(frozen=True, slots=True)
class KeptProgram:
    """What remains of a program between processes: its source, and the device's binary code where
    that is to be had."""

    source: DeviceSource
    binary: bytes | None


class PreparedLaunch(Protocol):
    """A program with arguments in the device's form, ready to launch many times."""

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> None:
        """Give scalar parameter ``name`` another value for the launches that follow."""

    def launch(self, depends: Sequence[DeviceEvent] = ()) -> DeviceEvent:
        """Enqueue; returns at once.  The caller keeps the memory alive until the event."""


class Backend(Protocol):
    """One in-order queue on one device."""

    target: Target
    """The device as the compiler sees it."""

    @property
    def info(self) -> DeviceInfo:
        """The device as people see it: ``target.device``."""

    def allocate(self, nbytes: int) -> Allocation:
        """New memory, contents undefined; DeviceError if there is not enough."""

    def build(self, kernel: Kernel, fp: FloatMode) -> Program:
        """Compile; DeviceError with the compiler's log and the source if that fails."""

    def prepare(
        self, program: Program, arguments: Sequence[Binding], shape: LaunchShape
    ) -> PreparedLaunch:
        """Arguments in the order of ``kernel.params``."""

    def wait(self) -> None:
        """Block until all that was launched has run."""

    def adopt(self, interface: dict[str, Any]) -> None:
        """Check that this queue can reach memory described by ``__sycl_usm_array_interface__``;
        DeviceError (which device or context, and what to do) if not."""


@runtime_checkable
class KeepsPrograms(Protocol):
    """A backend whose programs can outlive the process."""

    @property
    def keep_domain(self) -> tuple[object, ...]:
        """What a kept program depends on beside kernel and floating mode."""

    def keep(self, program: Program) -> KeptProgram | None:
        """``program`` as data, or None."""

    def restore(self, kernel: Kernel, fp: FloatMode, kept: KeptProgram) -> Program:
        """What ``build`` gives, from what it gave before; DeviceError as there."""
