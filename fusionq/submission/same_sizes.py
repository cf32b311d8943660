"""Launches that were prepared for one list serve others that differ in nothing but memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from sys import getrefcount
from types import SimpleNamespace
from typing import Protocol

import numpy as np

from fusionq.analysis.submission import ArrayPlace, Operands, ScalarValue
from fusionq.backends.base import Backend
from fusionq.base.errors import DeviceError
from fusionq.base.options import UNFUSED, FusionOptions
from fusionq.memory.foreign_array import byte_bounds
from fusionq.memory.storage import Storage
from fusionq.submission.known import KnownSubmission
from fusionq.submission.overwritten_memory import OverwrittenMemory
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun, RunChooser
from fusionq.submission.separate_launches import SeparateLaunches


@dataclass(slots=True)
class Alike:
    """What lists have in common that differ in nothing but memory and scalars."""

    memories: tuple[int, ...] | None
    """The numbers of the arrays' memories (see ``sharing``)."""
    chooser: RunChooser | None = None
    """What chooses how they run, while that is open."""
    runs_unfused: bool = False
    """Whether ``chooser`` had the last one run each submission by itself."""
    comes_again: bool = False
    """Whether it is kept for the next ones."""
    separate: SeparateLaunches | None = None
    """Launches of those that run each submission by itself."""
    is_separable: bool = True
    """Whether there are such, as far as known."""


class RunsBySizes:
    """Prepared runs by options, forms, sizes and aliasing of the list that they were prepared for;
    nobody else has them.  Where lists have none yet, what chooses how they run.

    A list is kept from the second of its kind on: sizes that vary leave nothing behind.  Beyond
    ``capacity`` all are forgotten.
    """

    def __init__(self, capacity: int = 256) -> None:
        self._capacity = capacity
        self._runs: dict[Hashable, PreparedRun] = {}
        self._open: dict[Hashable, Alike] = {}
        self._once: set[int] = set()

    def run_for(
        self,
        backend: Backend,
        pending: SubmissionList,
        options: FusionOptions,
        prepare: Callable[[Alike], PreparedRun],
        is_kept: bool,
        resized: Callable[[], PreparedRun | None],
    ) -> PreparedRun:
        """How the list runs: as another one of its kind, as ``resized`` gives it, or else as
        ``prepare`` says, which is given what is known of these, and changes it; raises what that
        does, and DeviceError where ``backend`` cannot reach memory.  Unless it ``is_kept``, the run
        is the list's until the next is asked for."""
        kind = pending.kind = kind_of(backend, pending)
        try:
            with OverwrittenMemory(pending.entries, pending.operands, pending.memory):
                return self._run_of(kind, backend, pending, options, prepare, is_kept, resized)
        finally:
            if pending.alike is None:  # else it is to run by what all of its kind have
                pending.kind = None

    def moved(
        self,
        backend: Backend,
        sized: KnownSubmission,
        places: Sequence[ArrayPlace],
        memory: Sequence[object],
        values: Sequence[ScalarValue],
    ) -> PreparedRun | None:
        """What ``run_for`` gives for a submission by itself which nobody keeps, where there is a
        run for its kind; None where there is none, or more is to be asked.  ``sized`` stands for
        those of its sizes; the arrays are at ``places`` and kept by ``memory``."""
        def submissions() -> list[Operands]:
            own = sized.deferred.operands
            return [Operands(own.form, own.range, places, values)]

        try:
            found = sharing(backend, places, memory)
            if found is None:
                return None
            shared, addresses = found
            run = self._runs.get((UNFUSED, (shared, sized)))
            if run is None or run.is_trial:
                return None
            with OverwrittenMemory((sized,), submissions, memory):
                run.move(backend, memory, places, addresses)
        except DeviceError:  # of which preparing says more
            return None
        return run if not values or run.rebind(values, submissions) else None

    def _run_of(
        self,
        kind: ListKind | None,
        backend: Backend,
        pending: SubmissionList,
        options: FusionOptions,
        prepare: Callable[[Alike], PreparedRun],
        is_kept: bool,
        resized: Callable[[], PreparedRun | None],
    ) -> PreparedRun:
        if kind is None:
            return prepare(Alike(None))
        of_list, places, addresses = kind.of_list, kind.places, kind.addresses
        key = options, of_list
        run = self._runs.get(key)
        if run is not None and run.is_open:
            del self._runs[key]
            if run.adaptive is not None:
                self._open[key] = Alike(kind.memories, run.adaptive, comes_again=True)
        elif run is not None:
            try:
                if is_kept:
                    found = _given(run, backend, pending, places, addresses)
                else:
                    run.move(backend, pending.memory, places, addresses)
                    found = run
            except DeviceError:  # of which ``prepare`` says more
                found = None
            values = pending.values
            if found is not None and (not values or found.rebind(values, pending.operands)):
                return found
        found = resized()
        if found is not None:
            return found
        is_known = all([entry.is_kept for entry in pending.entries])
        run = self._prepared(key, kind, prepare, is_known)
        if run.pointers and not run.is_trial and self._comes_again(key, kind):
            own = elsewhere(run, backend, pending, places, addresses)
            if own is not None:
                self._runs[key] = own
        return run

    def _prepared(
        self,
        key: tuple[FusionOptions, Hashable],
        kind: ListKind,
        prepare: Callable[[Alike], PreparedRun],
        is_known: bool,
    ) -> PreparedRun:
        alike = Alike(kind.memories)
        if is_known:  # by itself, from then on
            others = self._open.get(key)
            if others is not None:
                alike.comes_again, alike.separate = True, others.separate
                alike.is_separable = others.is_separable
            return prepare(alike)
        alike = self._open.get(key, alike)
        try:
            return prepare(alike)
        finally:
            if alike.chooser is None:
                self._open.pop(key, None)
            elif not alike.comes_again and self._comes_again(key, kind):
                self._open[key], alike.comes_again = alike, True

    def _comes_again(self, key: tuple[FusionOptions, Hashable], kind: ListKind) -> bool:
        """Whether such a list has come before; there is room for its run then."""
        number = hash((key[0], kind.shared, *[entry.numbered() for entry in kind.entries]))
        if number not in self._once:
            if len(self._once) >= 16 * self._capacity:
                self._once.clear()
            self._once.add(number)
            return False
        for table in (self._runs, self._open):
            if len(table) >= self._capacity:
                table.clear()
        return True

    def forget(self, is_old: Callable[[PreparedRun], bool]) -> None:
        """Forget the runs that are old, and what chose them."""
        self._open.clear()
        for key, run in tuple(self._runs.items()):
            if is_old(run):
                del self._runs[key]


class ListKind:
    """Of lists of equal kinds, the launches of one serve the others, with other pointers and
    scalars: the kernels, sizes and flags, and how the arrays share memory."""

    __slots__ = ("addresses", "entries", "of_list", "of_structure", "places", "shared")

    def __init__(
        self,
        entries: Sequence[KnownSubmission],
        shared: Shared,
        places: Sequence[ArrayPlace],
        addresses: list[int | None],
    ) -> None:
        self.of_list: Hashable = (shared, *entries)
        self.entries = entries
        """What stands for the submissions of all such lists."""
        self.shared = shared
        """How the arrays share memory: see ``sharing``."""
        self.places = places
        """Where the arrays of this list are."""
        self.addresses = addresses
        """Their addresses for kernels, as far as known."""
        self.of_structure: Hashable = None
        """What lists of other sizes have in common with it, where somebody has asked
        (``execution.resized_runs``)."""

    @property
    def memories(self) -> tuple[int, ...]:
        """The numbers of the arrays' memories."""
        return self.shared[0]


def kind_of(backend: Backend, pending: SubmissionList) -> ListKind | None:
    """That of ``pending``; None where ``sharing`` gives none."""
    if isinstance(pending.kind, ListKind):  # on the only backend that it runs on
        return pending.kind
    places = [place for entry in pending.entries for place in entry.deferred.operands.places]
    found = sharing(backend, places, pending.memory)
    if found is None:
        return None
    shared, addresses = found
    entries = [entry.sized or entry for entry in pending.entries]
    return ListKind(entries, shared, places, addresses)


def elsewhere(
    run: PreparedRun,
    backend: Backend,
    pending: SubmissionList,
    places: Sequence[ArrayPlace],
    addresses: list[int | None],
) -> PreparedRun | None:
    """Launches of their own for ``pending``, whose arrays are at ``places``."""
    admission = dict(pending.admission)
    submitted = pending.submitted()
    return run.elsewhere(backend, pending.memory, places, addresses, submitted, admission)


def _given(
    run: PreparedRun,
    backend: Backend,
    pending: SubmissionList,
    places: Sequence[ArrayPlace],
    addresses: list[int | None],
) -> PreparedRun | None:
    """As ``elsewhere``, by the launches that were given last where the list that had them is gone,
    as lists of temporaries mostly are before the next one ends."""
    if run.given is not None and is_alone(run) and not run.is_persistent:
        timings, submitted = dict(pending.admission), pending.submitted()
        run.given.serve(run, backend, pending.memory, places, addresses, submitted, timings)
    else:
        run.given = elsewhere(run, backend, pending, places, addresses)
    return run.given


def is_alone(giving: Giving) -> bool:
    """Whether nobody else has what ``giving`` has given last."""
    return _holders(giving) == _ALONE


def _holders(giving: Giving) -> int:
    """How many have it."""
    return getrefcount(giving.given)


class Giving(Protocol):
    """Gives launches of its own to one list after the other."""

    @property
    def given(self) -> object:
        """What it has given last."""


_ALONE = _holders(SimpleNamespace(given=object()))
"""Where nobody has it but that run."""

_byte_bounds = lru_cache(1024)(byte_bounds)

Shared = tuple[tuple[int, ...], tuple[int, ...]]
"""For each of some array arguments the number of its memory, and how far behind the first one in
that memory it begins."""


_NO_DISTANCES = lru_cache(256)((0,).__mul__)


def _shared_by(places: Sequence[ArrayPlace]) -> Shared:
    """That of arguments in memory of fusionq's own, where that of another token is another."""
    numbers: dict[int, int] = {}
    memories = tuple([numbers.setdefault(place[2], len(numbers)) for place in places])
    offsets = [place[3] for place in places]
    if not any(offsets):
        return memories, _NO_DISTANCES(len(offsets))
    first: list[int] = []
    for number, offset in zip(memories, offsets, strict=True):
        if number == len(first):
            first.append(offset)
    return memories, tuple([o - first[m] for m, o in zip(memories, offsets, strict=True)])


def sharing(
    backend: Backend, places: Sequence[ArrayPlace], memory: Sequence[object]
) -> tuple[Shared, list[int | None]] | None:
    """For each of the array arguments at ``places``, which ``memory`` keeps, the number of its
    memory, and how far behind the first one in that memory it begins: of lists of equal forms and
    sizes, those with equal answers have equal ``analysis.aliasing.places`` and use the same of
    their storages.  Beside these the addresses for kernels on ``backend``, as far as known.  None
    where extents have to be compared: where memory of others overlaps what is not the same.  Memory
    of Buffers that has been allocated moves to where ``backend`` reaches it.
    """
    addresses: list[int | None] = []
    for place, held in zip(places, memory, strict=True):
        if type(held) is not Storage or not held.owned:
            break
        address = held.address
        if address is not None:
            if held.bound_to is not backend:
                address = held.make_reachable(backend)
            address += place[3]
        addresses.append(address)
    else:
        return _shared_by(places), addresses
    numbers: dict[Hashable, int] = {}
    extents: dict[Hashable, tuple[int, int]] = {}  # of memory of others
    memories: list[int] = []
    first: list[int] = []
    behind: list[int] = []
    addresses = []
    for (shape, strides, token, offset, address), held in zip(places, memory, strict=True):
        if type(held) is np.ndarray and address is not None:
            below, above = _byte_bounds(shape, strides, held.itemsize)
            key: Hashable = (address, below, above)
            number = numbers.get(key)
            if number is None:
                number = numbers[key] = len(first)
                first.append(0)
                extents[key] = address + below, address + above
            memories.append(number)
            behind.append(0)
            addresses.append(address)
            continue
        key = token
        if type(held) is Storage:
            low, address = held.address, None
            if not held.owned:  # whose address ``make_reachable`` checks
                assert low is not None
                extents[key] = low, low + held.nbytes
            elif low is not None:
                address = held.make_reachable(backend) + offset
        elif address is not None:
            itemsize = getattr(held, "itemsize", None)
            if type(itemsize) is not int:
                return None
            below, above = _byte_bounds(shape, strides, itemsize)
            key = address, below, above
            extents[key] = address + below, address + above
        else:
            return None
        number = numbers.setdefault(key, len(first))
        if number == len(first):
            first.append(offset)
        memories.append(number)
        behind.append(offset - first[number])
        addresses.append(address)
    if extents:
        for held in memory:
            if type(held) is Storage and held.owned and held.address is not None:
                extents[held.token] = held.address, held.address + held.nbytes
        beyond = 0
        for low, high in sorted(extents.values()):
            if low < beyond:
                return None
            beyond = high
    return (tuple(memories), tuple(behind)), addresses
