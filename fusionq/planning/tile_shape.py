"""The extents of overlapped tiles: little computed twice, little memory, work for all workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product
from math import ceil, prod

from fusionq.base.frozen import dataclass
from fusionq.base.target import Target
from fusionq.codegen.row_loops import lanes_of
from fusionq.passes.sliding_window import ring_of

Box = tuple[int, ...]

WINDOWS = (1, 2, 4)
"""Planes that a sliding window goes on by, where its local memory is a ring of planes."""

WINDOW_MARGIN = 1.15
"""How much less a window has to take by the model, which knows neither what barriers cost compilers
nor that rows are read ahead over fewer others: three 5-point means of planes, predicted 1.05 times
as fast, took 1.07 times as long; 7-point means of boxes, predicted 1.28 times as fast, 0.7."""


@dataclass(frozen=True)
class Growth:
    """A box in two tiles: its extents grow with those of the tile."""

    first: tuple[Box, Box]
    second: tuple[Box, Box]
    """A tile, and the box in it."""

    def at(self, tile: Box) -> Box:
        """About how large the box is in ``tile``."""
        (a, small), (b, large) = self.first, self.second
        if len(small) != len(tile):
            return tuple(map(max, small, large))
        return tuple(
            max(ceil(low + (high - low) / (y - x) * (n - x)), 1)
            for x, low, y, high, n in zip(a, small, b, large, tile, strict=True)
        )


@dataclass(frozen=True)
class TileCosts:
    """What work-groups do for a tile: the boxes of work-items with the seconds that each takes
    (None: the tile itself), and the boxes of elements in local memory with the bytes of each.
    ``waits``: of each box of work-items, the seconds of one alone, where work-items are threads
    that wait.  ``slides``: the boxes of tiles side by side in the first dimension differ in that
    only, so that a work-group may keep a window of them."""

    items: Sequence[tuple[Growth | None, float]]
    elements: Sequence[tuple[Growth, int]]
    waits: Sequence[float] = ()
    slides: bool = False


@dataclass(frozen=True, slots=True)
class TileShape:
    """What a work-group of ``group`` does: a ``tile``, all at once, or as a sliding ``window`` of
    so many planes at a time."""

    tile: Box
    group: Box
    window: int | None = None

    @property
    def at_once(self) -> Box:
        """The part of the tile whose elements are in local memory together."""
        return self.tile if self.window is None else (self.window, *self.tile[1:])


def best_tile(
    extents: Box, costs: TileCosts, groups: Sequence[Box], target: Target
) -> TileShape | None:
    """The shape with which a range of ``extents`` takes least, in work-groups of one of ``groups``;
    None if no tile's elements fit into local memory."""
    cached = target.worker_cache_bytes // target.overlapped_cache_share
    most = min(target.device.local_memory_bytes, cached)
    best: tuple[float, TileShape] | None = None
    for group in groups:
        whole = (TileShape(tile, group) for tile in _candidates(extents, costs, group, target))
        for shape in chain(whole, _windows(extents, costs, group, target)):
            if _local_bytes(shape, costs) > most:
                continue
            seconds = _seconds(extents, shape, costs, target)
            if shape.window is not None:
                seconds *= WINDOW_MARGIN
            if best is None or seconds < best[0]:
                best = seconds, shape
    return None if best is None else best[1]


def _local_bytes(shape: TileShape, costs: TileCosts) -> int:
    """Of the elements that are in local memory together."""
    found = 0
    for growth, nbytes in costs.elements:
        planes, *sides = growth.at(shape.at_once)
        found += (planes if shape.window is None else ring_of(planes)) * prod(sides) * nbytes
    return found


def _seconds(extents: Box, shape: TileShape, costs: TileCosts, target: Target) -> float:
    """What work-groups take for a range of ``extents``."""
    tile, group = shape.tile, shape.group
    tiles = prod(ceil(n / t) for n, t in zip(extents, tile, strict=True))
    busy = waiting = 0.0
    once = target.costs.instruction_seconds
    if shape.window is not None:  # barriers, as long as a row's bounds
        steps = ceil(tile[0] / shape.window)
        busy += target.weights.tile_row * once * steps * (len(costs.items) + 1)
    for k, (growth, seconds) in enumerate(costs.items):
        box = tile if growth is None else growth.at(tile)
        sides = zip(box, lanes_of(len(box), group), strict=True)
        rounds = prod(ceil(n / lanes) for n, lanes in sides)
        busy += seconds * rounds * prod(group)
        if costs.waits:
            waiting += costs.waits[k] * rounds
        else:
            busy += target.weights.tile_row * once * prod(box[:-1])
    resident = max(target.resident_workers * target.worker_size // prod(group), 1)
    if not costs.waits:
        return ceil(tiles / resident) * (busy + once)
    beside = ceil(tiles / target.throughput_parts)
    return ceil(tiles / resident) * (waiting + once) + beside * busy


def _windows(extents: Box, costs: TileCosts, group: Box, target: Target) -> Iterator[TileShape]:
    """Candidate sliding windows: of tiles that are long in the first dimension."""
    if not costs.slides:
        return
    planes = _powers(min(extents[0], target.tile_rows))
    for window in WINDOWS:
        long = [n for n in planes if n >= 8 * window]
        for first, *sides in _in_whole_groups((window, *extents[1:]), group[-1], target):
            if first == window:
                yield from (TileShape((n, *sides), group, window) for n in long)


def _candidates(extents: Box, costs: TileCosts, group: Box, target: Target) -> Iterator[Box]:
    """Candidate tiles; where work-items are threads, also those with whose halos work-groups come
    out even."""
    for tile in _in_whole_groups(extents, group[-1], target):
        yield tile
        if target.worker_size > target.sub_group_size:
            boxes = [growth.at(tile) for growth, _ in costs.items if growth is not None]
            whole = [box for box in boxes if len(box) == len(tile)]
            most = tuple(map(max, tile, *whole)) if whole else tile
            sides = zip(tile, most, lanes_of(len(tile), group), strict=True)
            less = [2 * n - box if lanes > 1 and 3 * n > 2 * box else n for n, box, lanes in sides]
            yield tuple(less)


def _in_whole_groups(extents: Box, lanes: int, target: Target) -> Iterator[Box]:
    """Tiles of rows in few parts of whole work-groups, or of powers of two of those,
    times powers of two of rows."""
    *outer, last = extents
    most = target.largest_overlapped_tile
    vectors = ceil(last / lanes)
    rows = [ceil(vectors / k) * lanes for k in range(1, min(vectors, target.row_parts) + 1)]
    rows += [lanes * n for n in _powers(most // lanes) if n < vectors]
    slower = [_powers(min(n, target.tile_rows)) for n in outer]
    for *sides, row in product(*slower, dict.fromkeys(rows)):
        tile = (*sides, row)
        if prod(tile) <= most:
            yield tile


def _powers(most: int) -> list[int]:
    """Powers of two up to the first that is as much."""
    found = [1]
    while found[-1] < most:
        found.append(2 * found[-1])
    return found
