"""How long runs take from their launch to their end, seen by those who wait for them.

The device's own times are of no use here: recording them costs every launch 0.7 µs, they leave out
what the host spends on launches, and a second queue that records would compute on the CPU device
without the thread that waits for the first.  So the host's clock is read where a run is launched,
and where somebody waits for it, or the next run comes along and finds it complete.  A time that is
not known well enough that way is none.

Where runs follow each other without a wait between them, as in loops, one of them cannot be timed
by itself: when the host sees its end it has launched the next one, which for lists of many launches
takes longer than the run.  So a sample has several runs there: its first begins when all before it
has ended, and its last is waited for.

GPUs record events that tell what runs took, without anybody who waits, and without what the host's
launches take, which for short lists is more than the kernels do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from fusionq.backends.base import DeviceEvent, Stopwatch
from fusionq.backends.wrapped_event import WrappedEvent
from fusionq.base.errors import DeviceError, MegakernelStalled

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

    def poll(self) -> bool:
        """Whether the run has ended, as far as can be told without waiting."""
        if self._told is None:
            return True
        now = clock()
        if not self._inner.complete:
            self._running_at = now
            return False
        self._ended_between(self._running_at, now)
        return True

    def forget(self) -> None:
        """Tell nobody."""
        self._told = None

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


class SampleTold(Told, Protocol):
    """Who is told what the runs of a sample took together."""

    def others_between(self) -> None:
        """The device had other work between them, or none for most of the time."""


MOST_IDLE = 0.9
"""Of a sample's time, that the device may have had nothing to do, as far as is known: then what the
program does between its runs takes most of it."""


class Sample:
    """Runs of one candidate, one behind the other, whose time together is wanted.

    What the program takes between them counts, but for the time from where it waits for one to
    where it launches the next.  ``is_awaited``: the launch of the last returns when that has ended;
    else the program's own wait shows its end.
    """

    __slots__ = (
        "_idle", "_last", "_launched", "_seconds", "_since", "_told", "has_begun", "is_awaited",
        "left",
    )  # fmt: skip

    def __init__(self, runs: int, told: SampleTold, is_awaited: bool) -> None:
        self.has_begun = False
        """Whether one has been launched."""
        self.left = runs
        """Runs that are still to be launched."""
        self.is_awaited = is_awaited
        self._told: SampleTold | None = told
        self._last: TimedEvent | None = None
        self._since: float | None = None
        """Since when one behind the other has run."""
        self._launched = 0.0
        """When the last was."""
        self._seconds = 0.0
        """What those took that are known to have ended."""
        self._idle = 0.0
        """What the device may have had nothing to do."""

    def launch(
        self,
        launch: Launch,
        depends: Sequence[DeviceEvent],
        before: DeviceEvent | None,
        prepared: float = 0.0,
    ) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
        """As ``launch``, of the next run; ``before`` is the event of what the queue launched
        before, ``prepared`` as of ``timed_launch``."""
        begun, last = clock(), self._last
        self.has_begun = True
        self.left -= 1
        if last is None:
            prepared = _while_idle(prepared, before)
            if depends or not (before is None or _has_ended(before)):
                return self._left_out(launch, depends)
            begun = clock()
        elif depends or before is not last:
            if self._told is not None:
                self._told.others_between()
            return self._left_out(launch, depends)
        else:
            if self._since is not None and last.complete:
                self._idle += begun - self._launched
            last.forget()
        is_first = self._since is None
        if self._since is None:
            self._since = begun - prepared
        events, inner = launch(depends)
        self._launched = clock()
        if inner is None:
            self.unknown(False)
            return events, inner
        event = self._last = TimedEvent(inner, self._since, self._launched, self)
        if inner.complete and is_first:
            event.has_ended_by(self._launched)
        elif not self.left and self.is_awaited:
            event.see_end()
        return [event if e is inner else e for e in events], event

    def _left_out(
        self, launch: Launch, depends: Sequence[DeviceEvent]
    ) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
        self.unknown(False)
        return launch(depends)

    def close(self) -> bool:
        """Whether somebody has waited for the last run; else this does."""
        if self._told is None or self._last is None:
            return True
        if not self._last.poll():
            self._last.see_end()
        return False

    def took(self, seconds: float) -> None:
        """See ``Told``: one has ended, and those before it."""
        self._since = None
        self._seconds += seconds
        told = self._told
        if not self.left and told is not None:
            self._told = None
            if self._idle > MOST_IDLE * self._seconds:
                told.others_between()
                told.unknown(False)
            else:
                told.took(self._seconds)

    def unknown(self, has_begun: bool) -> None:
        """See ``Told``: no sample is taken."""
        self.left = 0
        told, self._told = self._told, None
        if self._last is not None:
            self._last.forget()
        if told is not None:
            told.unknown(has_begun)

    def stalled(self, reason: str) -> None:
        """See ``Told``."""
        self.left = 0
        told, self._told = self._told, None
        if told is not None:
            told.stalled(reason)


class WatchedSample(Sample):
    """A sample whose time the device tells: from its first launch on, so that what the host does
    between its runs counts if they wait for that; and what it did for the first."""

    __slots__ = ("_prepared", "_watch")

    def __init__(self, runs: int, told: SampleTold, watch: Stopwatch) -> None:
        super().__init__(runs, told, False)
        self._watch = watch
        self._prepared = 0.0
        """Seconds for which the host prepared the first run, and the device had nothing to do."""

    def launch(
        self,
        launch: Launch,
        depends: Sequence[DeviceEvent],
        before: DeviceEvent | None,
        prepared: float = 0.0,
    ) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
        """As ``launch``, of the next run."""
        self.left -= 1
        if depends:
            return self._left_out(launch, depends)
        if not self.has_begun:
            self._prepared = _while_idle(prepared, before)
            self._watch.start()
            self.has_begun = True
        events, last = launch(())
        if not self.left:
            self._watch.stop()
        if last is None:
            self.unknown(False)
        return events, last

    def close(self) -> bool:
        """True: nobody has to wait."""
        return True

    def poll(self) -> bool:
        """Whether its runs have ended, or it is none, as far as can be told without waiting."""
        if self._told is None:
            return True
        if self.left:
            return False
        seconds = _told_by(self._watch)
        if seconds is None:
            return False
        told, self._told = self._told, None
        if seconds >= 0:
            told.took(self._prepared + seconds)
        else:
            told.unknown(False)
        return True


class WatchedRun:
    """A run of no sample, whose time the device tells, behind what the host did for it: for so many
    seconds, when the queue had launched what ends with ``before``, had it ``prepared`` the run."""

    __slots__ = ("_prepared", "_told", "_watch")

    def __init__(
        self,
        watch: Stopwatch,
        told: Told,
        before: DeviceEvent | None = None,
        prepared: float = 0.0,
    ) -> None:
        self._watch, self._told = watch, told
        self._prepared = _while_idle(prepared, before)

    def poll(self) -> bool:
        """Whether it has ended, as far as can be told without waiting."""
        seconds = _told_by(self._watch)
        if seconds is None:
            return False
        if seconds >= 0:
            self._told.took(self._prepared + seconds)
        else:
            self._told.unknown(False)
        return True


def _while_idle(prepared: float, before: DeviceEvent | None) -> float:
    """The seconds for which the host has ``prepared`` a run, if the device had nothing to do
    meanwhile; ``before`` is the event of what the queue launched before."""
    if not prepared or before is None or before.complete:
        return prepared
    return 0.0


def _told_by(watch: Stopwatch) -> float | None:
    """The seconds; None while the runs have not ended, -1 where they failed: who waits for them is
    told."""
    try:
        return watch.seconds()
    except DeviceError:
        return -1.0


def timed_launch(
    launch: Launch,
    depends: Sequence[DeviceEvent],
    before: DeviceEvent | None,
    told: Told,
    prepared: float = 0.0,
) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
    """As ``launch``, and ``told`` hears what it took, with the seconds for which the host has
    ``prepared`` it, if the device had nothing to do meanwhile; ``before`` is the event of what the
    queue launched before."""
    is_idle = (before is None or before.complete) and not depends
    begun = clock()
    events, last = launch(depends)
    launched = clock()
    if last is None:
        told.unknown(False)
        return events, last
    started: float | None = begun - prepared
    if not is_idle:
        ended = None
        if not depends and isinstance(before, TimedEvent):
            before.poll()
            ended = before.ended
        started = None if ended is None else max(begun, ended)
    event = TimedEvent(last, started, max(launched, started or launched), told)
    if last.complete:
        if is_idle:
            event.has_ended_by(launched)
        else:
            event.poll()
    return [event if e is last else e for e in events], event


def _has_ended(before: DeviceEvent) -> bool:
    """Whether ``before`` has, which is waited for: without a bound only if all before it had, so
    that it ends without anybody's help."""
    if isinstance(before, TimedEvent) and before.has_begun:
        before.see_end()
        return True
    end = clock() + MOST_WAIT
    while not before.complete:
        if clock() > end:
            return False
        time.sleep(0)
    return True
