"""The numbers of a persistent kernel for given sizes: its schedule and its control memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod

import numpy as np

from fusionq.base.target import Target
from fusionq.codegen import queue_layout as q
from fusionq.codegen.stage_tables import code_bodies, operand_sets, wait_forms
from fusionq.ir.nodes import ArrayParam, Persistent
from fusionq.ir.walk import is_work_group_function
from fusionq.megakernel.evaluate import Integers
from fusionq.megakernel.order import instructions, waves
from fusionq.megakernel.tiles import TileBox, TiledStage, boxes, extents_of, tiled
from fusionq.megakernel.tiling import Tiling, choose_tiling, coarser, in_groups

MOST_INSTRUCTIONS = 1 << 20
"""And about as many barrier counters, of a cache line each: with more, tiles are made larger."""


@dataclass(frozen=True)
class Counters:
    """A stage's barrier counters: ``shared`` tiles by dimension count on one; ``first`` is the
    line of the first, ``total`` that of the counter of all tiles; -1: not needed."""

    shared: tuple[int, ...]
    first: int
    total: int


@dataclass(frozen=True)
class Schedule:
    """What a persistent kernel does for given sizes.

    ``words``: the schedule as ``codegen.queue_layout`` has it; ``control_words``: the size of the
    control memory.  ``stage`` and ``tile`` are the instructions in order, ``starts`` and
    ``assigned`` each worker's positions in that order (empty: tickets only).
    """

    words: Integers
    control_words: int
    stages: tuple[TiledStage, ...]
    waits: tuple[tuple[TileBox, ...], ...]
    counters: tuple[Counters, ...]
    stage: Integers
    tile: Integers
    starts: Integers
    assigned: Integers
    workers: int
    tiling: Tiling


def make_schedule(
    body: Persistent,
    params: Sequence[Mapping[str, int]],
    memory: int,
    target: Target,
    tiling: Tiling | None = None,
) -> Schedule:
    """The schedule for stages, none of them empty, whose codes have the integer parameters
    ``params``, over ``memory`` bytes, on ``target``."""
    workers = target.resident_workers
    extents = extents_of(body, params)
    assert all(prod(e) for e in extents)
    if tiling is None:
        pipelined = memory > target.kept_bytes and is_pipelined(body, extents, params)
        tiling = tiling_of(body, extents, memory, pipelined, target)
    tiling, stages = _bounded(body, tiling, extents, target)
    waits = boxes(body, stages, params)
    counters, lines = _counters(stages, waits)
    wave = waves(stages, waits, tiling.block)
    stage, tile = instructions(stages, wave, tiling.block)
    starts, assigned = _assignment(stage, tiling, workers)
    words = _words(body, params, stages, counters, stage, tile, starts, assigned, workers)
    return Schedule(
        words, lines * target.control_line, stages, waits, counters, stage, tile, starts, assigned,
        workers, tiling,
    )  # fmt: skip


def tiling_of(
    body: Persistent,
    extents: Sequence[tuple[int, ...]],
    memory: int,
    pipelined: bool,
    target: Target,
) -> Tiling:
    """The tiling of the stages of ``body`` over ``extents``, of ``memory`` bytes in all;
    ``pipelined``: see ``choose_tiling``."""
    item_bytes = []
    for use in body.stages:
        arrays = [p for p in body.codes[use.code].kernel.params if isinstance(p, ArrayParam)]
        item_bytes.append(max(sum(p.dtype.nbytes for p in arrays), 1))
    tiling = choose_tiling(extents, item_bytes, memory, pipelined, target)
    return _bounded(body, tiling, extents, target)[0]


def _bounded(
    body: Persistent, tiling: Tiling, extents: Sequence[tuple[int, ...]], target: Target
) -> tuple[Tiling, tuple[TiledStage, ...]]:
    """``tiling``, with tiles of whole work-groups that are large enough for the instructions not to
    be too many; and the stages cut so."""
    codes = [body.codes[stage.code] for stage in body.stages]
    groups = [c.local_range if is_work_group_function(c.kernel) else None for c in codes]
    while True:
        tiling = in_groups(tiling, groups)
        stages = tuple(tiled(e, t) for e, t in zip(extents, tiling.tiles, strict=True))
        if sum(stage.tiles for stage in stages) <= MOST_INSTRUCTIONS:
            return tiling, stages
        tiling = coarser(tiling, extents, target)


def is_pipelined(
    body: Persistent, extents: Sequence[tuple[int, ...]], params: Sequence[Mapping[str, int]]
) -> bool:
    """Whether a small part of a stage waits for a small part of those before it only."""
    parts = 64
    probe = [tiled(e, (max(-(-e[0] // parts), 1), *e[1:])) for e in extents]
    for of_stage in boxes(body, probe, params):
        for box in of_stage:
            if box.low is None or box.high is None:
                return False
            width = int((box.high[0] - box.low[0]).max(initial=-1)) + 1
            if width > max(probe[box.producer].count[0] // 8, 3):
                return False
    return True


def _counters(
    stages: Sequence[TiledStage], waits: Sequence[Sequence[TileBox]]
) -> tuple[tuple[Counters, ...], int]:
    """Counters for every stage, as few as its consumers' boxes allow: where all boxes begin and
    end at multiples of some number of tiles, that many share one."""
    needs: list[list[TileBox]] = [[] for _ in stages]
    for boxes_ in waits:
        for box in boxes_:
            needs[box.producer].append(box)
    line = q.FIRST_COUNTER
    found = []
    known: dict[object, tuple[int, ...]] = {}
    """How many tiles share a counter, by the arrays that this depends on."""
    for stage, wanted in zip(stages, needs, strict=True):
        first = total = -1
        shared = (1,) * len(stage.count)
        bounded = [box for box in wanted if box.low is not None]
        if bounded:
            kind = stage.count, *[(id(box.low), id(box.high)) for box in bounded]
            if kind not in known:
                counts = enumerate(stage.count)
                known[kind] = tuple(_stride(bounded, d, count) for d, count in counts)
            shared = known[kind]
            first = line
            line += prod(-(-n // k) for n, k in zip(stage.count, shared, strict=True))
        if len(bounded) < len(wanted):
            total = line
            line += 1
        found.append(Counters(shared, first, total))
    return tuple(found), line


def _stride(wanted: Sequence[TileBox], dim: int, count: int) -> int:
    stride = 0
    for box in wanted:
        assert box.low is not None and box.high is not None
        some = ~box.is_empty()
        ends = box.high[dim][some] + 1
        for edge in (box.low[dim][some], ends[ends < count]):
            stride = gcd(stride, int(np.gcd.reduce(edge, initial=0)))
    return stride if 0 < stride < count else count


def _assignment(stage: Integers, tiling: Tiling, workers: int) -> tuple[Integers, Integers]:
    """Each worker's instructions, in order, one list after the other."""
    if tiling.assignment == "tickets" or workers == 1:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if tiling.assignment == "stages":
        block = min(tiling.block, int(stage.max()) + 1)
        worker = (stage % block) * workers // block
    else:
        worker = np.arange(len(stage)) % workers
    assigned = np.argsort(worker, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(worker, minlength=workers))])
    return starts.astype(np.int64), assigned.astype(np.int64)


def _words(
    body: Persistent,
    params: Sequence[Mapping[str, int]],
    stages: Sequence[TiledStage],
    counters: Sequence[Counters],
    stage: Integers,
    tile: Integers,
    starts: Integers,
    assigned: Integers,
    workers: int,
) -> Integers:
    order = (stage << q.TILE_BITS) | tile
    header = np.zeros(q.HEADER, np.int64)
    records: list[int] = []
    at = q.HEADER + len(stages) * q.RECORD
    waited = at + len(order) + len(starts) + len(assigned)
    waits: list[int] = []
    forms = wait_forms(body)
    parts = code_bodies(body)
    operands = operand_sets(body)
    for k, use in enumerate(body.stages):
        tiling, own, record = stages[k], counters[k], [1] * q.RECORD
        ndim = len(tiling.tile)
        record[q.TILE : q.TILE + ndim] = tiling.tile
        record[q.COUNT : q.COUNT + ndim] = tiling.count
        record[q.SHARED : q.SHARED + ndim] = own.shared
        record[q.EXTENT : q.EXTENT + ndim] = tiling.extents
        record[q.COUNTERS], record[q.TOTAL] = own.first, own.total
        record[q.BODY], record[q.OPERANDS] = parts[use.code], operands[k]
        record[q.WAITS], record[q.WAITED] = len(use.producers), waited + len(waits)
        records += record
        for producer, (form, names) in zip(use.producers, forms.of_codes[use.code], strict=True):
            values = [params[k][name] for name in names]
            waits += [producer, form, *values, *(0,) * (forms.values - len(values))]
    header[q.INSTRUCTIONS] = len(order)
    header[q.WORKERS] = workers
    header[q.STATIC] = len(starts) > 0
    header[q.ORDER] = at
    header[q.STARTS] = at + len(order)
    header[q.ASSIGNMENT] = at + len(order) + len(starts)
    tables = [header, np.array(records, np.int64), order, starts, order[assigned]]
    return np.concatenate([*tables, np.array(waits, np.int64)])
