"""Which regions a kernel's records make, and where each keeps its words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from fusionq.base.target import Target
from fusionq.ir.nodes import Block, Const, For, Kernel, Record, RecordKind, Stmt, While
from fusionq.ir.walk import nested_bodies
from fusionq.profiling.regions import WORD_BYTES, Overflow, RecordLayout, Region, Slot
from fusionq.profiling.stages import SEPARATOR

Key: TypeAlias = tuple[str, RecordKind, str]
"""Heading, kind and name of a region."""


def records_under(
    body: Iterable[Stmt], heading: str = ""
) -> Iterator[tuple[str, Record, int | None]]:
    """Each record with the heading above it and how often it can happen in a work-item (None:
    unknown)."""
    for stmt in body:
        if isinstance(stmt, Record):
            yield heading, stmt, 1
        inner = stmt.label if isinstance(stmt, Block) else heading
        times = _trips(stmt)
        for nested in nested_bodies(stmt):
            for label, record, often in records_under(nested, inner):
                yield label, record, None if often is None or times is None else often * times


def _trips(stmt: Stmt) -> int | None:
    """How often the statements inside can happen, where that is known."""
    if isinstance(stmt, While):
        return None
    if isinstance(stmt, For):
        bounds = (stmt.start, stmt.stop, stmt.step)
        values = [int(b.value) for b in bounds if isinstance(b, Const)]
        return len(range(*values)) if len(values) == 3 and values[2] else None
    return 1


def layout_of(
    kernel: Kernel, headings: dict[str, int], overflow: Overflow, occurrences: int, target: Target
) -> RecordLayout:
    """Where the records of ``kernel`` go; arguments as of ``lower_records``."""
    often: dict[Key, int | None] = {}
    payloads: set[Key] = set()
    counters: dict[str, None] = {}
    for heading, record, times in records_under(kernel.body):
        if record.kind == "counter":
            counters[record.region] = None
            continue
        key = key_of(heading, record)
        if record.payload is not None:
            payloads.add(key)
        if record.phase == "end":
            continue
        known = often.get(key, 0)
        often[key] = None if known is None or times is None else known + times
    slots: list[Slot] = []
    offset = 0
    for key, times in often.items():
        capacity = occurrences if times is None else min(times, occurrences)
        exact = times is not None and times <= occurrences
        if overflow == "aggregate":
            capacity, exact = 1, True
        kind = key[1]
        fields = ("start",) if kind == "mark" else ("start", "end")
        fields = (*fields, "payload") if key in payloads else fields
        words = capacity * len(fields)
        counted = None if exact and times == 1 else offset + words
        if overflow == "aggregate":
            counted = None
        slots.append(Slot(_region(key, headings), offset, capacity, fields, counted))
        offset += slots[-1].words
    return RecordLayout(
        tuple(counters),
        tuple(slots),
        overflow,
        target.cache_line_bytes // WORD_BYTES,
        target.counter_copies,
    )


def key_of(heading: str, record: Record) -> Key:
    """The region of a record.  Stages and barriers are told apart by name alone, which holds the
    heading."""
    return ("" if record.kind in ("stage", "barrier") else heading), record.kind, record.region


def _region(key: Key, headings: dict[str, int]) -> Region:
    heading, kind, name = key
    if kind in ("stage", "barrier"):
        numbers = _members(name, headings) if kind == "stage" else ()
        return Region(name, kind, "", numbers)
    own = (headings[heading],) if heading in headings else ()
    return Region(name, kind, heading, own, sampled=True)


def _members(name: str, headings: dict[str, int]) -> tuple[int, ...]:
    """The submissions that a stage's name stands for."""
    shown = [headings[part] for part in _parts(name) if part in headings]
    if SEPARATOR + "…" in name:
        return tuple(range(shown[0], shown[-1] + 1))
    return tuple(shown) or tuple(headings.values())


def _parts(name: str) -> list[str]:
    return name.partition(" (")[0].split(SEPARATOR) if "…" in name else name.split(SEPARATOR)
