"""How large a persistent kernel's tiles are, and who does them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from math import gcd, prod
from typing import Literal

from fusionq.base.frozen import dataclass
from fusionq.base.target import Target

SLABS_A_TILE = 2
"""On GPUs a tile of stages of about the same size has all of the dimensions but the first, as a
plane, while as many of them as there are workers take so many times the memory that stays in the
cache for all: of larger ones so few are under way at once that most workers wait (H100, 16 steps of
7 points over 256 x 256 x 256 floats 8.1 ms, 2.3 with tiles of 16 rows, 1.2 with
vectors in these)."""

FEWEST_ROWS, BETWEEN = 5, 2
"""Rows of tiles, or planes, of each stage of a pipeline that stay in the cache for all, at least;
and of these those that a stage has done, and the next one does not do yet.  H100, 8 steps of 7
points over 320 x 320 x 320 float64: all stages at once with one row each 6.2 ms, two 5.1, four
stages with five 4.6; 16 steps over 256 x 256 x 256 floats, with two 1.20, eight steps with three or
four 1.16, with five 1.25."""

Assignment = Literal["stages", "shares", "turns", "tickets"]
"""Who does an instruction: each worker some consecutive ``stages`` of each block (neighbouring
stages of a pipeline in one core's cache), or its share of the tiles of each stage, side by side
(each part of memory in one core's cache); workers take ``turns``; or whoever takes its ``ticket``
first."""


@dataclass(frozen=True)
class Tiling:
    """Tile shapes by stage; ``block``: stages that run as one pipeline; ``rows``: rows of tiles of
    each that are done together, so that as many tiles wait for none of each other."""

    tiles: tuple[tuple[int, ...], ...]
    block: int
    assignment: Assignment
    rows: int = 1


def choose_tiling(
    extents: Sequence[tuple[int, ...]],
    item_bytes: Sequence[int],
    memory: int,
    pipelined: bool,
    target: Target,
    whole: Collection[int] = (),
    even: bool = False,
) -> Tiling:
    """The tiling of stages over ``extents``, whose work-items touch ``item_bytes`` each, of
    ``memory`` bytes in all.

    ``pipelined``: a tile waits for few tiles of each earlier stage, so that one part of the
    memory can go through many stages before the next does.  ``whole``: small stages of which
    others wait for all; they are one tile each.  ``even``: equal parts of a stage are about the
    same work.
    """
    items = max([prod(e) for e in set(extents)])
    workers, line = target.resident_workers, target.worker_size
    if pipelined and memory > target.held_bytes:
        cut = [e for k, e in enumerate(extents) if k not in whole]
        largest, sizes = target.largest_tile, [prod(e) for e in cut]
        if target.device.groups_in_workers and max(sizes) < 2 * min(sizes):
            kept = target.kept_bytes * items // memory
            largest = min(largest, SLABS_A_TILE * max(kept // workers, target.smallest_tile))
        slabs = _slabs(cut, _pipelined_items(items, memory, target), largest, target)
        left = iter(slabs)
        tiles = tuple(e if k in whole else next(left) for k, e in enumerate(extents))
        large = _large(cut, slabs, target)
        mostly = 2 * len(large) >= len(cut)
        cut, slabs = [e for e, _ in large], tuple(t for _, t in large)
        size = max(prod(t) * n for t, n in zip(tiles, item_bytes, strict=True))
        cache = target.worker_cache_bytes // target.block_cache_share
        block = workers * max(cache // size, 1)
        block = max(block, min(target.shortest_block, target.kept_bytes // (3 * size)), 1)
        row = max(_row_items(e, t) * n for e, t, n in zip(extents, tiles, item_bytes, strict=True))
        if target.device.groups_in_workers:
            block = max(min(block, target.kept_bytes // (FEWEST_ROWS * row)), 1)
        blocks = -(-len(large) // block)
        block = -(-len(extents) // blocks)
        rows = _rows(cut, slabs)
        alike = mostly and max(map(prod, slabs)) < 2 * min(map(prod, slabs))
        if alike and workers <= block <= min(rows) // 8:
            return Tiling(tiles, block, "stages")
        together = target.kept_bytes // (block * row) if block < workers else 1
        if target.device.groups_in_workers:
            together -= BETWEEN
        return Tiling(tiles, block, "tickets", max(together, 1))
    if items <= target.small_stage:
        shapes = {e: _shape(e, max(-(-prod(e) // workers), line), line) for e in set(extents)}
        return Tiling(tuple([shapes[e] for e in extents]), 1, "turns")
    size = max(items // (target.tiles_per_worker * workers), target.smallest_tile)
    size = min(size, target.largest_tile)
    # A smaller stage may have as much to do for each of its work-items as the largest has for many.
    shares = {e: max(-(-prod(e) // workers), line) for e in set(extents)}
    shapes = {e: _shape(e, min(size, share), line) for e, share in shares.items()}
    if not pipelined:
        shapes = {e: _in_rounds(e, shape, workers, target) for e, shape in shapes.items()}
    if target.device.groups_in_workers and not pipelined:
        # Taking turns costs nothing, and each worker knows what comes next.
        shapes = {e: _whole_workers(shape, line) for e, shape in shapes.items()}
        return Tiling(tuple([shapes[e] for e in extents]), 1, "turns")
    near = even and memory <= target.held_bytes and not target.device.groups_in_workers
    return Tiling(tuple([shapes[e] for e in extents]), 1, "shares" if near else "tickets")


def _whole_workers(shape: tuple[int, ...], line: int) -> tuple[int, ...]:
    """``shape`` with rows enough that work-groups side by side leave no lanes of a worker idle."""
    inner = prod(shape[1:])
    together = line // gcd(line, inner)
    if len(shape) == 1 or shape[0] <= together:
        return shape
    return (-(-shape[0] // together) * together, *shape[1:])


def _in_rounds(
    extents: tuple[int, ...], shape: tuple[int, ...], workers: int, target: Target
) -> tuple[int, ...]:
    """``shape``, or larger tiles, of which a few less make whole rounds of the workers: all wait
    while a few of them do the last tiles."""
    counts = [-(-e // t) for e, t in zip(extents, shape, strict=True)]
    rounds = prod(counts) // workers
    if not 0 < rounds < target.rounds_of_tiles or prod(counts) == rounds * workers:
        return shape
    d = max(range(len(counts)), key=counts.__getitem__)
    count = rounds * workers * counts[d] // prod(counts)
    size = -(-extents[d] // max(count, 1))
    if d + 1 == len(extents):
        size = -(-size // target.worker_size) * target.worker_size
    return (*shape[:d], size, *shape[d + 1 :])


def coarser(tiling: Tiling, extents: Sequence[tuple[int, ...]], target: Target) -> Tiling:
    """``tiling`` with tiles of twice as many work-items."""
    tiles = tuple(
        _shape(e, 2 * prod(t), target.worker_size)
        for e, t in zip(extents, tiling.tiles, strict=True)
    )
    return replace(tiling, tiles=tiles)


def in_groups(tiling: Tiling, groups: Sequence[tuple[int, ...] | None]) -> Tiling:
    """``tiling`` with tiles of whole work-groups where a stage has such, of ``groups``."""
    tiles = tuple(
        tile if group is None else tuple(-(-t // n) * n for t, n in zip(tile, group, strict=True))
        for tile, group in zip(tiling.tiles, groups, strict=True)
    )
    return replace(tiling, tiles=tiles)


def spread(
    tiling: Tiling,
    extents: Sequence[tuple[int, ...]],
    groups: Sequence[tuple[int, ...] | None],
    together: Sequence[Sequence[int]],
    workers: int,
) -> Tiling:
    """``tiling`` with tiles of fewer work-groups, of ``groups``, where a stage has fewer tiles than
    there are ``workers``: all wait for the last one, which then has less to do, and memory to
    itself.  Stages that are done ``together``, as none waits for another, have tiles of as many
    work-groups, one for each worker."""
    tiles = list(tiling.tiles)
    cut: dict[int, tuple[int, int]] = {}
    """Work-groups of a tile in the first dimension, and of the stage where the others are cut into
    tiles as they are, for stages that do not keep all workers busy."""
    for k, (tile, extent, group) in enumerate(zip(tiles, extents, groups, strict=True)):
        if group is not None:
            counts = [-(-e // g) for e, g in zip(extent, group, strict=True)]
            held = [-(-t // g) for t, g in zip(tile, group, strict=True)]
            others = prod(-(-c // h) for c, h in zip(counts[1:], held[1:], strict=True))
            if -(-counts[0] // held[0]) * others < workers:
                fewest = -(-counts[0] * others // workers)
                cut[k] = min(fewest, held[0]), counts[0] * others
    for wave in together:
        if len(wave) > 1 and all(k in cut for k in wave):
            size = max(cut[k][0] for k in wave)
            while sum(-(-cut[k][1] // size) for k in wave) > workers >= len(wave):
                size += 1
            if sum(-(-cut[k][1] // cut[k][0]) for k in wave) > workers:
                cut |= {k: (size, cut[k][1]) for k in wave}
    for k, (size, _) in cut.items():
        group = groups[k]
        assert group is not None
        tiles[k] = (size * group[0], *tiles[k][1:])
    return replace(tiling, tiles=tuple(tiles))


def _pipelined_items(items: int, memory: int, target: Target) -> int:
    """Work-items of a pipeline's tile, of stages of up to ``items`` over ``memory`` bytes: a few
    tiles for each of some stages have to stay in a worker's cache."""
    cache = target.worker_cache_bytes // target.worker_cache_share
    few = cache // target.kept_tiles * items // memory
    return min(target.pipelined_tile, max(few, target.smallest_tile))


def _row_items(extents: tuple[int, ...], tile: tuple[int, ...]) -> int:
    """Work-items of the tiles that agree in the first dimension."""
    return tile[0] * prod(extents[1:])


def _slabs(
    extents: Sequence[tuple[int, ...]], items: int, largest: int, target: Target
) -> tuple[tuple[int, ...], ...]:
    """Tiles of a pipeline's stages, of about so many ``items``, or the ``largest``.  Each stage is
    cut into about as many along the first dimension, so that a tile of one waits for about one of
    another; small ones into fewer, since that is work, too."""
    tiles = tuple(_slab(e, items, largest, target) for e in extents)
    if max(prod(e[1:]) for e in extents) > largest:
        return tiles
    large = _large(extents, tiles, target)
    rows = _rows(*zip(*large, strict=True))
    if max(rows) < 2 * min(rows) and 2 * len(large) >= len(extents):
        if len(large) == len(extents):
            return tiles
        parts, alike, few = max(rows), set(large), target.small_stage_rows
        return tuple(
            t if (e, t) in alike else (max((few * e[0] + parts // 2) // parts, 1), *e[1:])
            for e, t in zip(extents, tiles, strict=True)
        )
    parts = -(-max(prod(e) for e in extents) // target.unequal_tile)
    return tuple((-(-e[0] // parts), *e[1:]) for e in extents)


def _large(
    extents: Sequence[tuple[int, ...]], tiles: Sequence[tuple[int, ...]], target: Target
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The ``extents`` that are not small, each with its tile."""
    parts, most = target.small_stage_parts, max(map(prod, extents))
    return [(e, t) for e, t in zip(extents, tiles, strict=True) if parts * prod(e) >= most]


def _rows(extents: Sequence[tuple[int, ...]], tiles: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """How many tiles each stage has along its first dimension."""
    return tuple(-(-e[0] // t[0]) for e, t in zip(extents, tiles, strict=True))


def _slab(extents: tuple[int, ...], items: int, largest: int, target: Target) -> tuple[int, ...]:
    """A tile of a pipeline's work-items or, if that is no more than the ``largest``, as much of the
    first dimension and all of the others: it waits for its neighbours in one dimension only."""
    slice_ = prod(extents[1:])
    if slice_ > largest or len(extents) == 1:
        return _shape(extents, items, target.worker_size)
    return (min(max(items // max(slice_, 1), 1), max(extents[0], 1)), *extents[1:])


@lru_cache(1024)
def _shape(extents: tuple[int, ...], items: int, line: int) -> tuple[int, ...]:
    """A tile of about ``items`` work-items, as much as it can of the last dimension, then of the
    one before: contiguous memory.  Tiles along a dimension are even, and along the last whole
    lines of ``line`` work-items."""
    shape: list[int] = []
    left = items
    for position, extent in enumerate(reversed(extents)):
        parts = -(-extent // max(min(extent, left), 1)) if extent else 1
        size = max(-(-extent // parts), 1)
        if position == 0 and size < extent:
            size = -(-size // line) * line
        shape.insert(0, size)
        left //= size
    return tuple(shape)
