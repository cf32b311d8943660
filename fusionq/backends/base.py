"""What every backend offers: memory, programs, prepared launches, events."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from fusionq.base.device_info import DeviceInfo
from fusionq.base.frozen import dataclass
from fusionq.base.target import FloatMode, LaunchShape, Target
from fusionq.codegen.device_source import DeviceSource
from fusionq.ir.nodes import Kernel


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a backend can do and not every backend can."""

    runtime: Literal["sycl", "cuda"] | None
    """Whose the objects are that ``native`` gives, of the backend and of its events."""
    asynchronous: bool
    """Whether a launch returns before it has run, and waits by itself for what it depends on."""
    keeps_programs: bool = False
    """Whether programs can outlive the process: ``keep`` and ``restore``."""
    builds_apart: bool = False
    """Whether another process can build for it and leave the device alone: ``Platform.builder``."""
    resizes: bool = False
    """Whether launches that it prepares are ``ResizableLaunch``."""
    launches_lists: bool = False
    """Whether the host launches all of a list for what one launch takes it: ``repeated``."""
    reaches_others: bool = True
    """Whether its kernels may reach memory of other domains, as ``adopt`` and the device say."""
    launches: bool = True
    """Whether it launches; not what only builds."""
    group_functions: bool = True
    """Whether kernels may call group functions, ``ir.GroupCall``; barriers every backend has."""
    device_functions: frozenset[str] = frozenset()
    """What kernels may ask of the device, see ``ir.functions.DEVICE_FUNCTIONS``."""


class Allocation(Protocol):
    """Device memory, freed when it is garbage.

    Its operations have happened when they return.  They do not wait for launches: whoever calls
    them has waited for those that use the bytes.
    """

    @property
    def address(self) -> int:
        """Where it starts for kernels; no other memory of the process, the host's included, has
        the same addresses."""

    @property
    def nbytes(self) -> int:
        """Size as asked for."""

    @property
    def usm_interface(self) -> dict[str, Any] | None:
        """``__sycl_usm_array_interface__`` of what owns the memory; None if that is no USM."""

    @property
    def gpu(self) -> int | None:
        """The number of the NVIDIA GPU whose memory it is; None for other memory."""

    def host_view(self) -> npt.NDArray[np.uint8] | None:
        """The bytes, shared, not copied; None where the host does not see them."""

    def read(self, into: npt.NDArray[np.uint8], offset: int = 0) -> None:
        """Copy the bytes from ``offset`` on to contiguous memory of the host."""

    def fetched(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """A copy of ``nbytes`` from ``offset`` on, in new memory of the host."""

    def write(self, source: npt.NDArray[np.uint8], offset: int = 0) -> None:
        """Overwrite the bytes from ``offset`` on with contiguous memory of the host."""

    def copy(self, address: int, nbytes: int, offset: int = 0) -> None:
        """Overwrite the bytes from ``offset`` on with ``nbytes`` at ``address``, in memory that
        kernels of the same backend reach."""

    def zero(self) -> None:
        """Set all bytes to zero."""

    def free_after(self, event: DeviceEvent) -> bool:
        """Have it freed, by who knows nobody else that uses it, when ``event`` has come, without a
        wait for that; False, and nothing done, where that has to be waited for."""


class MemoryHome(Protocol):
    """Where memory is: a device, or a backend on it."""

    @property
    def info(self) -> DeviceInfo:
        """The device as people see it."""

    @property
    def memory_domain(self) -> Hashable:
        """Equal for all whose kernels reach the memory."""


@dataclass(frozen=True, slots=True)
class ArrayBinding:
    """Where an array parameter's memory is: the address of element [0, …], extents, and
    strides in elements (negative strides allowed), or in the parameter's ``alignment`` where it has
    one."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


Binding = ArrayBinding | bool | int | float | np.generic


class DeviceEvent(Protocol):
    """The completion of a launch."""

    def wait(self) -> None:
        """Block until the launch has run."""

    @property
    def complete(self) -> bool:
        """Whether the launch has run."""

    @property
    def native(self) -> Any:
        """The event of the runtime below, such as dpctl's SyclEvent; None where there is none."""

    def times(self) -> tuple[int, int] | None:
        """When the device started and ended the launch, which has run, in nanoseconds of the
        device's clock; None where that was not recorded."""


class Program(Protocol):
    """A built kernel."""

    @property
    def source(self) -> str: ...
    @property
    def build_seconds(self) -> float: ...


@dataclass(frozen=True, slots=True)
class KeptProgram:
    """What remains of a program between processes: its source, and the device's binary code where
    that is available."""

    source: DeviceSource
    binary: bytes | None
    entry_point: str | None = None
    """What the kernel is called in the binary, where that is of several."""


@dataclass(frozen=True, slots=True)
class ResidentWorkers:
    """``resident`` workers of a persistent kernel, that run at once, of ``lanes``; ``work_items``
    of the work-group of each, which may have others beside its lanes."""

    resident: int
    lanes: int
    work_items: int


class PreparedLaunch(Protocol):
    """A program with arguments in the device's form, ready to launch many times."""

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> None:
        """Give scalar parameter ``name`` another value for the launches that follow; ArgumentError
        if it does not fit."""

    def launch(self, depends: Sequence[DeviceEvent] = ()) -> DeviceEvent:
        """Enqueue; returns at once.  The caller keeps the memory alive until the event."""


class MovableLaunch(PreparedLaunch, Protocol):
    """A ``PreparedLaunch`` whose arrays need not stay where they were."""

    def move(self, addresses: Sequence[int | None]) -> None:
        """Have its arrays at other ``addresses``, each at that of its place, in the launches that
        follow."""


class ResizableLaunch(MovableLaunch, Protocol):
    """A ``MovableLaunch`` that can take other sizes, too."""

    def resize(self, arguments: Sequence[Binding], shape: LaunchShape) -> bool:
        """Be what ``Backend.prepare`` gives for these, of the same program, in the launches that
        follow; False where it cannot, and then it serves nobody any longer.  ArgumentError where
        they do not fit."""


@runtime_checkable
class RepeatableLaunch(Protocol):
    """A ``PreparedLaunch`` of a device that can repeat launches as they are."""

    def again(self) -> LaunchedAgain | None:
        """Launches with the arguments that it has now; None while it cannot be repeated."""


@runtime_checkable
class JoiningLaunch(Protocol):
    """A ``PreparedLaunch`` of a device that may join several of a launch shape's work-groups."""

    @property
    def work_groups(self) -> int:
        """How many there are then."""


class NumberedEvent(DeviceEvent, Protocol):
    """The completion of a queue's launches up to one of them."""

    number: int
    """That one's."""


class CountedLaunches(Protocol):
    """What counts a queue's launches."""

    submitted: int
    """So far."""


class LaunchedAgain(Protocol):
    """A launch that is repeated as it is.

    Who repeats it calls ``enqueue``, which gives a status of the device's runtime, and, where that
    is not 0, ``enqueue_after``; counts the launch in ``stream``, which gives its number; and lets
    ``latest`` have that.
    """

    @property
    def enqueue(self) -> Callable[[], int]:
        """Enqueues, behind what the queue has launched."""

    def enqueue_after(self, status: int) -> None:
        """Enqueue in spite of ``status``, or raise what it stands for."""

    @property
    def stream(self) -> CountedLaunches:
        """Where it is enqueued."""

    @property
    def latest(self) -> NumberedEvent:
        """The completion of all that the queue has launched, up to the last of these launches."""

    def include_others(self) -> None:
        """Let ``latest`` stand for what has been launched by others since, too."""

    def event_of(self, number: int) -> DeviceEvent:
        """The completion of one of the launches."""


class Stopwatch(Protocol):
    """What launches take, by the device's clock."""

    def start(self) -> None:
        """They come next."""

    def stop(self) -> None:
        """They came last."""

    def seconds(self) -> float | None:
        """What they took; None while they have not run."""


class Backend(Protocol):
    """One in-order queue on one device."""

    target: Target
    """The device as the compiler sees it."""

    @property
    def info(self) -> DeviceInfo:
        """The device as people see it: ``target.device``."""

    @property
    def abilities(self) -> Abilities:
        """What this backend can do and not every backend can."""

    @property
    def native(self) -> Any:
        """The queue of the runtime below, such as a ``dpctl.SyclQueue``; None where there is
        none."""

    @property
    def program_domain(self) -> Hashable:
        """Equal for backends that can run each other's programs."""

    @property
    def memory_domain(self) -> Hashable:
        """Equal for backends whose kernels reach each other's memory."""

    def allocate(self, nbytes: int) -> Allocation:
        """New memory, contents undefined; DeviceError if there is not enough."""

    def filled(
        self, nbytes: int, contents: npt.NDArray[np.uint8] | None = None
    ) -> tuple[Allocation, DeviceEvent | None]:
        """New memory that has ``contents``, which nobody changes any more, or zeros, before what is
        launched here from now on; the event of that, None where it has them.  DeviceError as of
        ``allocate``."""

    def unfilled(self, nbytes: int) -> tuple[Allocation, DeviceEvent | None]:
        """New memory of any contents, which is for what is launched here from now on; the event
        behind which others may use it, None where they may at once.  DeviceError as of
        ``allocate``."""

    def trim(self) -> None:
        """Give back the memory that is kept for later allocations."""

    def build(self, kernel: Kernel, fp: FloatMode) -> Program:
        """Compile; DeviceError with the compiler's log and the source if that fails."""

    def build_together(self, kernels: Sequence[Kernel], fp: FloatMode) -> Sequence[Program]:
        """What ``build`` gives for each of different ``kernels``, in less time where one program
        can hold several; DeviceError as there."""

    @property
    def keep_domain(self) -> tuple[object, ...]:
        """What a kept program depends on beside kernel and floating mode."""

    def keep(self, program: Program) -> KeptProgram | None:
        """``program`` as data; None for one that cannot outlive the process."""

    def restore(self, kernel: Kernel, fp: FloatMode, kept: KeptProgram) -> Program:
        """What ``build`` gives, from what it gave before; DeviceError as there."""

    def prepare(
        self, program: Program, arguments: Sequence[Binding], shape: LaunchShape
    ) -> PreparedLaunch:
        """Arguments in the order of ``kernel.params``; ArgumentError where they do not fit."""

    def workers(self, program: Program) -> ResidentWorkers:
        """The workers of a persistent kernel, built here, that run at once: as the target has them,
        or fewer or others, which only the built program tells."""

    def movable(self, launch: PreparedLaunch, places: Mapping[str, int]) -> MovableLaunch | None:
        """A copy of ``launch``, prepared here, which takes arrays at other addresses; ``places``:
        theirs, by parameter, among those that it will be given.  None where they have to be bound
        anew."""

    def repeated(self, launches: Sequence[PreparedLaunch]) -> PreparedLaunch | None:
        """``launches``, prepared here, as one that runs them in order and takes over scalars that
        are set in them; None where that is not cheaper."""

    def seconds(self, run: Callable[[], object]) -> float:
        """What ``run`` launches here takes, from the first launch to the end of the last: by the
        device's clock where it has events that tell, else the host's; that is waited for."""

    def stopwatch(self, launch: PreparedLaunch | None) -> Stopwatch | None:
        """A new one for the next launch of ``launch``, or of whatever comes between its start and
        its end; None where the host's clock tells as much, or nothing may be recorded now."""

    def wait(self) -> None:
        """Block until all that was launched has run."""

    def adopt(self, interface: dict[str, Any]) -> None:
        """Check that this queue can reach memory described by ``__sycl_usm_array_interface__``;
        DeviceError (which device or context, and what to do) if not."""
