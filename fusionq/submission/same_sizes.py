"""Launches that were prepared for one list serve others that differ in nothing but memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from fusionq.analysis.submission import ArrayPlace
from fusionq.backends.base import Backend
from fusionq.base.errors import DeviceError
from fusionq.base.options import FusionOptions
from fusionq.memory.foreign_array import byte_bounds
from fusionq.memory.storage import Storage
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun


class RunsBySizes:
    """Prepared runs by options, forms, sizes and aliasing of the list that they were prepared for.

    A list is kept from the second of its kind on: sizes that vary leave nothing behind.  Beyond
    ``capacity`` all are forgotten.
    """

    def __init__(self, capacity: int = 256) -> None:
        self._capacity = capacity
        self._runs: dict[Hashable, PreparedRun] = {}
        self._once: set[int] = set()

    def run_for(
        self,
        backend: Backend,
        pending: SubmissionList,
        options: FusionOptions,
        prepare: Callable[[tuple[int, ...] | None], PreparedRun],
    ) -> PreparedRun:
        """How the list runs: as another one of its kind or, else, as ``prepare`` says, which is
        given the numbers of the arrays' memories (see ``sharing``); raises what that does.  All
        memory that is there has to be where ``backend`` reaches it."""
        places = [place for entry in pending.entries for place in entry.deferred.operands.places]
        shared = sharing(places, pending.memory)
        if shared is None:
            return prepare(None)
        key = options, shared, *[entry.sized or entry for entry in pending.entries]
        run = self._runs.get(key)
        if run is not None:
            try:
                found = run.elsewhere(
                    backend, pending.memory, places, pending.submitted(), dict(pending.admission)
                )
            except DeviceError:  # of which ``prepare`` says more
                found = None
            values = pending.values
            if found is not None and (not values or found.rebind(values, pending.operands)):
                return found
        run = prepare(shared[0])
        self._add(key, run)
        return run

    def _add(self, key: Hashable, run: PreparedRun) -> None:
        if not run.pointers or run.is_trial:
            return
        number = hash(key)
        if number not in self._once:
            if len(self._once) >= 16 * self._capacity:
                self._once.clear()
            self._once.add(number)
        else:
            if len(self._runs) >= self._capacity:
                self._runs.clear()
            self._runs[key] = run

    def forget(self, is_old: Callable[[PreparedRun], bool]) -> None:
        """Forget the runs that are old."""
        for key, run in tuple(self._runs.items()):
            if is_old(run):
                del self._runs[key]


def sharing(
    places: Sequence[ArrayPlace], memory: Sequence[object]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """For each of the array arguments at ``places``, which ``memory`` keeps, the number of its
    memory, and where in it it begins: of lists of equal forms and sizes, those with equal answers
    have equal ``analysis.aliasing.places`` and use the same of their storages.  None where extents
    have to be compared: where memory of others overlaps what is not the same."""
    numbers: dict[Hashable, int] = {}
    extents: dict[Hashable, tuple[int, int]] = {}
    memories: list[int] = []
    compare = False
    for (shape, strides, token, _, address), held in zip(places, memory, strict=True):
        key: Hashable = token
        if type(held) is Storage:
            low = held.address
            if low is not None:
                extents[key] = low, low + held.nbytes
            compare = compare or not held.owned
        elif type(held) is np.ndarray and address is not None:
            below, above = byte_bounds(shape, strides, held.itemsize)
            key = address, below, above
            extents[key] = address + below, address + above
            compare = True
        else:
            return None
        memories.append(numbers.setdefault(key, len(numbers)))
    if compare:
        beyond = 0
        for low, high in sorted(extents.values()):
            if low < beyond:
                return None
            beyond = high
    return tuple(memories), tuple([place[3] for place in places])
