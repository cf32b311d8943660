"""A graph that is launched once more as it is, with no more than that around the driver's call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fusionq.backends.cuda.events import CudaEvent
from fusionq.backends.cuda.graph import DriverGraph
from fusionq.backends.cuda.runtime import load_driver
from fusionq.backends.cuda.streams import Stream


class GraphLaunchedAgain:
    """Launches of ``graph`` on ``stream``, which are called ``name`` in errors; ``failed`` raises
    what a status of the driver stands for.

    ``latest`` is the event of all launches on the stream up to the last one of these.
    """

    __slots__ = ("_failed", "_graph", "_name", "enqueue", "latest", "stream")

    def __init__(
        self, stream: Stream, graph: DriverGraph, name: str, failed: Callable[[Any], None]
    ) -> None:
        self.stream = stream
        self._graph = graph
        # A launch on a stream is one of the stream's context, whichever is the thread's; where
        # there are several GPUs it is made the thread's all the same, as for other launches.
        self.enqueue = graph.enqueue
        if stream.device.has_neighbours:
            self.enqueue = partial(_current, stream, self.enqueue)
        self._name = name
        self._failed = failed
        self.latest = CudaEvent(stream, stream.submitted, None)

    def enqueue_after(self, status: int) -> None:
        """Enqueue with the stream's context as the thread's, if ``status`` asks for that."""
        driver = load_driver()
        if status == driver.CUresult.CUDA_ERROR_INVALID_CONTEXT:
            status = _current(self.stream, self.enqueue)
        if status:
            self._failed(driver.CUresult(status))

    def include_others(self) -> None:
        """Let ``latest`` stand for what has been launched by others since, too."""
        self.latest.number = self.stream.submitted
        self.stream.repeats(self._name)

    def event_of(self, number: int) -> CudaEvent:
        """The event of one launch."""
        return CudaEvent(self.stream, number, None)


def _current(stream: Stream, enqueue: Callable[[], int]) -> int:
    """``enqueue`` with the stream's context as the thread's."""
    stream.device.make_current()
    return enqueue()
