"""Which processors threads that wait for a runtime's work-groups run on.

Intel's CPU runtime has a thread for each processor but one, each bound to its own (CPU affinity),
and lets the thread that waits do the rest.  That one is not bound.  Where the system wakes it on
the processor of another, both share that one until the next tick at least, and a processor idles;
and work-groups that wait for each other wait for whole time slices.  So a thread that does nothing
else than wait leaves alone the processors to which others of the process are bound.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

THREADS = Path("/proc/self/task")


class KeptApart:
    """The calling thread, which makes calls that wait, and nothing else, until the process ends.

    A runtime starts its threads when it first has work for them, so this looks again at calls 1, 2,
    4, 8 and so on.  Nothing happens where the system does not tell, or no processor would remain.
    """

    __slots__ = ("_allowed", "_calls", "_given")

    def __init__(self) -> None:
        self._calls = 0
        self._allowed: set[int] | None = None
        """Where the thread may run, by whoever started the process or has changed that since."""
        self._given: set[int] | None = None
        """Where this has put it."""

    def begin(self) -> None:
        """A call begins."""
        if not self._calls:
            _kept_apart.add(threading.get_native_id())
        self._calls += 1
        if self._calls & (self._calls - 1) == 0:
            with suppress(AttributeError, OSError):  # not on this system, or not allowed
                self._keep_apart()

    def _keep_apart(self) -> None:
        now = os.sched_getaffinity(0)
        if now != self._given:
            self._allowed = now
        assert self._allowed is not None, "nothing is given before this"
        rest = self._allowed - bound_to()
        wanted = rest or self._allowed
        if wanted != now:
            os.sched_setaffinity(0, wanted)
        self._given = wanted


_kept_apart: set[int] = set()
"""The threads that are, by number."""


def bound_to() -> set[int]:
    """The processors to which single threads of the process are bound, by others than this."""
    found: set[int] = set()
    for name in {*os.listdir(THREADS)} - {str(thread) for thread in _kept_apart}:
        with suppress(OSError):  # it has ended
            processors = os.sched_getaffinity(int(name))
            if len(processors) == 1:
                found |= processors
    return found
