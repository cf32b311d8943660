"""Several launches as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusionq.backends.base import DeviceEvent
from fusionq.backends.cuda.again import GraphLaunchedAgain
from fusionq.backends.cuda.events import CudaEvent, EventStopwatch, GraphStopwatch, wait_for_events
from fusionq.backends.cuda.graph import DriverGraph
from fusionq.backends.cuda.launch import CudaLaunch
from fusionq.backends.cuda.runtime import checked, load_driver
from fusionq.backends.cuda.streams import Stream
from fusionq.base.errors import ArgumentError


class RepeatedLaunches:
    """``launches``, in their order, as a CUDA graph.  Scalars that have been set in them are put
    into it before it is launched again."""

    __slots__ = ("_changed", "_graph", "_launches", "_names", "_stream", "_watch", "_watched")

    def __init__(self, stream: Stream, launches: Sequence[CudaLaunch]) -> None:
        self._stream = stream
        self._launches = launches
        self._names = ", ".join(launch.name for launch in launches)
        self._graph = DriverGraph(stream.device, stream.native, launches)
        self._changed: list[CudaLaunch] = []
        """Launches with scalars that the graph has not; they put themselves there."""
        for launch in launches:
            launch.tell(self._changed)
        self._watched: DriverGraph | None = None
        """The same with events around it."""
        self._watch: GraphStopwatch | None = None
        """Theirs."""

    def watched(self) -> EventStopwatch:
        """The stopwatch of the next launch."""
        watch = self._watch
        if watch is not None and watch.seconds() is None:  # it is running, or there is no room
            return EventStopwatch(self._stream)
        if watch is None and DriverGraph.has_room(self._stream.device):
            watch = GraphStopwatch(self._stream)
            stream = self._stream
            around = watch.events
            self._watched = DriverGraph(stream.device, stream.native, self._launches, around)
            self._watch = watch
        return watch or EventStopwatch(self._stream)

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> None:
        """ArgumentError: scalars are set in the launches."""
        raise ArgumentError(f"{name} is a scalar of one of several launches, and is set in that")

    def launch(self, depends: Sequence[DeviceEvent] = ()) -> CudaEvent:
        """Enqueue; returns at once."""
        stream = self._stream
        if stream.device.is_current_elsewhere:
            stream.device.make_current()
        if depends:
            wait_for_events(stream, depends)
        if self._changed:
            self._update()
        graph = self._graph
        if self._watch is not None and self._watch.is_next:
            assert self._watched is not None
            graph = self._watched
        status = graph.enqueue()
        if status or stream.device.lost is not None:
            self._raise(load_driver().CUresult(status))
        return CudaEvent(stream, stream.launched(self._names), None)

    def again(self) -> GraphLaunchedAgain | None:
        """Launches with the same arguments; None where a scalar has changed since the last."""
        if self._changed:
            return None
        return GraphLaunchedAgain(self._stream, self._graph, self._names, self._raise)

    def _raise(self, status: Any) -> None:
        with self._stream.errors_named(f"launching {self._names}"):
            checked(f"the launch of {self._names} failed", (status,))

    def _update(self) -> None:
        for launch in dict.fromkeys(self._changed):
            place, parameters = self._launches.index(launch), launch.node_parameters()
            self._graph.update(place, parameters)
            if self._watched is not None:
                self._watched.update(place, parameters)
        self._changed.clear()
