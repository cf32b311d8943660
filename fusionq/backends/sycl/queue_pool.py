"""SYCL queues that are used again.

The SYCL runtime keeps 11.9 kB for each queue that has ever launched something, also when the queue
is gone (dpctl 0.22.1 with oneAPI 2026.0, measured without fusionq); launches on one queue, nothing.
So queues of backends that are gone serve the next ones, unless somebody else may hold them.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from fusionq.backends.sycl.devices import queue_for

_idle: dict[tuple[Any, bool], deque[Any]] = {}


class PooledQueue:
    """A ``dpctl.SyclQueue`` for as long as this object lives; ``target`` and ``profiling`` as of
    ``queue_for``, which raises as there.

    ``is_shared``: others may use the queue later, so it does not serve again.
    """

    def __init__(self, target: Any, profiling: bool) -> None:
        self._pool: deque[Any] | None = None
        self.is_shared = not (target is None or isinstance(target, str))
        key = (target, profiling)
        if not self.is_shared:
            self._pool = _idle.setdefault(key, deque())
        try:
            self.queue = self._pool.pop() if self._pool else queue_for(target, profiling)
        except IndexError:  # another thread took the last one
            self.queue = queue_for(target, profiling)

    def __del__(self) -> None:
        if self._pool is not None and not self.is_shared and hasattr(self, "queue"):
            self._pool.append(self.queue)
