"""How long runs take from their launch to their end, seen by those who wait for them.

The device's own times are of no use here: recording them costs every launch 0.7 µs, they leave out
what the host spends on launches, and a second queue that records would compute on the CPU device
without the thread that waits for the first.  So the host's clock is read where a run is launched,
and where somebody waits for it, or the next run comes along and finds it complete.  A time that is
not known well enough that way is none.

Where runs follow each other without a wait between them, as in loops, the device begins the next
at once, and its threads stay awake: a run takes 40 µs there that takes 70 where each is waited for.
So who is to compare runs (``in_turn``) launches the next one, and then waits for the end of the one
before, which is when the next begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from fusionq.backends.base import DeviceEvent
from fusionq.backends.wrapped_event import WrappedEvent
from fusionq.base.errors import MegakernelStalled

Launch: TypeAlias = Callable[
    [Sequence[DeviceEvent]], tuple[Sequence[DeviceEvent | None], DeviceEvent | None]
]
"""Enqueues behind some events; the events of what it enqueues, and the last of them."""

clock: Callable[[], float] = time.perf_counter

ACCURACY = 1.25
"""A time is known if the greatest that it may be is not more than so many times the least."""

MOST_WAIT = 0.1
"""Seconds that a launch waits for what it did not see begin: who knows what that waits for."""


class Told(Protocol):
    """Who is told what a run took."""

    def took(self, seconds: float) -> None:
        """That many seconds."""

    def unknown(self, has_begun: bool) -> None:
        """Nobody knows; ``has_begun``: when it began is known, but not when it ended."""

    def stalled(self, reason: str) -> None:
        """It has not run to its end."""


class TimedEvent(WrappedEvent):
    """The event of a run whose time is wanted; see ``DeviceEvent``."""

    __slots__ = ("_error", "_running_at", "_started", "_told", "ended")

    def __init__(self, inner: DeviceEvent, started: float | None, launched: float, told: Told):
        super().__init__(inner)
        self._started = started
        """When the run began; None where that is not known."""
        self._running_at = launched
        """When it was last known to run."""
        self._told: Told | None = told
        self._error: MegakernelStalled | None = None
        """That nobody has been told of."""
        self.ended: float | None = None
        """When it ended, where that is known."""

    @property
    def has_begun(self) -> bool:
        """Whether all before it is known to have ended, so that it ends without anybody's help."""
        return self._started is not None

    def wait(self) -> None:
        """Block until the run has ended; MegakernelStalled as the event behind it."""
        self.see_end()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def see_end(self) -> None:
        """Block until the run has ended, however it did."""
        begun = clock()
        was_complete = self._inner.complete
        try:
            self._inner.wait()
        except MegakernelStalled as error:
            self._error = error
            told, self._told = self._told, None
            if told is not None:
                told.stalled(next(iter(str(error).splitlines()), "a wait ran out"))
            return
        if was_complete:
            self._ended_between(self._running_at, begun)
        else:
            now = clock()
            self._ended_between(now, now)

    def look(self) -> bool:
        """Whether the run has ended, as far as can be told without waiting."""
        if self._told is None:
            return True
        now = clock()
        if not self._inner.complete:
            self._running_at = now
            return False
        self._ended_between(self._running_at, now)
        return True

    def has_ended_by(self, launched: float) -> None:
        """It had when it was launched."""
        self._ended_between(launched, launched)

    def _ended_between(self, earliest: float, latest: float) -> None:
        told, self._told = self._told, None
        if told is None:  # another thread was faster
            return
        started = self._started
        if started is None or latest - started > ACCURACY * (earliest - started):
            told.unknown(started is not None)
        else:
            self.ended = latest
            told.took(latest - started)
            return
        if earliest == latest:
            self.ended = latest


def timed_launch(
    launch: Launch,
    depends: Sequence[DeviceEvent],
    before: DeviceEvent | None,
    told: Told,
    in_turn: bool = False,
) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
    """As ``launch``, and ``told`` hears what it took; ``before`` is the event of what the queue
    launched before.  ``in_turn``: return when that has ended."""
    is_idle = (before is None or before.complete) and not depends
    begun = clock()
    events, last = launch(depends)
    launched = clock()
    if last is None:
        told.unknown(False)
        return events, last
    started: float | None = begun
    if not is_idle:
        ended = None if depends else _end_of(before, in_turn)
        started = None if ended is None else max(begun, ended)
    event = TimedEvent(last, started, max(launched, started or launched), told)
    if last.complete:
        if is_idle:
            event.has_ended_by(launched)
        else:
            event.look()
    return [event if e is last else e for e in events], event


def _end_of(before: DeviceEvent | None, is_awaited: bool) -> float | None:
    """When ``before``, which ran a moment ago, ended; None where that is not known."""
    if isinstance(before, TimedEvent):
        if is_awaited and before.has_begun:
            before.see_end()
        else:
            before.look()
        if before.ended is not None or before.has_begun:
            return before.ended
    if not is_awaited or before is None:
        return None
    end = clock() + MOST_WAIT
    while not before.complete:
        if clock() > end:
            return None
        time.sleep(0)
    return clock()
