"""Which queues are in fusion mode, and the lock that orders every change of a queue's state.

One lock for the whole process, because ending one queue's fusion mode can need another
queue's state.

A finalizer may run at any point of any thread, also in the middle of a change.  So it only notes
what is to be done; that is done at the next safe point: at once where nothing of this package is at
work in the thread, else when the next public call begins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import RLock
from typing import Protocol

from fusionq.base.call_site import is_inside, told_as_warnings
from fusionq.base.changes import CHANGES
from fusionq.memory.region import MemoryRegion

LOCK = RLock()
acquire, release = LOCK.__enter__, LOCK.release
"""As `with LOCK`, which takes twice as long: where calls are counted in tenths of a microsecond,
``acquire`` is the first thing in a ``try``, whose handler asks ``is_owned`` where it cannot know
whether that has returned, since Ctrl-C may come then."""
is_owned: Callable[[], bool] = LOCK._is_owned  # type: ignore[attr-defined]  # as Condition asks


class FusingQueue(Protocol):
    """What memory and events need of a queue that is in fusion mode."""

    def uses(self, region: MemoryRegion, stores: bool = True) -> bool:
        """Whether the list must run before a command that uses that memory (``stores``: that
        writes to it)."""

    def abort(self, cause: str) -> None:
        """Leave fusion mode, run the list unfused, warn with ``cause``."""


QUEUES: list[FusingQueue] = []
"""The queues in fusion mode."""

ENDING: list[FusingQueue] = []
"""Those whose lists are being run, by whichever thread ended their fusion mode: they are no longer
in ``QUEUES``, and not all of the lists has been launched."""


NOTED: deque[Callable[[], object]] = deque()
"""What finalizers have noted."""


def note(action: Callable[[], object]) -> None:
    """Have ``action`` done at the next safe point; for finalizers, which call this directly."""
    NOTED.append(action)
    CHANGES.latest = object()
    if not is_inside(2) and LOCK.acquire(blocking=False):
        try:
            run_noted()
        finally:
            LOCK.release()


def run_noted() -> None:
    """A safe point: do what finalizers have noted."""
    with LOCK:
        while NOTED:
            with told_as_warnings():
                NOTED.popleft()()


def end_fusion_where_used(region: MemoryRegion, cause: str) -> None:
    """Abort the fusion mode of every queue whose list touches ``region``; behind it lists that
    another thread has ended have been launched."""
    if QUEUES or ENDING:
        with LOCK:
            for queue in tuple(QUEUES):
                if queue in QUEUES and queue.uses(region):
                    queue.abort(cause)
