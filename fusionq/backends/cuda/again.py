"""A graph that is launched once more as it is, with no more than that around the driver's call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusionq.backends.cuda.devices import current
from fusionq.backends.cuda.events import CudaEvent
from fusionq.backends.cuda.graph import Graph
from fusionq.backends.cuda.runtime import load_driver
from fusionq.backends.cuda.streams import Stream


class LaunchedAgain:
    """Launches of ``graph`` on ``stream``, which are called ``name`` in errors; ``failed`` raises
    what a status of the driver stands for.

    ``latest`` is the event of all launches on the stream up to the last one of these.
    """

    __slots__ = (
        "_always", "_device", "_enqueue", "_failed", "_graph", "_name", "_names", "_stream",
        "latest",
    )  # fmt: skip

    def __init__(
        self, stream: Stream, graph: Graph, name: str, failed: Callable[[Any], None]
    ) -> None:
        self._stream = stream
        self._device = stream.device
        self._always = stream.device.has_neighbours
        """Whether another GPU may be the thread's current one."""
        self._graph = graph
        self._enqueue = graph.enqueuing()
        self._name = name
        self._names = stream.names
        self._failed = failed
        self.latest = CudaEvent(stream, stream.submitted, None)

    def launch(self) -> int:
        """Enqueue; the launch's number."""
        device = self._device
        if current.device is not device or self._always:
            device.make_current()
        status = self._enqueue()
        if status:
            self._failed(load_driver().CUresult(status))
        if not self._names:  # all before has run
            self._names.append(self._name)
        stream = self._stream
        self.latest.number = stream.submitted = number = stream.submitted + 1
        return number

    def include_others(self) -> None:
        """Let ``latest`` stand for what has been launched by others since, too."""
        self.latest.number = self._stream.submitted
        self._names.append(self._name)

    def event_of(self, number: int) -> CudaEvent:
        """The event of one launch."""
        return CudaEvent(self._stream, number, None)
