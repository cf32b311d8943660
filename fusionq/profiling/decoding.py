"""From the words that kernels stored to intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fusionq.profiling.regions import AGGREGATE_FIELDS, RecordLayout, Slot
from fusionq.profiling.timeline import INTERVAL, Aggregate, Intervals

Words = npt.NDArray[np.int64]


@dataclass
class Decoded:
    """One launch's records; ``region`` counts within the layout's slots."""

    intervals: Intervals
    aggregates: list[Aggregate] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    dropped: dict[int, int] = field(default_factory=dict)


def prepare_words(words: Words, layout: RecordLayout) -> None:
    """Make ``words``, one launch's, ready to be written."""
    words[:] = 0
    if layout.overflow == "aggregate":
        for number in range(len(layout.slots)):
            at = layout.aggregates_at + number * layout.line
            for name in ("min", "first"):
                words[at + AGGREGATE_FIELDS.index(name)] = np.iinfo(np.int64).max
            words[at + AGGREGATE_FIELDS.index("max")] = np.iinfo(np.int64).min


def decode(words: Words, layout: RecordLayout, groups: int, rows: int) -> Decoded:
    """The records of a launch of ``groups`` work-groups that had ``rows`` rows."""
    recording = -(-groups // layout.every)
    decoded = Decoded(np.empty(0, INTERVAL))
    decoded.counters = counter_values(words, layout.counters, layout.copies * layout.line)
    if layout.overflow == "aggregate":
        for number in range(len(layout.slots)):
            at = layout.aggregates_at + number * layout.line
            totals = [int(word) for word in words[at : at + len(AGGREGATE_FIELDS)]]
            if totals[AGGREGATE_FIELDS.index("count")]:
                decoded.aggregates.append(Aggregate(number, -1, *totals))
        return decoded
    table = words[layout.rows_at :][: rows * layout.row_words].reshape(rows, layout.row_words)
    found = []
    for number, slot in enumerate(layout.slots):
        intervals, dropped = slot_intervals(table, slot, recording)
        intervals["region"] = number
        intervals["instance"] *= layout.every
        found.append(intervals)
        if dropped:
            decoded.dropped[number] = dropped
    if found:
        decoded.intervals = np.concatenate(found)
    return decoded


def counter_values(words: Words, names: Sequence[str], size: int) -> dict[str, int]:
    """The counters, of ``size`` words each, at the start of a launch's words."""
    return {
        name: int(words[number * size : (number + 1) * size].sum())
        for number, name in enumerate(names)
    }


def slot_intervals(table: Words, slot: Slot, groups: int) -> tuple[Intervals, int]:
    """A slot's intervals in all rows, and how many more there were."""
    rows = len(table)
    width = len(slot.fields)
    cells = table[:, slot.offset : slot.offset + slot.capacity * width]
    cells = cells.reshape(rows, slot.capacity, width)

    def column(name: str) -> Words:
        return cells[:, :, slot.fields.index(name)]

    start = column("start")
    end = column("end") if "end" in slot.fields else start
    there = (start > 0) & (end >= start)
    row, _ = np.nonzero(there)
    intervals = np.zeros(len(row), INTERVAL)
    intervals["worker"] = intervals["producer"] = -1
    intervals["instance"] = row
    intervals["start"], intervals["end"] = start[there], end[there]
    if "payload" in slot.fields:
        intervals["payload"] = column("payload")[there]
    happened = len(row) if slot.count is None else int(table[:, slot.count].sum())
    missing = 0
    if groups > rows:  # of the rows that there are not, nothing is known but their number
        missing = round((groups - rows) * happened / rows)
    return intervals, max(happened - len(row), 0) + missing
