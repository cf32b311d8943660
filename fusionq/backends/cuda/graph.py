"""Executable CUDA graphs: launches that cost the host one call, and less than one launch does."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from fusionq.backends.cuda.devices import Device
from fusionq.backends.cuda.runtime import checked, driver_function, load_driver


class NodeLaunch(Protocol):
    """What a node of a graph launches."""

    @property
    def waits_itself(self) -> bool:
        """Whether its kernel waits for the one before it."""

    def node_parameters(self) -> Any:
        """The driver's ``CUDA_KERNEL_NODE_PARAMS``."""

    @property
    def loads_early(self) -> bool:
        """Whether it loads before that what no launch of the graph writes."""

    @property
    def runs_at_once(self) -> bool:
        """Whether all its blocks have to run at once."""

    @property
    def blocks(self) -> int:
        """How many it has."""

    @property
    def loops_alone(self) -> bool:
        """Whether its threads go through memory by themselves (``ir.loops_alone``)."""


class DriverGraph:
    """Launches in order, on one stream; their arguments are read now.

    A chain, whatever may overlap: on an H100 the driver takes less time for one, and the device for
    small kernels too.  A kernel that waits itself for the one before it may begin while that one's
    last blocks run; one that loads ahead of its wait, or is small beside it, as soon as all blocks
    of that one have begun.  The first of them begins when all that was launched before the graph
    has ended.
    """

    SMALL = 4
    """Of the multiprocessors, a launch of one block for so many is small: its blocks take no places
    that others need while they wait.  H100: a decode step with four of these in each of 16 layers
    1.264 in place of 1.281 ms, norms of 64 Ki elements 0.95 of the time; chains of launches that
    are alike are left alone, some of which would take 1.25.  Several blocks that begin so may lie
    on one multiprocessor, where the others' leave room first; that counts where their threads go
    through memory one by one, each a row: those are left alone, too (diffusion with row sums of
    4096 x 4096 elements 1.37 ms, 1.6 to 1.9 so)."""
    MOST = 1024
    """On one GPU; each takes some 115 KB of its memory."""

    __slots__ = ("_device", "_driver", "_executable", "_graph", "_nodes", "enqueue")

    def __init__(
        self,
        device: Device,
        native_stream: Any,
        launches: Sequence[NodeLaunch],
        around: tuple[Any, Any] | None = None,
    ) -> None:
        """``around``: events that are recorded before and behind the launches."""
        self._driver = driver = load_driver()
        self._device = device
        device.graphs += 1
        self._executable: Any = None
        device.make_current()
        self._graph = checked("a graph", driver.cuGraphCreate(0))
        self._nodes: list[Any] = []
        first = [] if around is None else [self._recording(around[0], [])]
        few = device.info.compute_units // self.SMALL
        blocks_before = 0
        for launch in launches:
            after = [] if self._nodes else first
            parameters = launch.node_parameters()
            added = driver.cuGraphAddKernelNode(self._graph, after, len(after), parameters)
            node = checked("a node of a graph", added)
            if launch.runs_at_once:
                checked("a node of a graph", _run_at_once(driver, node))
            for before in self._nodes[-1:]:
                edge = driver.CUgraphEdgeData()
                if launch.waits_itself:
                    is_small = launch.blocks <= few and launch.blocks < blocks_before
                    spreads = launch.blocks > 1 and launch.loops_alone
                    edge = _early(driver, launch.loads_early or (is_small and not spreads))
                added = driver.cuGraphAddDependencies(self._graph, [before], [node], [edge], 1)
                checked("an edge of a graph", added)
            self._nodes.append(node)
            blocks_before = launch.blocks
        if around is not None:
            self._recording(around[1], self._nodes[-1:])
        self._executable = checked("a graph", driver.cuGraphInstantiate(self._graph, 0))
        if around is not None:  # the first launch is timed; without this it takes 10 µs more
            checked("a graph", driver.cuGraphUpload(self._executable, native_stream))
        given = (ctypes.c_void_p.from_param(int(it)) for it in (self._executable, native_stream))
        # What the bindings look at takes them a tenth of a microsecond, and another to convert
        # numbers to pointers each time, so this takes no others than arguments made already.
        self.enqueue: Callable[[], int] = partial(driver_function("cuGraphLaunch"), *given)
        """Launches it; gives the driver's status as a number."""

    def _recording(self, event: Any, after: Sequence[Any]) -> Any:
        """A node that records ``event``."""
        add = self._driver.cuGraphAddEventRecordNode
        return checked("a node of a graph", add(self._graph, after, len(after), event))

    @classmethod
    def has_room(cls, device: Device) -> bool:
        """Whether one more may be made."""
        return device.graphs < cls.MOST

    def update(self, place: int, parameters: Any) -> None:
        """Let a node have other arguments in the launches that follow."""
        update = self._driver.cuGraphExecKernelNodeSetParams
        checked("a node of a graph", update(self._executable, self._nodes[place], parameters))

    def __del__(self) -> None:
        self._device.graphs -= 1
        try:
            self._device.make_current()
            if self._executable is not None:  # if it is in flight, once it has run
                self._driver.cuGraphExecDestroy(self._executable)
            self._driver.cuGraphDestroy(self._graph)
        except Exception:  # at the end of the process the driver, or this module, may be gone
            return


def _run_at_once(driver: Any, node: Any) -> Any:
    """Let all blocks of a node run at once, or none."""
    value = driver.CUkernelNodeAttrValue()
    value.cooperative = 1
    attribute = driver.CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
    return driver.cuGraphKernelNodeSetAttribute(node, attribute, value)


def _early(driver: Any, at_once: bool) -> Any:
    """The edge to a node that waits itself for the end of the other, and begins once all blocks of
    that have ended; ``at_once``: once all have begun, so that its blocks may take places from the
    other's.  For nodes without loads ahead of their wait that took lists of the corpus 1.04 of the
    time in the mean, up to 1.35 (H100)."""
    edge = driver.CUgraphEdgeData()
    edge.from_port = (
        driver.CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER
        if at_once
        else driver.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
    )
    edge.type = driver.CUgraphDependencyType.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.value
    return edge
