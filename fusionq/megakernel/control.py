"""The control memory of a persistent kernel on one queue: the epochs of its launches, and stalls.

Launches for different arrays share it, where their schedule is the same: those of one queue do not
overlap, so that epochs rise in the order in which the launches run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fusionq.backends.base import Allocation, Backend, DeviceEvent
from fusionq.backends.interruptible import keep_until_run
from fusionq.backends.wrapped_event import WrappedEvent
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.errors import MegakernelStalled
from fusionq.base.target import Target
from fusionq.codegen import queue_layout as q
from fusionq.megakernel.counters import completions, producer_of
from fusionq.megakernel.schedule import Schedule

clock: Callable[[], float] = time.monotonic

Check: TypeAlias = Callable[[], None]
"""Raises MegakernelStalled if a launch that has ended has not run to its end."""

WORD = 1 << 32


class Stall(NamedTuple):
    """A wait that ran out: in the launch of this ``epoch``, with the ``text`` that says where."""

    epoch: int
    text: str


class _Life:
    """Launches from when the control memory was new to when it is made new the next time."""

    __slots__ = ("ended", "stall", "told")

    def __init__(self) -> None:
        self.ended = False
        """Whether ``stall`` is all that there is to know of them."""
        self.stall: Stall | None = None
        """The wait that ran out in one of them, as far as anybody has looked.  That launch is not
        complete, and those behind it have done nothing."""
        self.told = False
        """Whether somebody has been told of it."""


class ControlMemory:
    """The schedule and the control memory of a persistent kernel's launches on one queue.

    Each launch has an epoch of its own, so that nothing has to be reset: the host gives it, but
    where the workers count launches themselves.  The memory is made new behind a stall, where
    epochs come to their end, and where nobody knows whether a launch has been enqueued.
    """

    __slots__ = (
        "_backend", "_in_doubt", "_labels", "_life", "_name", "_plan", "epoch", "last", "memory",
        "schedule", "stalls",
    )  # fmt: skip

    def __init__(
        self, backend: Backend, name: str, labels: Sequence[str], plan: Schedule, target: Target
    ) -> None:
        self._backend, self._name, self._labels, self._plan = backend, name, labels, plan
        self.schedule, _ = backend.filled(plan.words.nbytes, plan.words.view(np.uint8))
        self.memory, filled = backend.filled(plan.control_words * 4)
        idle = target.idle_checks * target.polls_between_checks
        self.stalls = _StallRecord(self.memory, target.control_line, min(idle, target.spin_limit))
        self.epoch = 0
        """That of the latest launch."""
        self.last: DeviceEvent | None = filled
        """The event of the latest launch; before one, of what fills the memory."""
        self._life = _Life()
        self._in_doubt = False
        """Whether a launch has got an epoch of which nobody knows whether it was enqueued."""

    def begin(self) -> int:
        """The epoch of the launch that is enqueued next; ``launched`` is told its event.
        MegakernelStalled if one before has stalled and nobody has been told."""
        is_over = self._in_doubt or self._life.stall is not None or self.epoch == WORD - 1
        if is_over or (self.epoch and self.stalls.is_set(self.last)):
            self._renew()
        self._in_doubt = True
        self.epoch += 1
        return self.epoch

    def launched(self, event: DeviceEvent) -> Check:
        """``event`` is that of the launch that has begun; what raises how that has ended."""
        self.last = event
        self._in_doubt = False
        return partial(self._check, self._life, self.epoch)

    def _renew(self) -> None:
        """New control memory, when no launch uses the old one any longer."""
        self._in_doubt = True
        self._backend.wait()
        life = self._life
        if not life.ended:
            self._look(life)
            life.ended = True  # before the memory says nothing of it any longer
        self.memory.zero()
        self.epoch, self._life, self._in_doubt = 0, _Life(), False
        if life.stall is not None and not life.told:
            life.told = True
            raise MegakernelStalled(
                f"{life.stall.text} The results of the list that did so are not complete, nor "
                f"those of the lists behind it, and this one has not run. {_ADVICE}"
            )

    def _check(self, life: _Life, epoch: int) -> None:
        """Raise MegakernelStalled if the launch of that ``epoch``, which has ended, has stalled or
        come behind one that has."""
        if life.stall is None and not life.ended:
            self._look(life)
        stall = life.stall  # of a life that has ended meanwhile, too
        if stall is not None and epoch >= stall.epoch:
            life.told = True
            raise MegakernelStalled(
                f"{stall.text} The results of this list are not complete. {_ADVICE}"
            )

    def _look(self, life: _Life) -> None:
        """Find out whether one of the launches has stalled."""
        if not self.stalls.may_be_set:
            return
        words = self.stalls.words(self.last)
        if words[q.FLAG]:
            found = [int(word) for word in words]
            if not life.ended:  # else they may be those of new memory
                life.stall = self._stall_of(found)

    def _stall_of(self, words: Sequence[int]) -> Stall:
        stage, tile, counter = words[q.STALL_STAGE], words[q.STALL_TILE], words[q.STALL_COUNTER]
        expected, seen = words[q.STALL_EXPECTED], words[q.STALL_SEEN]
        producer = producer_of(self._plan.counters, counter)
        epoch = 1
        if producer is None:
            producer = stage
        else:
            of_one = completions(self._plan.counters, self._plan.stages, producer, counter)
            epoch = epoch_of(expected, of_one, self.epoch)
        return Stall(
            epoch,
            f"{self._name}: stage {stage} ({self._labels[stage]}), tile {tile}, gave up waiting "
            f"for stage {producer} ({self._labels[producer]}): barrier counter "
            f"{counter - q.FIRST_COUNTER} was at {seen} of {expected}.",
        )

    def __del__(self) -> None:
        """The schedule and the control memory outlive the launches that use them; at the end of the
        process all have run, and what asks may be gone."""
        last = getattr(self, "last", None)
        if last is not None and not sys.is_finalizing() and not last.complete:
            keep_until_run(last, self.schedule, self.memory)


_ADVICE = (
    "The queue can be used on; a device that is very busy may need strategy='sequence'. If it "
    "happens again, please report it with the list."
)


def epoch_of(expected: int, completions: int, latest: int) -> int:
    """The first launch, up to the ``latest``, in which a counter that has so many ``completions``
    in each is to come to ``expected``, modulo a word's size; 1 where there is none."""
    shift = (completions & -completions).bit_length() - 1
    if expected & ((1 << shift) - 1):
        return 1
    size = WORD >> shift
    epoch = (expected >> shift) * pow(completions >> shift, -1, size) % size or size
    return epoch if epoch <= latest else 1


class _StallRecord:
    """What the control memory says of a wait that ran out.

    Where the host does not see that memory, to ask takes as long as many a launch, and no wait runs
    out before it has polled ``fewest`` times: nobody asks again within that time, but where the
    limit is another one (``is_quick``).
    """

    __slots__ = ("_asked", "_checked", "_control", "_least", "_line", "_shared", "is_quick")

    def __init__(self, control: Allocation, line: int, fewest: int) -> None:
        self._control, self._line = control, line
        view = control.host_view()
        words = None if view is None else view.view(np.uint32)
        self._shared = None if words is None else words[q.STALL * line :][:line]
        self._checked: DeviceEvent | None = None
        """The last of the launches that are known not to have stalled."""
        self._least = fewest * CODE_LIMITS.shortest_poll
        self._asked = clock()
        """When all launches until then are known not to have stalled."""
        self.is_quick = False

    @property
    def may_be_set(self) -> bool:
        """Whether a launch may have stalled since it is known that none has."""
        return self._shared is not None or self.is_quick or clock() - self._asked >= self._least

    def is_set(self, last: DeviceEvent | None) -> bool:
        """Whether a launch up to ``last`` is known to have stalled.  Where the host does not see
        the memory, one that still runs is not asked: its event tells."""
        if self._shared is not None:
            return bool(self._shared[q.FLAG])
        if last is None or last is self._checked or not self.may_be_set or not last.complete:
            return False
        return bool(self.words(last)[q.FLAG])

    def words(self, last: DeviceEvent | None) -> npt.NDArray[np.uint32]:
        """The record, as launches up to ``last`` leave it if they have run."""
        if self._shared is not None:
            return self._shared
        have_run = last is not None and last.complete
        asked = clock()
        nbytes = 4 * self._line
        words = self._control.fetched(nbytes * q.STALL, nbytes).view(np.uint32)
        if have_run and not words[q.FLAG]:
            self._checked, self._asked = last, asked
        return words


class PersistentEvent(WrappedEvent):
    """The event of a persistent kernel's launch, or of the last of launches with such among them;
    see ``DeviceEvent``."""

    __slots__ = ("checks",)

    def __init__(self, inner: DeviceEvent, checks: Sequence[Check]) -> None:
        super().__init__(inner)
        self.checks = checks
        """What is still to be asked."""

    def wait(self) -> None:
        """Block until the launch has run; MegakernelStalled, once, if a wait inside it ran out."""
        self._inner.wait()
        checks, self.checks = self.checks, ()
        for check in checks:
            check()


def last_of(events: Sequence[DeviceEvent | None]) -> DeviceEvent | None:
    """The event of the last launch of several, which raises how all of them have ended."""
    there = [event for event in events if event is not None]
    checks = [check for e in there if isinstance(e, PersistentEvent) for check in e.checks]
    if not checks:
        return there[-1] if there else None
    last = there[-1]
    return PersistentEvent(last.inner if isinstance(last, PersistentEvent) else last, checks)
