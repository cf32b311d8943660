"""How large a persistent kernel's tiles are, and who does them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from fusionq.codegen.queue_layout import SUB_GROUP

CACHE_OF_A_WORKER = 1 << 18
"""Bytes that the tiles between a worker's first and last stage of a block should stay within."""

CACHE_OF_ALL = 1 << 24
"""Bytes below which a list's memory is taken to stay in the caches from launch to launch."""

SMALLEST_TILE = 1024
"""Work-items for which taking an instruction costs little."""

PIPELINED_TILE = 1 << 12
"""Work-items of a tile that goes through many stages: few enough for a core's cache."""

LARGEST_OF_UNEQUAL = 1 << 14
"""Work-items of the largest tile of a part of the memory where stages differ in size, as those of
a reduction by rows do: the other stages' tiles are smaller."""

SHORTEST_BLOCK = 8
"""Stages that the memory goes through at once even where they leave a core's cache."""

LARGEST_TILE = 1 << 17

SMALL_STAGE = 1 << 16
"""Work-items below which a stage is cut into one tile for each worker."""

Assignment = Literal["stages", "turns", "tickets"]
"""Who does an instruction: each worker some consecutive ``stages`` of each block (neighbouring
stages of a pipeline in one core's cache); workers take ``turns``; or whoever takes its ``ticket``
first."""


@dataclass(frozen=True)
class Tiling:
    """Tile shapes by stage; ``block``: stages that run as one pipeline."""

    tiles: tuple[tuple[int, ...], ...]
    block: int
    assignment: Assignment


def choose_tiling(
    extents: Sequence[tuple[int, ...]],
    item_bytes: Sequence[int],
    memory: int,
    pipelined: bool,
    workers: int,
) -> Tiling:
    """The tiling of stages over ``extents``, whose work-items touch ``item_bytes`` each, of
    ``memory`` bytes in all.

    ``pipelined``: a tile waits for few tiles of each earlier stage, so that one part of the
    memory can go through many stages before the next does.
    """
    items = max(prod(e) for e in extents)
    if pipelined and memory > CACHE_OF_ALL:
        tiles = _slabs(extents)
        size = max(prod(t) * n for t, n in zip(tiles, item_bytes, strict=True))
        block = workers * max(CACHE_OF_A_WORKER // size, 1)
        block = max(block, min(SHORTEST_BLOCK, CACHE_OF_ALL // (3 * size)), 1)
        block = -(-len(extents) // -(-len(extents) // block))
        rows = _rows(extents, tiles)
        alike = max(map(prod, tiles)) < 2 * min(map(prod, tiles))
        return Tiling(tiles, block, "stages" if alike and min(rows) >= 8 * block else "tickets")
    if items <= SMALL_STAGE:
        return Tiling(
            tuple(_shape(e, max(-(-prod(e) // workers), SUB_GROUP)) for e in extents),
            1,
            "turns",
        )
    size = max(items // (4 * workers), SMALLEST_TILE)
    size = min(size, LARGEST_TILE)
    return Tiling(tuple(_shape(e, size) for e in extents), 1, "tickets")


def coarser(tiling: Tiling, extents: Sequence[tuple[int, ...]]) -> Tiling:
    """``tiling`` with tiles of twice as many work-items."""
    tiles = tuple(_shape(e, 2 * prod(t)) for e, t in zip(extents, tiling.tiles, strict=True))
    return replace(tiling, tiles=tiles)


def _slabs(extents: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Tiles of a pipeline's stages.  Each stage is cut into about as many along the first
    dimension, so that a tile of one waits for about one of another."""
    tiles = tuple(_slab(e, PIPELINED_TILE) for e in extents)
    rows = _rows(extents, tiles)
    if max(rows) < 2 * min(rows) or max(prod(e[1:]) for e in extents) > LARGEST_TILE:
        return tiles
    parts = -(-max(prod(e) for e in extents) // LARGEST_OF_UNEQUAL)
    return tuple((-(-e[0] // parts), *e[1:]) for e in extents)


def _rows(
    extents: Sequence[tuple[int, ...]], tiles: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """How many tiles each stage has along its first dimension."""
    return tuple(-(-e[0] // t[0]) for e, t in zip(extents, tiles, strict=True))


def _slab(extents: tuple[int, ...], items: int) -> tuple[int, ...]:
    """A tile of about ``items`` work-items or, if that is not too many, as much of the first
    dimension and all of the others: it waits for its neighbours in one dimension only."""
    slice_ = prod(extents[1:])
    if slice_ > LARGEST_TILE or len(extents) == 1:
        return _shape(extents, items)
    return (min(max(items // max(slice_, 1), 1), max(extents[0], 1)), *extents[1:])


def _shape(extents: tuple[int, ...], items: int) -> tuple[int, ...]:
    """A tile of about ``items`` work-items, as much as it can of the last dimension, then of the
    one before: contiguous memory.  Tiles along a dimension are even."""
    shape: list[int] = []
    left = items
    for position, extent in enumerate(reversed(extents)):
        parts = -(-extent // max(min(extent, left), 1)) if extent else 1
        size = max(-(-extent // parts), 1)
        if position == 0 and size < extent:
            size = -(-size // SUB_GROUP) * SUB_GROUP
        shape.insert(0, size)
        left //= size
    return tuple(shape)
