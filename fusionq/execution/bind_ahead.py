"""The launches of a candidate before one is wanted: bound to a list's arguments in the thread that
has loaded it, while the list runs as it did.

Who waits for a run waits outside of fusionq's lock, which this takes: so most of what it takes to
allocate, write and prepare is there when the candidate is tried, and costs its trial nothing.
"""

from __future__ import annotations

import weakref

from fusionq.backends.base import Backend
from fusionq.base.errors import FusionqError
from fusionq.base.target import FloatMode
from fusionq.cache.plan_cache import BuiltPlan
from fusionq.execution.binding import bind
from fusionq.memory.fusing_queues import LOCK
from fusionq.memory.storage import Storage
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import CallArguments, PreparedRun

MOST_WAIT = 0.1
"""Seconds until others have to let go of the lock; else the launches are bound when they are
wanted."""


class ArgumentsAhead:
    """What a list's launches are bound to, as long as its memory is there; keeps none alive."""

    def __init__(self, backend: Backend, pending: SubmissionList) -> None:
        self.backend = backend
        self.entries = (*pending.entries,)
        self._submitted = pending.submitted()
        self._values = list(pending.values)
        self._memory = [
            weakref.ref(held) if isinstance(held, Storage) else None for held in pending.memory
        ]
        """None for foreign arrays, whose addresses are the submissions' own."""

    def bound(self, built: BuiltPlan, fp: FloatMode) -> PreparedRun | None:
        """The launches of ``built``, for any thread; None where they have to be bound when they
        are wanted."""
        if not LOCK.acquire(timeout=MOST_WAIT):
            return None
        try:
            memory = [None if ref is None else ref() for ref in self._memory]
            if any(r is not None and m is None for r, m in zip(self._memory, memory, strict=True)):
                return None
            call = CallArguments.of(memory, (), self._values)
            run = PreparedRun(built, self._submitted, "memory", {})
            bind(self.backend, run, SubmissionList.of([*self.entries], call), fp)
            return run
        except FusionqError:  # who wants them meets it again
            return None
        finally:
            LOCK.release()
