"""The completion of launches, and the driver's events that record when they ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusionq.backends.base import DeviceEvent
from fusionq.backends.cuda.runtime import checked, load_driver
from fusionq.backends.cuda.streams import Stream, StreamWork


class CudaEvent:
    """The completion of one launch, known by its number on its stream."""

    __slots__ = ("_times", "number", "stream")

    native = None

    def __init__(self, stream: Stream, number: int, times: Times | None) -> None:
        self.stream = stream
        self.number = number
        self._times = times

    def wait(self) -> None:
        """Block until the launch has run, and what was launched behind it so far; other Python
        threads go on meanwhile."""
        if self.stream.completed < self.number:
            self.stream.wait()

    @property
    def complete(self) -> bool:
        """Whether the launch has run; False as long as a later one of its queue has not."""
        return self.stream.completed >= self.number or self.stream.is_idle

    def times(self) -> tuple[int, int] | None:
        """When the device started and ended the launch, in nanoseconds; None where the queue
        records no times."""
        self.wait()
        return None if self._times is None else self._times.read()


class _EventPair:
    """Two events of the driver, of a start and an end, which go with this."""

    __slots__ = ("_begin", "_end")

    def __init__(self) -> None:
        self._begin, self._end = new_event(), new_event()

    def __del__(self) -> None:
        try:
            for event in (self._begin, self._end):
                load_driver().cuEventDestroy(event)
        except Exception:  # at the end of the process the driver, or this module, may be gone
            return


class Times(_EventPair):
    """The driver's events around a launch; ``base`` is time 0."""

    __slots__ = ("_base",)

    def __init__(self, base: Any) -> None:
        super().__init__()
        self._base = base

    def start(self, stream: Stream) -> None:
        """The launch comes next."""
        checked("an event", load_driver().cuEventRecord(self._begin, stream.native))

    def end(self, stream: Stream) -> None:
        """The launch came last."""
        checked("an event", load_driver().cuEventRecord(self._end, stream.native))

    def read(self) -> tuple[int, int]:
        """Start and end, once both have happened."""
        driver = load_driver()
        since = [
            checked("a launch's time", driver.cuEventElapsedTime(self._base, event))
            for event in (self._begin, self._end)
        ]
        return round(since[0] * 1e6), round(since[1] * 1e6)


class EventStopwatch(_EventPair):
    """The driver's events around launches on a stream."""

    __slots__ = ("_stream",)

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._stream = stream

    @property
    def events(self) -> tuple[Any, Any]:
        """The driver's events of the start and the end."""
        return self._begin, self._end

    def start(self) -> None:
        """They come next."""
        checked("an event", load_driver().cuEventRecord(self._begin, self._stream.native))

    def stop(self) -> None:
        """They came last."""
        checked("an event", load_driver().cuEventRecord(self._end, self._stream.native))

    def seconds(self) -> float | None:
        """What they took; None while they have not run."""
        driver = load_driver()
        self._stream.device.make_current()
        (status,) = driver.cuEventQuery(self._end)
        if status == driver.CUresult.CUDA_ERROR_NOT_READY:
            return None
        with self._stream.errors_named("timing launches"):
            checked("the launches failed", (status,))
            taken = checked("their time", driver.cuEventElapsedTime(self._begin, self._end))
        return float(taken) * 1e-3


class GraphStopwatch(EventStopwatch):
    """Events that a graph records, behind what the host's launch of it takes."""

    __slots__ = ("is_next",)

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self.is_next = False
        """Whether the graph comes next."""

    def start(self) -> None:
        """The graph comes next."""
        self.is_next = True

    def stop(self) -> None:
        """It came last."""
        self.is_next = False

    def seconds(self) -> float | None:
        """What it took; None while it has not run."""
        return None if self.is_next else super().seconds()


def new_event() -> Any:
    """An event of the driver that records times."""
    driver = load_driver()
    return checked("an event", driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DEFAULT))


def wait_for_events(stream: Stream, events: Sequence[DeviceEvent]) -> None:
    """Let what is launched on ``stream`` from now on run after ``events``; those of other devices
    are waited for here."""
    for event in events:
        if isinstance(event, StreamWork):
            stream.wait_for(event)
        elif not isinstance(event, CudaEvent) or event.stream.device is not stream.device:
            event.wait()
        elif event.stream is not stream:
            stream.wait_for(event.stream)
