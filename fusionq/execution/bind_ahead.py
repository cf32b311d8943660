"""The launches of a candidate before one is wanted: bound to a list's arguments in the thread that
has loaded it, while the list runs as it did.

Who waits for a run waits outside of fusionq's lock, which this takes: so most of what it takes to
allocate, write and prepare is there when the candidate is tried, and costs its trial nothing.
No array's memory is allocated or moves for it: what is not where it was is left to the trial.
"""

from __future__ import annotations

import weakref

from fusionq.backends.base import Backend
from fusionq.base.errors import FusionqError
from fusionq.base.target import FloatMode
from fusionq.cache.plan_cache import BuiltPlan
from fusionq.execution.binding import bind, parameters_of
from fusionq.memory.fusing_queues import LOCK
from fusionq.memory.storage import Storage
from fusionq.submission.call_arguments import CallArguments
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun

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
            (weakref.ref(held), held.address) if isinstance(held, Storage) else None
            for held in pending.memory
        ]
        """Each with where it was; None for foreign arrays, whose addresses are the submissions'
        own."""

    def bound(self, built: BuiltPlan, fp: FloatMode) -> PreparedRun | None:
        """The launches of ``built``, for any thread; None where they have to be bound when they
        are wanted."""
        if not LOCK.acquire(timeout=MOST_WAIT):
            return None
        try:
            memory = [None if known is None else known[0]() for known in self._memory]
            call = CallArguments.of(memory, (), self._values)
            pending = SubmissionList.of([*self.entries], call)
            if not all([self._is_in_place(k, memory[k]) for k in self._used_by(built, pending)]):
                return None
            run = PreparedRun(built, self._submitted, "memory", {})
            bind(self.backend, run, pending, fp)
            return run
        except FusionqError:  # who wants them meets it again
            return None
        finally:
            LOCK.release()

    def _is_in_place(self, position: int, held: Storage | None) -> bool:
        """Whether the memory of an array argument is where it was."""
        known = self._memory[position]
        if known is None:
            return True
        return held is not None and held.address is not None and held.address == known[1]

    def _used_by(self, built: BuiltPlan, pending: SubmissionList) -> set[int]:
        """The positions of the array arguments that the launches are bound to."""
        return {k for stage in parameters_of(built.plan, pending) for k in stage.arrays.values()}
