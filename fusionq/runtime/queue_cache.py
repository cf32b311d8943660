"""The cache of one queue: submissions that it has checked, and launches that it has prepared."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

from fusionq.base.call_site import user_frame
from fusionq.cache.plan_cache import PLANS, BuiltPlan
from fusionq.execution.resized_runs import ResizedRuns
from fusionq.memory.storage import move_listeners
from fusionq.submission.known import KnownSubmission
from fusionq.submission.run import PreparedRun, RunChooser
from fusionq.submission.same_sizes import RunsBySizes
from fusionq.submission.templates import Templates


class _Used(Protocol):
    last_use: int


_Entry = TypeVar("_Entry", bound=_Used)
_Key = TypeVar("_Key", bound=Hashable)


class QueueCache:
    """What one queue can do without thinking.

    ``known``: submissions that were checked, by kernel, range and arguments' tokens.  ``runs``:
    launches ready to go, by options and list.  ``unfused``: what says when lists have launches that
    run unfused until then.  ``templates``, ``by_sizes`` and ``resized`` serve
    submissions and lists that are new.  None keeps memory alive; what belongs to a
    storage that died, or that was allocated after all, is dropped (``stale`` collects their
    tokens, since a finalizer must not touch a table).  Beyond ``capacity`` entries the
    least recently used go.
    """

    def __init__(self, capacity: int = 4096) -> None:
        self.capacity = capacity
        self.known: dict[Hashable, KnownSubmission] = {}
        self.runs: dict[tuple[Any, ...], PreparedRun] = {}
        self.unfused: dict[tuple[Any, ...], RunChooser] = {}
        self.stale: deque[int] = deque()
        self.templates = Templates()
        self.by_sizes = RunsBySizes()
        self.resized = ResizedRuns()
        self._once: set[int] = set()
        _queues.add(self)

    def add_repeated(self, key: Hashable, entry: KnownSubmission) -> None:
        """Remember a checked submission if it is made again: temporaries never are."""
        number = hash(key)
        if number in self._once:
            self._once.discard(number)
            self.add_known(key, entry)
        else:
            self.see(number)

    def has_seen(self, number: int) -> bool:
        """Whether a checked submission that is not remembered has been made before, whose key has
        this hash."""
        return number in self._once

    def see(self, number: int) -> None:
        """A checked submission, whose key has this hash, is made, and not remembered."""
        if len(self._once) >= self.capacity:
            self._once.clear()
        self._once.add(number)

    def add_known(self, key: Hashable, entry: KnownSubmission) -> None:
        """Remember a checked submission."""
        self.drop_stale()
        for old in _make_room(self.known, self.capacity):
            old.is_kept = False
        if (replaced := self.known.get(key)) is not None:  # from elsewhere in the program
            replaced.is_kept = False
        self.known[key] = entry
        entry.is_kept = True

    def add_run(self, key: tuple[Any, ...], run: PreparedRun) -> None:
        """Remember prepared launches."""
        _make_room(self.runs, self.capacity)
        self.runs[key] = run

    def add_unfused(self, key: tuple[Any, ...], chooser: RunChooser) -> None:
        """Remember what says when a list that runs unfused has launches."""
        if len(self.unfused) >= self.capacity:
            self.unfused.clear()
        self.unfused[key] = chooser

    def drop_stale(self) -> None:
        """Forget what belongs to storages that died."""
        stale = set()
        while self.stale:
            stale.add(self.stale.popleft())
        if stale:
            for key, entry in tuple(self.known.items()):
                if any(storage in stale for _, _, storage, _, _ in entry.deferred.operands.places):
                    del self.known[key]
                    entry.is_kept, entry.begins = False, None
            _forget_lists(self.runs)
            _forget_lists(self.unfused)

    def drop_moved(self) -> None:
        """Forget the launches whose memory has moved since they were prepared."""
        for key, run in tuple(self.runs.items()):
            if not run.is_in_place():
                del self.runs[key]
        for entry in self.known.values():
            if entry.plain is not None and not entry.plain.is_in_place():
                entry.plain = None

    def clear(self) -> None:
        """Forget everything."""
        self.templates = Templates()
        self.by_sizes = RunsBySizes()
        self.resized = ResizedRuns()
        self.known.clear()
        self.runs.clear()
        self.unfused.clear()


class KnownHere:
    """What a table of ``known`` submissions has that was submitted by the user's call that is at
    work: what its arguments are called is what ``Graph.update`` changes them by."""

    def __init__(self, known: dict[Hashable, KnownSubmission]) -> None:
        self._known = known

    def get(self, key: Hashable) -> KnownSubmission | None:
        """That submission; None where there is none, or another call's."""
        entry = self._known.get(key)
        return entry if entry is not None and entry.is_called_in(user_frame()) else None


_queues: WeakSet[QueueCache] = WeakSet()


def _forget_runs(superseded: Iterable[BuiltPlan]) -> None:
    """Let no queue use again what it has prepared by these plans."""
    old = {id(built) for built in superseded}
    for cache in tuple(_queues):
        for key, run in tuple(cache.runs.items()):
            if id(run.built) in old:
                del cache.runs[key]
        cache.by_sizes.forget(lambda run: id(run.built) in old)
        cache.resized.forget(lambda run: id(run.built) in old)


def _forget_moved() -> None:
    """Let no queue use launches again whose memory has moved."""
    for cache in tuple(_queues):
        cache.drop_moved()


def _forget_lists(table: dict[tuple[Any, ...], Any]) -> None:
    """Forget what belongs to lists that will not be found again."""
    for key in tuple(table):
        if not all([entry.is_kept for entry in key[1:]]):
            del table[key]


def _make_room(table: dict[_Key, _Entry], capacity: int) -> list[_Entry]:
    """What had to go."""
    if len(table) < capacity:
        return []
    by_age = sorted(tuple(table.items()), key=lambda item: item[1].last_use)
    return [table.pop(key) for key, _ in by_age[: max(capacity // 4, 1)]]


PLANS.superseded.append(_forget_runs)
move_listeners.append(_forget_moved)
