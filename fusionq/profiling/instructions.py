"""Persistent kernels: who did which tile of which stage when, and who waited for whom.

The trip count is known: every tile of every stage happens once, and has a row of its own.  What
its workers do between two clock reads is ticket, wait, work (the stage), publish.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np
import numpy.typing as npt

from fusionq.base.target import Target
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.nodes import (
    ArrayParam,
    Call,
    Clock,
    Compare,
    Const,
    Expr,
    If,
    InstructionRecords,
    Kernel,
    Logical,
    Persistent,
    Record,
    ScalarParam,
    StageCode,
    Stmt,
)
from fusionq.ir.types import BOOL, INT64
from fusionq.ir.verifier import verify
from fusionq.megakernel.schedule import Schedule
from fusionq.profiling.decoding import Decoded, Words, counter_values, slot_intervals
from fusionq.profiling.layout import layout_of, records_under
from fusionq.profiling.lowering import BASE, RECORDS, RecordLowering, without_records
from fusionq.profiling.regions import Region, Slot
from fusionq.profiling.timeline import INTERVAL, TILE_BITS, Intervals

_HEAD = 6
"""Words of a row before those of the stage's own regions; see ``InstructionRecords``."""
_ROWS = "record_rows"
"""The parameter that says how many rows each stage has."""
_NEVER = np.iinfo(np.int64).min
_TICKET = Region("next instruction", "ticket")


@dataclass(frozen=True)
class InstructionLayout:
    """A launch's records in int64 words: counters, then a row for each tile of each stage.

    ``slots``: for each stage code its own regions, with offsets in the row.
    """

    counters: tuple[str, ...]
    counter_words: int
    slots: tuple[tuple[Slot, ...], ...]
    rows_at: int
    row_words: int

    def words(self, stages: int, rows: int) -> int:
        """Words of a launch with ``rows`` rows for each stage."""
        return self.rows_at + stages * rows * self.row_words

    def rows_within(self, stages: int, tiles: int, words: int) -> int:
        """The rows of each stage, of which none has more than ``tiles``, that fit into ``words``;
        at least 1."""
        return max(min(tiles, (words - self.rows_at) // (self.row_words * stages)), 1)


@dataclass(frozen=True)
class LoweredPersistent:
    """A persistent kernel that writes to its parameters ``extra``; ``plain``: without records."""

    kernel: Kernel
    layout: InstructionLayout
    extra: tuple[str, ...]
    body: Persistent


def lower_persistent(
    kernel: Kernel,
    body: Persistent,
    *,
    instructions: bool,
    occurrences: int,
    clock: Clock | None,
    target: Target,
) -> LoweredPersistent:
    """Lower the records in the stages of ``kernel``, whose body is ``body``; ``instructions``:
    also record each tile.  Without a ``clock`` only counters are kept."""
    kept = ("counter",) if clock is None else ("region", "mark", "counter")
    kernels = [without_records(c.kernel, kept) for c in body.codes]
    layouts = [layout_of(k, {}, "truncate", occurrences, target) for k in kernels]
    counters = tuple(dict.fromkeys(name for layout in layouts for name in layout.counters))
    own = bool(counters) or any(layout.slots for layout in layouts)
    if not own and (clock is None or not instructions):
        return LoweredPersistent(kernel, InstructionLayout((), 0, (), 0, _HEAD), (), body)
    shifted = [
        replace(layout, counters=counters, slots=tuple(_shifted(s) for s in layout.slots))
        for layout in layouts
    ]
    rows_at = shifted[0].rows_at
    row_words = _HEAD + max(layout.row_words for layout in layouts)
    line = shifted[0].line
    row_words += -row_words % line  # workers that write side by side share no cache line
    layout = InstructionLayout(
        counters,
        shifted[0].copies * line,
        tuple(one.slots for one in shifted),
        rows_at,
        row_words,
    )
    names = FreshNames(p.name for p in kernel.params)
    buffer, base, rows = extra = names.fresh(RECORDS), names.fresh(BASE), names.fresh(_ROWS)
    codes: list[StageCode] = []
    arguments: list[tuple[str, ...]] = []
    for code, stripped, one in zip(body.codes, kernels, shifted, strict=True):
        if not one.slots and not _counts(stripped):
            codes.append(replace(code, kernel=stripped))
            arguments.append(())
            continue
        lowered = _StageLowering(stripped, one, clock or "clock").run()
        codes.append(replace(code, kernel=lowered.kernel))
        arguments.append((buffer, base))
    stages = tuple(replace(s, arguments=(*s.arguments, *arguments[s.code])) for s in body.stages)
    records = None
    if clock is not None:
        records = InstructionRecords(clock, buffer, base, rows, rows_at, row_words)
    new = replace(body, codes=tuple(codes), stages=stages, records=records)
    params = (
        ArrayParam(extra[0], INT64, 1, restrict=False, unit_stride=True),
        ScalarParam(extra[1], INT64),
        ScalarParam(extra[2], INT64),
    )
    lowered_kernel = replace(kernel, params=(*kernel.params, *params), body=(new,))
    verify(lowered_kernel)
    return LoweredPersistent(lowered_kernel, layout, extra, new)


def _counts(kernel: Kernel) -> bool:
    return any(record.kind == "counter" for _, record, _ in records_under(kernel.body))


def _shifted(slot: Slot) -> Slot:
    count = None if slot.count is None else slot.count + _HEAD
    return replace(slot, offset=slot.offset + _HEAD, count=count)


class _StageLowering(RecordLowering):
    """A tile's first work-items record, into the tile's row."""

    def _array_param(self) -> ArrayParam:
        return replace(super()._array_param(), restrict=False)

    def _writer(self, record: Record) -> str | None:
        return None if record.kind == "counter" else "first_sub_group_here"

    def _if_recording(self, condition: Expr, stores: tuple[Stmt, ...]) -> Stmt:
        """As above; the lane first, since Intel's CPU compiler crashes on the other order where a
        tile's loop comes in parts."""
        leads = Logical("and", Call(BOOL, "leads_sub_group", ()), condition)
        return If(leads, (If(self._has_row(), stores),))

    def _group(self) -> Expr:
        return Const(INT64, 0)

    def _has_row(self) -> Expr:
        return Compare("ge", _row(), Const(INT64, 0))

    def _row(self, offset: Expr) -> tuple[Expr]:
        return (self._sum(_row(), offset),)


def _row() -> Expr:
    return Call(INT64, "record_row", ())


# ------------------------------------------------------------------------------- decoding
def decode_instructions(
    words: Words, lowered: LoweredPersistent, plan: Schedule, rows: int
) -> tuple[Decoded, tuple[Region, ...]]:
    """The records of a launch that followed ``plan`` with ``rows`` rows for each stage, and the
    regions that they count in."""
    layout, body = lowered.layout, lowered.body
    decoded = Decoded(np.empty(0, INTERVAL))
    decoded.counters = counter_values(words, layout.counters, layout.counter_words)
    regions: dict[Region, int] = {}
    if body.records is None:
        return decoded, ()
    table = words[layout.rows_at :][: len(body.stages) * rows * layout.row_words]
    table = table.reshape(len(body.stages), rows, layout.row_words)
    found: list[Intervals] = []
    published: list[npt.NDArray[np.int64]] = []
    """For each stage and tile, the interval of its publication."""
    position = 0
    for number, (stage, tiled) in enumerate(zip(body.stages, plan.stages, strict=True)):
        mine = table[number, : min(tiled.tiles, rows)]
        there = np.flatnonzero(mine[:, 0])
        parts = [(_TICKET, 1, 2), (Region(stage.label, "stage", "", _members(stage.label)), 3, 4)]
        if body.codes[stage.code].waits:
            parts.append((Region(stage.label, "wait"), 2, 3))
        parts.append((Region(stage.label, "publish"), 4, 5))
        for region, start, end in parts:
            one = _intervals(mine, there, number, start, end)
            one["region"] = regions.setdefault(region, len(regions))
            if region.kind == "publish":
                at = np.full(tiled.tiles, -1)
                at[there] = position + np.arange(len(there))
                published.append(at)
            found.append(one)
            position += len(one)
        for slot in layout.slots[stage.code]:
            own, dropped = slot_intervals(mine, slot, len(mine))
            region = replace(slot.region, stage=stage.label, submissions=_members(stage.label))
            own["region"] = regions.setdefault(region, len(regions))
            own["worker"] = mine[own["instance"], 0] - 1
            own["instance"] += number << TILE_BITS
            found.append(own)
            position += len(own)
            if dropped:
                decoded.dropped[regions[region]] = dropped
        if tiled.tiles > rows:
            stage_region = regions[parts[1][0]]
            decoded.dropped[stage_region] = tiled.tiles - rows
    decoded.intervals = np.concatenate(found)
    _attribute(decoded.intervals, body, plan, published, tuple(regions))
    return decoded, tuple(regions)


def _members(label: str) -> tuple[int, ...]:
    """The submissions in a stage's label, such as ``0: mul, 1: sub``."""
    numbers = (part.partition(":")[0].strip() for part in label.split(","))
    return tuple(int(n) for n in numbers if n.isdigit())


def _intervals(
    rows: Words, there: npt.NDArray[np.intp], stage: int, start: int, end: int
) -> Intervals:
    found = np.zeros(len(there), INTERVAL)
    found["worker"] = rows[there, 0] - 1
    found["instance"] = (stage << TILE_BITS) + there
    found["start"], found["end"] = rows[there, start], rows[there, end]
    found["producer"] = -1
    return found


def _attribute(
    intervals: Intervals,
    body: Persistent,
    plan: Schedule,
    published: list[npt.NDArray[np.int64]],
    regions: tuple[Region, ...],
) -> None:
    """Say of each wait which of the tiles that it waited for was published last, and on which
    barrier counter (the payload); publications have their counter as payload too."""
    for number, positions in enumerate(published):
        tiles = np.flatnonzero(positions >= 0)
        intervals["payload"][positions[tiles]] = _counter_lines(plan, number, tiles)
    when = [np.where(at >= 0, intervals["start"][at], _NEVER) for at in published]
    is_wait = np.array([r.kind == "wait" for r in regions])[intervals["region"]]
    stage_of = intervals["instance"] >> TILE_BITS
    for stage in range(len(published)):
        waits = np.flatnonzero(is_wait & (stage_of == stage))
        tiles = intervals["instance"][waits] & ((1 << TILE_BITS) - 1)
        last, latest = np.full(len(waits), -1), np.full(len(waits), _NEVER)
        for producer, candidates, valid in _waited_for(plan, stage, tiles):
            times = np.where(valid, when[producer][candidates], _NEVER)
            later = times > latest
            latest[later] = times[later]
            last[later] = published[producer][candidates][later]
        known = waits[last >= 0]
        intervals["producer"][known] = last[last >= 0]
        intervals["payload"][known] = intervals["payload"][last[last >= 0]]


def _waited_for(
    plan: Schedule, stage: int, tiles: Words
) -> Iterator[tuple[int, Words, npt.NDArray[np.bool_]]]:
    """A producer, and for each of ``tiles`` one of its tiles, which the former waits for where the
    third array says so; until all that they wait for have been seen."""
    for box in plan.waits[stage]:
        count = plan.stages[box.producer].count
        if box.low is None or box.high is None:
            for tile in range(prod(count)):
                yield box.producer, np.full(len(tiles), tile), np.full(len(tiles), True)
            continue
        low = [np.maximum(low[tiles], 0) for low in box.low]
        high = [np.minimum(high[tiles], n - 1) for high, n in zip(box.high, count, strict=True)]
        widths = [int((b - a).max(initial=-1)) + 1 for a, b in zip(low, high, strict=True)]
        for offsets in product(*map(range, widths)):
            at = [a + offset for a, offset in zip(low, offsets, strict=True)]
            valid = np.logical_and.reduce([a <= b for a, b in zip(at, high, strict=True)])
            yield box.producer, np.ravel_multi_index(at, count, mode="clip"), valid


def _counter_lines(
    plan: Schedule, stage: int, tiles: npt.NDArray[np.intp]
) -> npt.NDArray[np.int64]:
    """The line of the barrier counter that each tile counts on; 0 for none."""
    counters, count = plan.counters[stage], plan.stages[stage].count
    if counters.first < 0:
        return np.full(len(tiles), max(counters.total, 0))
    at = np.unravel_index(tiles, count)
    line = np.zeros(len(tiles), np.int64)
    for place, shared, n in zip(at, counters.shared, count, strict=True):
        line = line * -(-n // shared) + place // shared
    return line + counters.first
