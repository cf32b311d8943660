"""What submissions do to their memories: the accesses of each, and those that still matter."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field

from fusionq.analysis.dependence import Accessed, accesses_of
from fusionq.analysis.questions import Questions
from fusionq.base.frozen import dataclass


@dataclass
class LiveAccesses:
    """The accesses of a submission to one memory, by position, that still matter."""

    reads: set[int]
    writes: set[int]
    partly: tuple[int, ...] = ()
    """The submissions since then that have written a part of it."""

    def __contains__(self, position: int) -> bool:
        return position in self.reads or position in self.writes


@dataclass
class MemoryUses:
    """What a list does to one memory: the live accesses by submission; a writer for each way in
    which it is written; and which of these ways write all that any of them does."""

    live: dict[int, LiveAccesses] = field(default_factory=dict)
    writers: dict[Hashable, int] = field(default_factory=dict)
    overwrites: dict[Hashable, bool] = field(default_factory=dict)
    unknown: tuple[int, str] | None = None
    """The last submission that was not compared with all that it would have to be, and why."""


@dataclass(frozen=True)
class MemoryUse:
    """The accesses of a submission to one memory, by position; an argument that they go to."""

    argument: int
    reads: frozenset[int]
    writes: frozenset[int]


def uses_of(accesses: Sequence[Accessed]) -> dict[int, MemoryUse]:
    """What a submission does to each memory (alias group) that it touches."""
    found: dict[int, tuple[int, set[int], set[int]]] = {}
    for position, access in enumerate(accesses):
        _, reads, writes = found.setdefault(access.group, (access.argument, set(), set()))
        (reads if access.kind == "read" else writes).add(position)
    return {
        group: MemoryUse(argument, frozenset(reads), frozenset(writes))
        for group, (argument, reads, writes) in found.items()
    }


def accessed(questions: Questions, s: int) -> tuple[Accessed, ...]:
    """The accesses of a submission, in program order."""
    group_of = {k: group for k, group, *_ in questions.memory(s)}
    accesses = questions.ask(
        (s,), "accesses", lambda analysis: accesses_of(analysis, 0), other_sizes=True
    )
    return tuple([Accessed(a.argument, group_of[a.argument], a.kind, a.span) for a in accesses])
