"""Kernels with their arguments in the driver's form."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
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
from fusionq.backends.cuda.launch_form import LaunchForm, form_of
from fusionq.backends.cuda.program import CudaProgram
from fusionq.backends.cuda.runtime import checked, load_driver
from fusionq.backends.cuda.streams import Stream
from fusionq.backends.native_arguments import NativeArguments
from fusionq.base.errors import DeviceError
from fusionq.base.target import LaunchShape
from fusionq.ir.loops_alone import loops_alone

REPEATED = 20
"""Launches with the same arguments after which a launch becomes a graph: making one takes as long
as it saves in about so many (H100: 35 µs, and 2 µs)."""


class CudaLaunch:
    """A program bound to arguments and a launch shape.

    One that is repeated with the same arguments becomes a graph of one node, which costs the host
    less (H100: 2.6 instead of 4.8 µs).  That begins when all before it has ended, though, where a
    kernel that waits itself is there by then: 1.3 to 1.8 µs sooner.  So while the host is ahead of
    the device such a launch stays what it is, unless somebody launches it ``again``.
    """

    __slots__ = (
        "_addresses", "_aligned", "_arguments", "_base", "_changed", "_driver", "_enqueue_graph",
        "_form", "_graph", "_is_asked", "_launch_kernel", "_narrow", "_overlaps", "_parameters",
        "_pointers", "_program", "_stream", "_turns", "_wide", "loads_early", "name",
        "runs_at_once", "waits_itself",
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
        self._program = program
        self.name = program.kernel.name
        self._driver = load_driver()
        self.runs_at_once = program.runs_at_once
        self.waits_itself = program.waits_itself
        self.loads_early = program.loads_early
        # One that loads early may not begin before the end of what another list has launched.
        early = self.waits_itself and base is None and stream.is_own and not self.loads_early
        self._overlaps = early
        """Whether its blocks may be there before the launch before it has ended."""
        self._be_over(bindings, shape)
        arguments = NativeArguments(program.kernel, program.slots, bindings)
        self._pointers: list[tuple[Any, int]] = []
        """The arrays' addresses among the arguments of a copy, with the arrays' places."""
        self._has(arguments)

    def _be_over(self, bindings: Sequence[Binding], shape: LaunchShape) -> None:
        """Have the forms of a launch over ``shape`` with these ``bindings``."""
        stream, program, early = self._stream, self._program, self._overlaps
        grid = grid_of(self.name, shape)
        stream.device.make_current()
        function = program.function_for(grid)
        self._narrow = form_of(stream, program, function, grid, early)
        self._wide: LaunchForm | None = None
        """Of the function whose work-items do several neighbours each, with as many fewer blocks:
        where all arrays begin at multiples of its vectors."""
        self._aligned: dict[str, int] = {}
        """What these multiples are, in bytes, by parameter."""
        if function is program.function:
            aligned = program.vector_bytes(bindings, shape)
            if aligned is not None:
                grid = grid.with_fewer(program.generated.neighbours)
                self._wide = form_of(stream, program, program.wide, grid, early)
                self._aligned = aligned

    def _has(self, arguments: NativeArguments) -> None:
        """``arguments`` are those of the launches that follow."""
        self._changed: list[CudaLaunch] | None = None
        self._turns = 0
        """Launches since an argument has changed."""
        self._graph: DriverGraph | None = None
        self._enqueue_graph: Callable[[], int] | None = None
        """Of ``_graph``, while it has the present arguments."""
        self._is_asked = False
        """Whether somebody wants to launch it again as it is, which takes a graph."""
        self._arguments = arguments
        values = arguments.values
        self._addresses = (ctypes.c_void_p * max(len(values), 1))(*map(ctypes.addressof, values))
        self._parameters = ctypes.addressof(self._addresses)
        self._choose_form()

    def _choose_form(self) -> None:
        """Launch what the arrays' alignment allows."""
        self._form = form = self._narrow
        if self._wide is not None:
            own = self._arguments.addresses()
            aligned = self._aligned.items()
            if not any([own[name].value % size for name, size in aligned if name in own]):
                self._form = form = self._wide
        self._launch_kernel = partial(
            self._driver.cuLaunchKernelEx, form.config, form.function, self._parameters, 0
        )

    def copy(self, places: Mapping[str, int]) -> CudaLaunch:
        """The same launch, which takes other arguments by itself; ``places``: of its arrays, by
        parameter, among the addresses that it moves to."""
        other = object.__new__(CudaLaunch)
        other._stream, other._base, other._driver = self._stream, self._base, self._driver
        other._program, other.name = self._program, self.name
        other.runs_at_once, other.waits_itself = self.runs_at_once, self.waits_itself
        other.loads_early, other._overlaps = self.loads_early, self._overlaps
        other._narrow, other._wide, other._aligned = self._narrow, self._wide, self._aligned
        arguments = self._arguments.copy()
        other._pointers = arguments.pointers(places)
        other._has(arguments)
        return other

    def move(self, addresses: Sequence[int | None]) -> None:
        """Have the arrays of a copy at other ``addresses`` in the launches that follow."""
        self._arguments.move(self._pointers, addresses)
        if self._wide is not None:
            self._choose_form()
        self._have_changed()

    def resize(self, arguments: Sequence[Binding], shape: LaunchShape) -> bool:
        """See ``ResizableLaunch``."""
        program = self._program
        self._be_over(arguments, shape)
        self._arguments.bind(program.kernel, program.slots, arguments)
        self._choose_form()
        self._have_changed()
        return True

    def _have_changed(self) -> None:
        """The arguments have changed."""
        if self._changed is not None:
            self._changed.append(self)
        self._enqueue_graph, self._turns = None, 0

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> None:
        """Give scalar parameter ``name`` another value for the launches that follow.

        ArgumentError if an integer does not fit the parameter's type.
        """
        if self._arguments.set_scalar(name, value):
            self._have_changed()

    @property
    def blocks(self) -> int:
        """How many it launches."""
        return prod(self._form.grid.blocks)

    @property
    def work_groups(self) -> int:
        """Fewer than its shape has where a thread does several neighbouring work-items."""
        return self.blocks

    @property
    def loops_alone(self) -> bool:
        """See ``NodeLaunch``."""
        return loops_alone(self._program.kernel)

    def tell(self, changed: list[CudaLaunch]) -> None:
        """Append this to ``changed`` whenever an argument changes."""
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
            if self._overlaps and not self._is_asked and not stream.is_idle:
                self._turns = 0  # it is asked again later
            else:
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
        self._is_asked = True
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
                f"{self.name} is a persistent kernel of {self._form.grid.blocks[0]:,} blocks that "
                "have to run at once, and the GPU has no room for so many, as where this process "
                "may use a part of it only; nothing was launched: use strategy='sequence'"
            )
        with self._stream.errors_named(f"launching {self.name}"):
            checked(f"the launch of {self.name} failed", (status,))

    def _become_graph(self) -> None:
        """Launch as a graph from now on, until an argument changes."""
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
        return self._form.node_parameters(self._parameters)
