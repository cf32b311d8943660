"""Kernels with their arguments in the driver's form."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from fusionq.backends.base import Binding, DeviceEvent
from fusionq.backends.cuda.again import GraphLaunchedAgain
from fusionq.backends.cuda.devices import current
from fusionq.backends.cuda.events import CudaEvent, Times, wait_for_events
from fusionq.backends.cuda.graph import DriverGraph
from fusionq.backends.cuda.grid import grid_of
from fusionq.backends.cuda.program import CudaProgram
from fusionq.backends.cuda.runtime import checked, load_driver
from fusionq.backends.cuda.streams import Stream
from fusionq.backends.native_arguments import NativeArguments
from fusionq.base.errors import DeviceError
from fusionq.base.target import LaunchShape
from fusionq.ir.loops_alone import loops_alone
from fusionq.ir.walk import is_persistent

REPEATED = 20
"""Launches with the same arguments after which a launch becomes a graph: making one takes as long
as it saves in about so many (H100: 35 µs, and 2 µs)."""


class CudaLaunch:
    """A program bound to arguments and a launch shape.

    One that is repeated with the same arguments becomes a graph of one node, which costs the host
    less (H100: 2.6 instead of 4.8 µs).
    """

    __slots__ = (
        "_addresses", "_arguments", "_base", "_changed", "_config", "_driver", "_enqueue_graph",
        "_function", "_graph", "_grid", "_kernel", "_launch_kernel", "_parameters", "_shared_bytes",
        "_stream", "_turns", "loads_early", "name", "runs_at_once", "waits_itself",
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
        self._kernel = program.kernel
        self.name = program.kernel.name
        self._changed: list[CudaLaunch] | None = None
        self._turns = 0
        """Launches since a scalar has changed."""
        self._graph: DriverGraph | None = None
        self._arguments = NativeArguments(program.kernel, program.slots, bindings)
        values = self._arguments.values
        self._addresses = (ctypes.c_void_p * max(len(values), 1))(*map(ctypes.addressof, values))
        self._parameters = ctypes.addressof(self._addresses)
        self._driver = load_driver()
        self._grid = grid_of(self.name, shape)
        self._shared_bytes = program.shared_bytes
        stream.device.make_current()
        self._function = program.function_for(self._grid)
        if self._function is program.function and program.is_wide_for(bindings, shape):
            self._function = program.wide
            self._grid = self._grid.with_fewer(program.generated.neighbours)
        self._config = self._with_grid(self._driver.CUlaunchConfig())
        self._config.hStream = stream.native
        self.runs_at_once = is_persistent(program.kernel)
        self.waits_itself = program.waits_itself
        self.loads_early = program.loads_early
        attributes = []
        if self.runs_at_once:
            attributes.append(self._all_at_once())
        elif self.waits_itself and base is None and stream.is_own and not self.loads_early:
            # One that loads early may not begin before the end of what another list has launched.
            attributes.append(self._early())
        self._config.attrs = attributes
        self._config.numAttrs = len(attributes)
        self._launch_kernel = partial(
            self._driver.cuLaunchKernelEx, self._config, self._function, self._parameters, 0
        )
        self._enqueue_graph: Callable[[], int] | None = None
        """Of ``_graph``, while it has the present arguments."""

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> None:
        """Give scalar parameter ``name`` another value for the launches that follow.

        ArgumentError if an integer does not fit the parameter's type.
        """
        if not self._arguments.set_scalar(name, value):
            return
        if self._changed is not None:
            self._changed.append(self)
        self._enqueue_graph, self._turns = None, 0

    @property
    def blocks(self) -> int:
        """How many it launches."""
        return prod(self._grid.blocks)

    @property
    def work_groups(self) -> int:
        """Fewer than its shape has where a thread does several neighbouring work-items."""
        return self.blocks

    @property
    def loops_alone(self) -> bool:
        """See ``NodeLaunch``."""
        return loops_alone(self._kernel)

    def tell(self, changed: list[CudaLaunch]) -> None:
        """Append this to ``changed`` whenever a scalar is set."""
        self._changed = changed

    def launch(self, depends: Sequence[DeviceEvent] = ()) -> CudaEvent:
        """Enqueue; returns at once.  Events of other kinds of devices are waited for."""
        stream = self._stream
        device = stream.device
        if current.device is not device or device.has_neighbours:
            device.make_current()
        if depends:
            wait_for_events(stream, depends)
        if self._base is not None:
            return self._timed_launch()
        self._turns = turn = self._turns + 1
        if turn == REPEATED:
            self._become_graph()
        enqueue = self._enqueue_graph
        if enqueue is None:
            (status,) = self._launch_kernel()
        else:
            status = enqueue()
        if status or device.lost is not None:
            self._raise(self._driver.CUresult(int(status)))
        return CudaEvent(stream, stream.launched(self.name), None)

    def again(self) -> GraphLaunchedAgain | None:
        """Launches with the same arguments; None as long as this is no graph."""
        if self._graph is None or self._enqueue_graph is None or self._base is not None:
            return None
        return GraphLaunchedAgain(self._stream, self._graph, self.name, self._raise)

    def _timed_launch(self) -> CudaEvent:
        stream, times = self._stream, Times(self._base)
        times.start(stream)
        (status,) = self._launch_kernel()
        self._raise(status)
        times.end(stream)
        return CudaEvent(stream, stream.launched(self.name), times)

    def _raise(self, status: Any) -> None:
        if status == self._driver.CUresult.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
            raise DeviceError(
                f"{self.name} is a persistent kernel of {self._grid.blocks[0]:,} blocks that have "
                "to run at once, and the GPU has no room for so many, as where this process may "
                "use a part of it only; nothing was launched: use strategy='sequence'"
            )
        with self._stream.errors_named(f"launching {self.name}"):
            checked(f"the launch of {self.name} failed", (status,))

    def _become_graph(self) -> None:
        """Launch as a graph from now on, until a scalar changes."""
        stream = self._stream
        if self._graph is None and (stream.is_captured or not DriverGraph.has_room(stream.device)):
            return  # none can be made in a capture
        with stream.errors_named(f"preparing {self.name}"):
            if self._graph is None:
                self._graph = DriverGraph(stream.device, stream.native, [self])
            else:
                self._graph.update(0, self.node_parameters())
        self._enqueue_graph = self._graph.enqueue

    def node_parameters(self) -> Any:
        """The driver's ``CUDA_KERNEL_NODE_PARAMS``, with the arguments' present values."""
        parameters = self._with_grid(self._driver.CUDA_KERNEL_NODE_PARAMS())
        parameters.func = self._function
        parameters.kernelParams = self._parameters
        return parameters

    def _all_at_once(self) -> Any:
        """The driver's attribute of a launch that it refuses where not all blocks can be
        resident."""
        attribute = self._driver.CUlaunchAttribute()
        attribute.id = self._driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attribute.value.cooperative = 1
        return attribute

    def _early(self) -> Any:
        """The driver's attribute of a launch that may begin before the one before it has ended."""
        attribute = self._driver.CUlaunchAttribute()
        attribute.id = (
            self._driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        )
        attribute.value.programmaticStreamSerializationAllowed = 1
        return attribute

    def _with_grid(self, config: Any) -> Any:
        """``config`` of the driver, with grid, block and shared memory."""
        config.gridDimX, config.gridDimY, config.gridDimZ = self._grid.blocks
        config.blockDimX, config.blockDimY, config.blockDimZ = self._grid.threads
        config.sharedMemBytes = self._shared_bytes
        return config
