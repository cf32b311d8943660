"""How large a persistent kernel's tiles are, and who does them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from fusionq.codegen.queue_layout import SUB_GROUP

CACHE_OF_A_WORKER = 1 << 19
"""Bytes that the tiles between a worker's first and last stage should stay within."""

CACHE_OF_ALL = 1 << 24
"""Bytes below which a list's memory is taken to stay in the caches from launch to launch."""

SMALLEST_TILE = 1024
"""Work-items for which taking an instruction costs little."""

LARGEST_TILE = 1 << 15

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
        block = len(extents)
        mine = -(-block // workers)
        size = CACHE_OF_A_WORKER // (2 * mine * max(item_bytes))
        size = min(max(size, SMALLEST_TILE), LARGEST_TILE)
        rows = -(-max(e[0] for e in extents) // _shape(extents[0], size)[0])
        long = rows >= 8 * block
        return Tiling(
            tuple(_shape(e, size) for e in extents), block, "stages" if long else "tickets"
        )
    if items <= SMALL_STAGE:
        return Tiling(
            tuple(_shape(e, max(-(-prod(e) // workers), SUB_GROUP)) for e in extents),
            1,
            "turns",
        )
    size = max(items // (4 * workers), SMALLEST_TILE)
    size = min(size, 4 * LARGEST_TILE)
    return Tiling(tuple(_shape(e, size) for e in extents), 1, "tickets")


def coarser(tiling: Tiling, extents: Sequence[tuple[int, ...]]) -> Tiling:
    """``tiling`` with tiles of twice as many work-items."""
    tiles = tuple(_shape(e, 2 * prod(t)) for e, t in zip(extents, tiling.tiles, strict=True))
    return replace(tiling, tiles=tiles)


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
