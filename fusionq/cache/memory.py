"""The caches in memory: what one queue has checked and prepared, and what the process has
planned and built."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar
from weakref import WeakSet

from fusionq.analysis.submission import ArrayArgument
from fusionq.backends.base import Program

if TYPE_CHECKING:
    from fusionq.execution.binding import PreparedRun
    from fusionq.planning.plan import Plan
    from fusionq.submission.pending import KnownSubmission


class _Used(Protocol):
    last_use: int


_Entry = TypeVar("_Entry", bound=_Used)


class QueueCache:
    """What one queue can do without thinking.

    ``known``: submissions that were checked, by kernel, range and arguments' tokens.  ``runs``:
    launches ready to go, by options and list.  Neither keeps memory alive; what belongs to a
    storage that died, or that was allocated after all, is dropped (``stale`` collects their
    tokens, since a finalizer must not touch a table).  Beyond ``capacity`` entries the
    least recently used go.
    """

    def __init__(self, capacity: int = 4096) -> None:
        self.capacity = capacity
        self.known: dict[Hashable, KnownSubmission] = {}
        self.runs: dict[Hashable, PreparedRun] = {}
        self.stale: deque[int] = deque()
        _queues.add(self)

    def add_known(self, key: Hashable, entry: KnownSubmission) -> None:
        """Remember a checked submission."""
        self.drop_stale()
        _make_room(self.known, self.capacity)
        self.known[key] = entry

    def add_run(self, key: Hashable, run: PreparedRun) -> None:
        """Remember prepared launches."""
        _make_room(self.runs, self.capacity)
        self.runs[key] = run

    def drop_stale(self) -> None:
        """Forget what belongs to storages that died."""
        stale = set()
        while self.stale:
            stale.add(self.stale.popleft())
        if stale:
            for key, run in tuple(self.runs.items()):
                if not run.tokens.isdisjoint(stale):
                    del self.runs[key]
            for key, entry in tuple(self.known.items()):
                arguments = entry.submission.arguments
                if any(isinstance(a, ArrayArgument) and a.storage in stale for a in arguments):
                    del self.known[key]

    def clear(self) -> None:
        """Forget everything."""
        self.known.clear()
        self.runs.clear()


_queues: WeakSet[QueueCache] = WeakSet()


def forget_runs(superseded: Iterable[BuiltPlan]) -> None:
    """Let no queue use again what it has prepared by these plans."""
    old = {id(built) for built in superseded}
    for cache in tuple(_queues) if old else ():
        for key, run in tuple(cache.runs.items()):
            if id(run.built) in old:
                del cache.runs[key]


def _make_room(table: dict[Hashable, _Entry], capacity: int) -> None:
    if len(table) >= capacity:
        by_age = sorted(tuple(table.items()), key=lambda item: item[1].last_use)
        for key, _ in by_age[: max(capacity // 4, 1)]:
            del table[key]


@dataclass(frozen=True, slots=True)
class BuiltPlan:
    """A plan and the programs of its stages."""

    plan: Plan
    programs: tuple[Program, ...]


class PlanCache:
    """Plans by structure (several where they depend on sizes), and programs by kernel, so that
    no kernel is built twice; the least recently used beyond ``capacity`` go."""

    def __init__(self, capacity: int = 1024) -> None:
        self.capacity = capacity
        self._plans: OrderedDict[Hashable, list[BuiltPlan]] = OrderedDict()
        self._programs: OrderedDict[Hashable, Program] = OrderedDict()

    def plans(self, key: Hashable) -> Iterable[BuiltPlan]:
        """The plans for lists of that structure, the latest first."""
        found = self._plans.get(key)
        if found is None:
            return ()
        self._plans.move_to_end(key)
        return tuple(found)

    def add_plan(self, key: Hashable, built: BuiltPlan, variants: int = 16) -> None:
        """Remember a plan, at most ``variants`` for one structure."""
        found = self._plans.setdefault(key, [])
        found.insert(0, built)
        del found[variants:]
        self._plans.move_to_end(key)
        if len(self._plans) > self.capacity:
            self._plans.popitem(last=False)

    def program(self, key: Hashable) -> Program | None:
        """The program that was built for a kernel."""
        found = self._programs.get(key)
        if found is not None:
            self._programs.move_to_end(key)
        return found

    def add_program(self, key: Hashable, program: Program) -> None:
        """Remember a built program."""
        self._programs[key] = program
        if len(self._programs) > self.capacity:
            self._programs.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        self._plans.clear()
        self._programs.clear()


PLANS = PlanCache()
"""The process's plans and programs."""
