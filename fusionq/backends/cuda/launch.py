"""Kernels with their arguments in the driver's form, and the events of their launches."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from fusionq.backends.base import Binding, DeviceEvent
from fusionq.backends.cuda.program import CudaProgram
from fusionq.backends.cuda.runtime import checked, load_driver
from fusionq.backends.cuda.streams import Stream, StreamWork
from fusionq.backends.native_arguments import NativeArguments
from fusionq.base.errors import DeviceError
from fusionq.base.target import LaunchShape

_LARGEST_GRID = (2**31 - 1, 65535, 65535)
"""Blocks of a grid in x, y and z (CUDA C++ Programming Guide 13, Compute Capabilities)."""


class CudaEvent:
    """The completion of one launch, known by its number on its stream."""

    __slots__ = ("_number", "_times", "stream")

    native = None

    def __init__(self, stream: Stream, number: int, times: Times | None) -> None:
        self.stream = stream
        self._number = number
        self._times = times

    def wait(self) -> None:
        """Block until the launch has run, and what was launched behind it so far; other Python
        threads go on meanwhile."""
        if self.stream.completed < self._number:
            self.stream.wait()

    @property
    def complete(self) -> bool:
        """Whether the launch has run; False as long as a later one of its queue has not."""
        return self.stream.completed >= self._number or self.stream.is_idle

    def times(self) -> tuple[int, int] | None:
        """When the device started and ended the launch, in nanoseconds; None where the queue
        records no times."""
        self.wait()
        return None if self._times is None else self._times.read()


class Times:
    """The driver's events around a launch; ``base`` is time 0."""

    __slots__ = ("_base", "_end", "_start")

    def __init__(self, base: Any) -> None:
        self._base = base
        self._start, self._end = new_event(), new_event()

    def start(self, stream: Stream) -> None:
        """The launch comes next."""
        checked("an event", load_driver().cuEventRecord(self._start, stream.native))

    def end(self, stream: Stream) -> None:
        """The launch came last."""
        checked("an event", load_driver().cuEventRecord(self._end, stream.native))

    def read(self) -> tuple[int, int]:
        """Start and end, once both have happened."""
        driver = load_driver()
        since = [
            checked("a launch's time", driver.cuEventElapsedTime(self._base, event))
            for event in (self._start, self._end)
        ]
        return round(since[0] * 1e6), round(since[1] * 1e6)

    def __del__(self) -> None:
        driver = load_driver()
        for event in (self._start, self._end):
            driver.cuEventDestroy(event)


def new_event() -> Any:
    """An event of the driver that records times."""
    driver = load_driver()
    return checked("an event", driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DEFAULT))


class CudaLaunch:
    """A program bound to arguments and a launch shape."""

    __slots__ = (
        "_addresses", "_arguments", "_base", "_config", "_driver", "_function", "_name",
        "_parameters", "_stream",
    )  # fmt: skip

    def __init__(
        self,
        stream: Stream,
        program: CudaProgram,
        bindings: Sequence[Binding],
        shape: LaunchShape,
        base: Any,
    ) -> None:
        self._stream = stream
        self._base = base
        self._name = program.kernel.name
        self._arguments = NativeArguments(program.kernel, program.slots, bindings)
        values = self._arguments.values
        self._addresses = (ctypes.c_void_p * max(len(values), 1))(*map(ctypes.addressof, values))
        self._parameters = ctypes.addressof(self._addresses)
        self._driver = load_driver()
        stream.device.make_current()
        self._function = program.function_for(prod(shape.local_range))
        self._config = _config(self._driver, program.kernel.name, shape)
        self._config.hStream = stream.native

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> None:
        """Give scalar parameter ``name`` another value for the launches that follow.

        ArgumentError if an integer does not fit the parameter's type.
        """
        self._arguments.set_scalar(name, value)

    def launch(self, depends: Sequence[DeviceEvent] = ()) -> CudaEvent:
        """Enqueue; returns at once.  Events of other kinds of devices are waited for."""
        stream = self._stream
        stream.device.make_current()
        for event in depends:
            if isinstance(event, StreamWork):
                stream.wait_for(event)
            elif not isinstance(event, CudaEvent) or event.stream.device is not stream.device:
                event.wait()
            elif event.stream is not stream:
                stream.wait_for(event.stream)
        times = None if self._base is None else Times(self._base)
        if times is not None:
            times.start(stream)
        (status,) = self._driver.cuLaunchKernelEx(
            self._config, self._function, self._parameters, 0
        )
        if status.value != 0 or stream.lost is not None:
            with stream.errors_named(f"launching {self._name}"):
                checked(f"the launch of {self._name} failed", (status,))
        if times is not None:
            times.end(stream)
        return CudaEvent(stream, stream.launched(self._name), times)


def _config(driver: Any, kernel: str, shape: LaunchShape) -> Any:
    """The driver's ``CUlaunchConfig``; DeviceError if a grid cannot be so large."""
    groups = [
        whole // local
        for whole, local in zip(shape.global_range, shape.local_range, strict=True)
    ]
    grid, block = ([*reversed(n), 1, 1][:3] for n in (groups, list(shape.local_range)))
    for axis, (blocks, most) in enumerate(zip(grid, _LARGEST_GRID, strict=True)):
        if blocks > most:
            dim = len(groups) - 1 - axis
            raise DeviceError(
                f"kernel {kernel!r} over {shape.global_range} in work-groups of "
                f"{shape.local_range} has {blocks:,} work-groups in dimension {dim}, and a GPU "
                f"takes {most:,} there; make that dimension the last one, or the work-groups "
                "larger in it"
            )
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = block
    config.sharedMemBytes = 0
    config.numAttrs = 0
    return config
