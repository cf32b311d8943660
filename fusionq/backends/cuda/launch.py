"""Kernels with their arguments in the driver's form."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusionq.backends.base import Binding, DeviceEvent
from fusionq.backends.cuda.events import CudaEvent, Times, wait_for_events
from fusionq.backends.cuda.grid import grid_of
from fusionq.backends.cuda.program import CudaProgram
from fusionq.backends.cuda.runtime import checked, load_driver
from fusionq.backends.cuda.streams import Stream
from fusionq.backends.native_arguments import NativeArguments
from fusionq.base.target import LaunchShape


class CudaLaunch:
    """A program bound to arguments and a launch shape."""

    __slots__ = (
        "_addresses", "_arguments", "_base", "_config", "_driver", "_function", "_grid",
        "_parameters", "_shared_bytes", "_stream", "has_changed", "name",
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
        self.name = program.kernel.name
        self.has_changed = False
        """Whether a scalar has, since a graph took the arguments."""
        self._arguments = NativeArguments(program.kernel, program.slots, bindings)
        values = self._arguments.values
        self._addresses = (ctypes.c_void_p * max(len(values), 1))(*map(ctypes.addressof, values))
        self._parameters = ctypes.addressof(self._addresses)
        self._driver = load_driver()
        self._grid = grid_of(self.name, shape)
        self._shared_bytes = program.shared_bytes
        stream.device.make_current()
        self._function = program.function_for(self._grid)
        self._config = self._with_grid(self._driver.CUlaunchConfig())
        self._config.hStream = stream.native
        self._config.numAttrs = 0

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> None:
        """Give scalar parameter ``name`` another value for the launches that follow.

        ArgumentError if an integer does not fit the parameter's type.
        """
        self._arguments.set_scalar(name, value)
        self.has_changed = True

    def launch(self, depends: Sequence[DeviceEvent] = ()) -> CudaEvent:
        """Enqueue; returns at once.  Events of other kinds of devices are waited for."""
        stream = self._stream
        stream.device.make_current()
        if depends:
            wait_for_events(stream, depends)
        times = None if self._base is None else Times(self._base)
        if times is not None:
            times.start(stream)
        (status,) = self._driver.cuLaunchKernelEx(
            self._config, self._function, self._parameters, 0
        )
        if status.value != 0 or stream.device.lost is not None:
            with stream.errors_named(f"launching {self.name}"):
                checked(f"the launch of {self.name} failed", (status,))
        if times is not None:
            times.end(stream)
        return CudaEvent(stream, stream.launched(self.name), times)

    def node_parameters(self) -> Any:
        """The driver's ``CUDA_KERNEL_NODE_PARAMS``, with the arguments' present values."""
        parameters = self._with_grid(self._driver.CUDA_KERNEL_NODE_PARAMS())
        parameters.func = self._function
        parameters.kernelParams = self._parameters
        return parameters

    def _with_grid(self, config: Any) -> Any:
        """``config`` of the driver, with grid, block and shared memory."""
        config.gridDimX, config.gridDimY, config.gridDimZ = self._grid.blocks
        config.blockDimX, config.blockDimY, config.blockDimZ = self._grid.threads
        config.sharedMemBytes = self._shared_bytes
        return config
