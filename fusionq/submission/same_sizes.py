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
    """Prepared runs by options, forms, sizes and aliasing of the list that they were prepared for;
    nobody else has them.

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
        is_kept: bool,
    ) -> PreparedRun:
        """How the list runs: as another one of its kind or, else, as ``prepare`` says, which is
        given the numbers of the arrays' memories (see ``sharing``); raises what that does, and
        DeviceError where ``backend`` cannot reach memory.  Unless it ``is_kept``, the run is the
        list's until the next is asked for."""
        places = [place for entry in pending.entries for place in entry.deferred.operands.places]
        shared = sharing(backend, places, pending.memory)
        if shared is None:
            return prepare(None)
        key = options, shared, *[entry.sized or entry for entry in pending.entries]
        run = self._runs.get(key)
        if run is not None:
            try:
                if is_kept:
                    found = _elsewhere(run, backend, pending, places)
                else:
                    run.move(backend, pending.memory, places)
                    found = run
            except DeviceError:  # of which ``prepare`` says more
                found = None
            values = pending.values
            if found is not None and (not values or found.rebind(values, pending.operands)):
                return found
        run = prepare(shared[0])
        if run.pointers and not run.is_trial and self._comes_again(key):
            own = _elsewhere(run, backend, pending, places)
            if own is not None:
                self._runs[key] = own
        return run

    def _comes_again(self, key: Hashable) -> bool:
        """Whether such a list has come before; there is room for its run then."""
        number = hash(key)
        if number not in self._once:
            if len(self._once) >= 16 * self._capacity:
                self._once.clear()
            self._once.add(number)
            return False
        if len(self._runs) >= self._capacity:
            self._runs.clear()
        return True

    def forget(self, is_old: Callable[[PreparedRun], bool]) -> None:
        """Forget the runs that are old."""
        for key, run in tuple(self._runs.items()):
            if is_old(run):
                del self._runs[key]


def _elsewhere(
    run: PreparedRun, backend: Backend, pending: SubmissionList, places: Sequence[ArrayPlace]
) -> PreparedRun | None:
    """Launches of their own for ``pending``, whose arrays are at ``places``."""
    admission = dict(pending.admission)
    return run.elsewhere(backend, pending.memory, places, pending.submitted(), admission)


def sharing(
    backend: Backend, places: Sequence[ArrayPlace], memory: Sequence[object]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """For each of the array arguments at ``places``, which ``memory`` keeps, the number of its
    memory, and how far behind the first one in that memory it begins: of lists of equal forms and
    sizes, those with equal answers have equal ``analysis.aliasing.places`` and use the same of
    their storages.  None where extents have to be compared: where memory of others overlaps what is
    not the same.  Memory of Buffers that has been allocated moves to where ``backend`` reaches it.
    """
    numbers: dict[Hashable, int] = {}
    extents: dict[Hashable, tuple[int, int]] = {}
    memories: list[int] = []
    first: list[int] = []
    behind: list[int] = []
    compare = False
    for (shape, strides, token, offset, address), held in zip(places, memory, strict=True):
        key: Hashable = token
        if type(held) is Storage:
            low = held.address
            if low is not None:
                if held.owned:
                    low = held.make_reachable(backend)
                extents[key] = low, low + held.nbytes
            compare = compare or not held.owned
        elif type(held) is np.ndarray and address is not None:
            whole = held.flags.c_contiguous
            below, above = (0, held.nbytes) if whole else byte_bounds(shape, strides, held.itemsize)
            key = address, below, above
            extents[key] = address + below, address + above
            compare = True
        else:
            return None
        number = numbers.setdefault(key, len(first))
        if number == len(first):
            first.append(offset)
        memories.append(number)
        behind.append(offset - first[number])
    if compare:
        beyond = 0
        for low, high in sorted(extents.values()):
            if low < beyond:
                return None
            beyond = high
    return tuple(memories), tuple(behind)
