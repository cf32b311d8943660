"""Launches as one CUDA graph, which costs the host one call however many they are."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusionq.backends.base import DeviceEvent
from fusionq.backends.cuda.events import CudaEvent, wait_for_events
from fusionq.backends.cuda.launch import CudaLaunch
from fusionq.backends.cuda.runtime import checked, load_driver
from fusionq.backends.cuda.streams import Stream
from fusionq.base.errors import ArgumentError


class CudaGraph:
    """``launches`` as the nodes of an executable graph, each ``after`` those of these positions;
    those that are not ordered may overlap.

    A scalar that changes is put into its node before the next launch of the graph.
    """

    __slots__ = ("_driver", "_executable", "_graph", "_launches", "_names", "_nodes", "_stream")

    def __init__(
        self, stream: Stream, launches: Sequence[CudaLaunch], after: Sequence[Sequence[int]]
    ) -> None:
        self._driver = driver = load_driver()
        self._stream = stream
        self._launches = launches
        self._names = ", ".join(launch.name for launch in launches)
        self._nodes: list[Any] = []
        self._executable: Any = None
        stream.device.make_current()
        self._graph = checked("a graph", driver.cuGraphCreate(0))
        for launch, before in zip(launches, after, strict=True):
            nodes = [self._nodes[k] for k in before]
            added = driver.cuGraphAddKernelNode(
                self._graph, nodes, len(nodes), launch.node_parameters()
            )
            self._nodes.append(checked(f"a graph's node for {launch.name}", added))
            launch.has_changed = False
        self._executable = checked("a graph", driver.cuGraphInstantiate(self._graph, 0))

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> None:
        """ArgumentError: scalars are set in the launches."""
        raise ArgumentError(f"{name} is a scalar of one of the graph's launches, not of the graph")

    def launch(self, depends: Sequence[DeviceEvent] = ()) -> CudaEvent:
        """Enqueue; returns at once."""
        stream, driver = self._stream, self._driver
        stream.device.make_current()
        if depends:
            wait_for_events(stream, depends)
        for node, launch in zip(self._nodes, self._launches, strict=True):
            if launch.has_changed:
                self._update(node, launch)
        (status,) = driver.cuGraphLaunch(self._executable, stream.native)
        if status.value != 0 or stream.device.lost is not None:
            with stream.errors_named("launching a graph"):
                checked("the launch of a graph failed", (status,))
        return CudaEvent(stream, stream.launched(self._names), None)

    def _update(self, node: Any, launch: CudaLaunch) -> None:
        update = self._driver.cuGraphExecKernelNodeSetParams
        changed = update(self._executable, node, launch.node_parameters())
        checked(f"a graph's node for {launch.name}", changed)
        launch.has_changed = False

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the driver may be gone at the end of the process
            self._stream.device.make_current()
            if self._executable is not None:  # if it is in flight, once it has run
                self._driver.cuGraphExecDestroy(self._executable)
            self._driver.cuGraphDestroy(self._graph)
