"""What is measured: the regions of an instrumented kernel, and where their records lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from fusionq.ir.nodes import RecordKind

Overflow = Literal["truncate", "ring", "aggregate"]

WORD_BYTES = 8
AGGREGATE_FIELDS = ("sum", "min", "max", "count", "first", "last")
"""What is kept of a region where its occurrences are not: of their durations, and of the clock."""


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a launch.

    ``stage``: the submission's heading that it stands under ("" for none).  ``submissions``: the
    members of the list whose work it is.  ``sampled``: measured for the first work-item of each
    work-group (and those that run beside it as one vector), not for the whole group.
    """

    name: str
    kind: RecordKind
    stage: str = ""
    submissions: tuple[int, ...] = ()
    sampled: bool = False

    def __str__(self) -> str:
        if self.kind in ("wait", "publish"):
            return f"{self.name} ({self.kind})"
        return f"{self.stage} / {self.name}" if self.stage and self.sampled else self.name


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a region's records lie in the row of each work-group.

    ``offset``: words from the row's start; ``capacity`` occurrences of ``fields`` each (int64:
    ``start`` and ``end``, or ``start`` alone, in ticks; ``payload``).  ``count``: the word that
    holds how often it happened, where that can be more than ``capacity`` or is not known.
    """

    region: Region
    offset: int
    capacity: int
    fields: tuple[str, ...]
    count: int | None

    @property
    def words(self) -> int:
        """Words of the row that the slot takes."""
        return self.capacity * len(self.fields) + (self.count is not None)


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """One launch's records in int64 words: counters, aggregates, then a row for each work-group
    of which one in ``every`` records, ``most_rows`` rows at most.

    A counter has ``copies`` places, which different work-groups count in; places and aggregates
    begin ``line`` words after each other, a cache line.  A row is all zeros where nothing was
    recorded.
    """

    counters: tuple[str, ...]
    slots: tuple[Slot, ...]
    overflow: Overflow
    line: int
    copies: int
    every: int = 1
    most_rows: int = 1

    @property
    def row_words(self) -> int:
        """Words of a row."""
        return sum(slot.words for slot in self.slots)

    @property
    def aggregates_at(self) -> int:
        """Where the aggregates start."""
        return len(self.counters) * self.copies * self.line

    @property
    def rows_at(self) -> int:
        """Where the rows start."""
        aggregated = len(self.slots) if self.overflow == "aggregate" else 0
        return self.aggregates_at + aggregated * self.line

    def words(self, rows: int) -> int:
        """Words of a launch that keeps ``rows`` rows."""
        return self.rows_at + rows * self.row_words

    def within(self, words: int) -> RecordLayout:
        """The same, with as many rows at most as fit into ``words``; at least 1."""
        room = words - self.rows_at
        return replace(self, most_rows=max(room // self.row_words, 1) if self.row_words else 1)

    def rows(self, groups: int) -> int:
        """The rows of a launch of ``groups`` work-groups."""
        return max(min(-(-groups // self.every), self.most_rows), 1)

    def names(self) -> Iterator[str]:
        """All regions' names."""
        return (str(slot.region) for slot in self.slots)
