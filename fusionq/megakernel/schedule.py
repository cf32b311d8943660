"""The numbers of a persistent kernel for given sizes: its schedule and its control memory."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import prod

import numpy as np

from fusionq.base.errors import DeviceError
from fusionq.base.frozen import dataclass
from fusionq.base.identity_cache import cached_by_identity
from fusionq.base.target import Target
from fusionq.codegen import queue_layout as q
from fusionq.codegen.ring_shape import RingShape, ring_shape, streams_to
from fusionq.codegen.stage_tables import code_bodies, operands_of, wait_forms
from fusionq.codegen.streamed_loops import Streams
from fusionq.ir.nodes import ArrayParam, Persistent
from fusionq.ir.walk import takes_work_groups
from fusionq.ir.work_bound import WorkBound
from fusionq.megakernel.assignment import assigned_lists
from fusionq.megakernel.counters import Counters, counters_of, no_counters
from fusionq.megakernel.evaluate import Integers
from fusionq.megakernel.even_work import is_even
from fusionq.megakernel.listed_waits import MOST_LISTED, listed_waits
from fusionq.megakernel.order import instructions, waves
from fusionq.megakernel.tiles import (
    TileBox,
    TiledStage,
    boxes,
    extents_of,
    tiled,
    whole_boxes,
)
from fusionq.megakernel.tiling import Tiling, choose_tiling, coarser, in_groups, spread

MOST_INSTRUCTIONS = 1 << 20
"""And about as many barrier counters, of a cache line each: with more, tiles are made larger."""
MOST_GROUPS = 1 << 31
"""Work-groups of a tile that are threads of a worker, which finds the ids of each by divisions in
32 bits; of as many even the empty ones would take minutes."""


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
    streams: Streams | None = None
    """The rows that come to workers ahead of all waits."""
    rings: RingShape | None = None
    """By what they come."""

    @property
    def reads_ahead(self) -> bool:
        """Whether workers ask for memory before they wait."""
        return bool(self.words[q.AHEAD])


def make_schedule(
    body: Persistent,
    params: Sequence[Mapping[str, int]],
    memory: int,
    target: Target,
    tiling: Tiling | None = None,
) -> Schedule:
    """The schedule for stages, none of them empty, whose codes have the integer parameters
    ``params``, over ``memory`` bytes, on ``target``.  DeviceError where a tile has more work-groups
    than a worker can tell apart."""
    workers = target.resident_workers
    extents = extents_of(body, params)
    assert all(prod(e) for e in extents)
    if tiling is None:
        whole = None
        if memory > target.held_bytes:
            whole = pipelined(body, extents, params, target.worker_size)
        tiling = _chosen_tiling(body, extents, memory, whole, target)
    tiling, stages = _bounded(body, tiling, extents, target)
    waits = whole_boxes(body) if _is_in_order(stages, workers) else boxes(body, stages, params)
    few = target.device.groups_in_workers
    order = _order_of(body, stages, waits, tiling, workers, target.control_line, few)
    words = _with_sizes(order.words, body, stages, params)
    if target.device.reads_ahead:
        words[q.AHEAD] = target.read_ahead_bytes * target.device.compute_units // workers
    streams = _streams(body, target) if len(order.starts) else None
    return Schedule(
        words, order.lines * target.control_line, stages,
        waits, order.counters, order.stage, order.tile, order.starts, order.assigned, workers,
        tiling, streams, None if streams is None else ring_shape(body, target),
    )  # fmt: skip


def _is_in_order(stages: Sequence[TiledStage], workers: int) -> bool:
    """Whether a single worker does one tile after the other, each of them a whole stage."""
    return workers == 1 and all([stage.tiles == 1 for stage in stages])


def _streams(body: Persistent, target: Target) -> Streams | None:
    """What comes to workers that have other lanes beside theirs."""
    if not target.device.streams_rows or target.worker_size != target.streaming_lanes:
        return None
    return streams_to(body, target)


def tiling_of(
    body: Persistent,
    extents: Sequence[tuple[int, ...]],
    memory: int,
    whole: frozenset[int] | None,
    target: Target,
) -> Tiling:
    """The tiling of the stages of ``body`` over ``extents``, of ``memory`` bytes in all; ``whole``:
    what ``pipelined`` says of them."""
    tiling = _chosen_tiling(body, extents, memory, whole, target)
    return _bounded(body, tiling, extents, target)[0]


def _chosen_tiling(
    body: Persistent,
    extents: Sequence[tuple[int, ...]],
    memory: int,
    whole: frozenset[int] | None,
    target: Target,
) -> Tiling:
    of_codes = _item_bytes(body)
    item_bytes = [of_codes[use.code] for use in body.stages]
    tiling = choose_tiling(
        extents, item_bytes, memory, whole is not None, target, whole or (), is_even(body)
    )
    if target.device.groups_in_workers and tiling.assignment == "turns":
        groups, together = _work_groups(body), _together(body)
        tiling = spread(tiling, extents, groups, together, target.resident_workers)
    return tiling


@cached_by_identity
def _together(body: Persistent) -> list[list[int]]:
    """The stages in order, as many together as wait for none of each other."""
    found: list[list[int]] = []
    for k, stage in enumerate(body.stages):
        if found and found[-1][0] > max(stage.producers, default=-1):
            found[-1].append(k)
        else:
            found.append([k])
    return found


@cached_by_identity
def _item_bytes(body: Persistent) -> list[int]:
    """For each code the bytes of one element of each of its arrays."""
    arrays = [[p for p in code.kernel.params if isinstance(p, ArrayParam)] for code in body.codes]
    return [max(sum(p.dtype.nbytes for p in of_code), 1) for of_code in arrays]


def _bounded(
    body: Persistent, tiling: Tiling, extents: Sequence[tuple[int, ...]], target: Target
) -> tuple[Tiling, tuple[TiledStage, ...]]:
    """``tiling``, with tiles of whole work-groups that are large enough for the instructions not to
    be too many; and the stages cut so."""
    groups = _work_groups(body)
    while True:
        if any(groups):
            tiling = in_groups(tiling, groups)
        stages = tuple([tiled(e, t) for e, t in zip(extents, tiling.tiles, strict=True)])
        if sum([stage.tiles for stage in stages]) <= MOST_INSTRUCTIONS:
            if target.device.groups_in_workers:
                _check_groups(stages, groups)
            return tiling, stages
        tiling = coarser(tiling, extents, target)


def _check_groups(
    stages: Sequence[TiledStage], groups: Sequence[tuple[int, ...] | None]
) -> None:
    """DeviceError where a tile has more than ``MOST_GROUPS``."""
    for k, (stage, group) in enumerate(zip(stages, groups, strict=True)):
        if group is None:
            continue
        sizes = zip(stage.tile, stage.extents, group, strict=True)
        found = prod([-(-min(tile, extent) // size) for tile, extent, size in sizes])
        if found > MOST_GROUPS:
            raise DeviceError(
                f"a tile of stage {k} of a persistent kernel, over {stage.extents} work-items, has "
                f"{found:,} work-groups, more than {MOST_GROUPS:,}; submit fewer work-groups at "
                f"once, or choose another strategy"
            )


@cached_by_identity
def _work_groups(body: Persistent) -> list[tuple[int, ...] | None]:
    """For each stage the work-groups that its tiles hold whole, if it has such."""
    of_codes = [c.local_range if takes_work_groups(c.kernel) else None for c in body.codes]
    return [of_codes[stage.code] for stage in body.stages]


_PARTS = 64
"""Into how many parts stages are cut to see whether they are a pipeline."""


def pipelined(
    body: Persistent,
    extents: Sequence[tuple[int, ...]],
    params: Sequence[Mapping[str, int]],
    lanes: int,
) -> frozenset[int] | None:
    """Whether a small part of a stage waits for a small part of those before it only, None if not:
    the stages of no more work-items than such a part of the largest for all of which others wait,
    and those that do the same.  A row that a whole plane waits for is one, if it waits for a few
    rows of planes itself, such as the first and the last.  Work-items that each loop over part of
    an array, as those of a reduction, are not few if a worker with ``lanes`` has several rounds of
    them: then one does what all others wait for."""
    wide = _wide(body, extents, params, frozenset())
    if wide:
        part = max(map(prod, extents)) // _PARTS
        bodies = code_bodies(body)
        alike = {(bodies[body.stages[k].code], extents[k]) for k in wide}
        wide = frozenset(
            k for k, use in enumerate(body.stages) if (bodies[use.code], extents[k]) in alike
        )
        loops = _loops(body)
        fewest = [min(part, lanes) if loops[use.code] else part for use in body.stages]
        if any(prod(extents[k]) > fewest[k] for k in wide) or _wide(body, extents, params, wide):
            return None
    return wide


@cached_by_identity
def _loops(body: Persistent) -> list[bool]:
    """For each code whether its work-items loop over what extents, or data, say."""
    return [WorkBound(code.kernel).depends_on_shapes for code in body.codes]


def _wide(
    body: Persistent,
    extents: Sequence[tuple[int, ...]],
    params: Sequence[Mapping[str, int]],
    whole: frozenset[int],
) -> frozenset[int]:
    """The stages of which a part of another waits for many parts; those of ``whole`` are one."""
    probe = [
        tiled(e, e if k in whole else (max(-(-e[0] // _PARTS), 1), *e[1:]))
        for k, e in enumerate(extents)
    ]
    found = set()
    for of_stage in boxes(body, probe, params):
        for box in of_stage:
            most = max(probe[box.producer].count[0] // 8, 3)
            if box.low is None or box.high is None:
                width = probe[box.producer].count[0]
            else:
                width = int((box.high[0] - box.low[0]).max(initial=-1)) + 1
            if width > most:
                found.add(box.producer)
    return frozenset(found)


@dataclass(frozen=True)
class _Order:
    """What the schedules of one persistent kernel have in common whose stages are cut into as many
    tiles, which wait for the same tiles: all but the sizes.

    ``lines``: those of the control memory.  The others are a Schedule's; ``words`` without sizes.
    """

    counters: tuple[Counters, ...]
    lines: int
    stage: Integers
    tile: Integers
    starts: Integers
    assigned: Integers
    words: Integers


KEPT_ORDERS, LARGEST_KEPT = 64, 1 << 10
"""Orders that are kept for each kernel, and of how many instructions at most: those of small lists,
whose sizes may vary from call to call."""


def _order_of(
    body: Persistent,
    stages: Sequence[TiledStage],
    waits: Sequence[Sequence[TileBox]],
    tiling: Tiling,
    workers: int,
    control_line: int,
    few: bool,
) -> _Order:
    counts = tuple([stage.count for stage in stages])
    known = _orders(body)
    key = None
    work: list[int] = []
    if tiling.assignment == "stages":
        of_codes = _item_bytes(body)
        work = [
            prod(stage.extents) * of_codes[use.code]
            for stage, use in zip(stages, body.stages, strict=True)
        ]
    if sum([prod(count) for count in counts]) <= LARGEST_KEPT:
        how = tiling.block, tiling.rows, tiling.assignment, tuple(work)
        key = counts, _contents(waits), how, workers, control_line, few
        found = known.get(key)
        if found is not None:
            return found
    if workers == 1:
        counters, lines = no_counters(stages)
    else:
        counters, lines = counters_of(stages, waits, few and tiling.block == 1)
    wave = waves(stages, waits, tiling.block, tiling.rows)
    stage, tile = instructions(stages, wave, tiling.block)
    starts, assigned = assigned_lists(stage, tile, tiling, workers, work)
    words = _words(body, stages, counters, stage, tile, starts, assigned, workers)
    if few and workers > 1 and len(starts) and len(stage) <= MOST_LISTED:
        place = words[q.STATIC] = len(words)
        lists = listed_waits(stages, waits, counters, stage, tile, starts, assigned, place)
        words = np.concatenate([words, lists])
    words[q.GIVEN] = lines
    lines += workers * q.table_lines(operands_of(body).count, control_line)
    order = _Order(counters, lines, stage, tile, starts, assigned, words)
    if key is not None:
        if len(known) >= KEPT_ORDERS:
            known.clear()
        known[key] = order
    return order


@cached_by_identity
def _orders(body: Persistent) -> dict[Hashable, _Order]:
    """The orders that are kept for ``body``, by what they depend on."""
    return {}


def _contents(waits: Sequence[Sequence[TileBox]]) -> Hashable:
    """What the boxes of waits contain; those of stages that are alike share their arrays."""
    known: dict[int, bytes] = {}
    found: list[bytes | None] = []
    for of_stage in waits:
        for box in of_stage:
            contents = None
            if box.low is not None and box.high is not None:
                contents = known.get(id(box.low))
                if contents is None:
                    arrays = *box.low, *box.high
                    contents = known[id(box.low)] = b"".join([a.tobytes() for a in arrays])
            found.append(contents)
    return tuple(found)


def _words(
    body: Persistent,
    stages: Sequence[TiledStage],
    counters: Sequence[Counters],
    stage: Integers,
    tile: Integers,
    starts: Integers,
    assigned: Integers,
    workers: int,
) -> Integers:
    """The schedule's words, without the sizes of ``_with_sizes``."""
    order = (stage << q.TILE_BITS) | tile
    header = np.zeros(q.HEADER, np.int64)
    records: list[int] = []
    forms = wait_forms(body)
    parts = code_bodies(body)
    operands = operands_of(body)
    begins: dict[tuple[int, ...], int] = {}
    cells: list[int] = []
    for row in operands.rows:
        if row not in begins:
            begins[row] = q.HEADER + len(stages) * q.RECORD + len(cells)
            cells += row
    waited = q.HEADER + len(stages) * q.RECORD + len(cells)
    waits: list[int] = []
    for k, use in enumerate(body.stages):
        own, record = counters[k], [1] * q.RECORD
        ndim = len(stages[k].count)
        record[q.COUNT : q.COUNT + ndim] = stages[k].count
        record[q.SHARED : q.SHARED + ndim] = own.shared
        record[q.COUNTERS], record[q.TOTAL] = own.first, own.total
        record[q.BODY] = parts[use.code]
        # A single worker has done all that comes before.
        count = len(use.producers) if workers > 1 else 0
        record[q.WAITS] = waited + len(waits) << q.WAITED_SHIFT | count
        records += record
        for producer, (form, _) in zip(use.producers, forms.of_codes[use.code], strict=True):
            waits += [form << q.FORM_SHIFT | producer, *(0,) * forms.values]
    records[q.OPERANDS :: q.RECORD] = [begins[row] for row in operands.rows]
    header[q.INSTRUCTIONS] = len(order)
    header[q.WORKERS] = workers
    header[q.STATIC] = len(starts) > 0
    at = waited + len(waits)
    header[q.ORDER] = at
    header[q.STARTS] = at + len(order)
    header[q.ASSIGNMENT] = at + len(order) + len(starts)
    of_stages = np.array([*records, *cells, *waits], np.int64)
    return np.concatenate([header, of_stages, order, starts, order[assigned]])


def _with_sizes(
    words: Integers,
    body: Persistent,
    stages: Sequence[TiledStage],
    params: Sequence[Mapping[str, int]],
) -> Integers:
    """A schedule's ``words`` with the stages' extents, the shapes of their tiles, and the values of
    the waits' closed forms."""
    words = words.copy()
    records = words[q.HEADER :][: len(stages) * q.RECORD].reshape(len(stages), q.RECORD)
    records[:, q.TILE : q.TILE + q.DIMS] = [(*s.tile, 1, 1)[: q.DIMS] for s in stages]
    records[:, q.EXTENT : q.EXTENT + q.DIMS] = [(*s.extents, 1, 1)[: q.DIMS] for s in stages]
    forms = wait_forms(body)
    if forms.values:
        values: list[list[int]] = []
        for use, own in zip(body.stages, params, strict=True):
            for _, names in forms.of_codes[use.code]:
                padding = [0] * (forms.values - len(names))
                values.append([own[name] for name in names] + padding)
        if values:
            length = q.VALUES + forms.values
            waits = words[records[0, q.WAITS] >> q.WAITED_SHIFT :][: len(values) * length]
            waits.reshape(len(values), length)[:, q.VALUES :] = values
    return words
