"""Which queues are in fusion mode, and the lock that orders every change of a queue's state.

One lock for the whole process, because ending one queue's fusion mode can need another
queue's state, and because a buffer's finalizer may run at any point of any thread.  Nothing
but a finalizer waits for a device while holding it.
"""

from __future__ import annotations

from threading import RLock
from typing import Protocol

from fusionq.memory.region import Region

LOCK = RLock()


class FusingQueue(Protocol):
    """What memory and events need of a queue that is in fusion mode."""

    def uses(self, region: Region, stores: bool = True) -> bool:
        """Whether the list must run before a command that uses that memory (``stores``: that
        writes to it)."""

    def abort(self, cause: str) -> None:
        """Leave fusion mode, run the list unfused, warn with ``cause``."""


QUEUES: list[FusingQueue] = []
"""The queues in fusion mode."""


def end_fusion_where_used(region: Region, cause: str) -> None:
    """Abort the fusion mode of every queue whose list touches ``region``."""
    if QUEUES:
        with LOCK:
            for queue in tuple(QUEUES):
                if queue in QUEUES and queue.uses(region):
                    queue.abort(cause)
