"""The extents of overlapped tiles: little computed twice, little memory, work for all workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import ceil, prod

from fusionq.base.frozen import dataclass
from fusionq.base.target import Target
from fusionq.passes.overlapped_tiles import lanes_of

Box = tuple[int, ...]


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
    that wait."""

    items: Sequence[tuple[Growth | None, float]]
    elements: Sequence[tuple[Growth, int]]
    waits: Sequence[float] = ()


def best_tile(
    extents: Box, costs: TileCosts, groups: Sequence[Box], target: Target
) -> tuple[Box, Box] | None:
    """The extents of the tile, and the work-groups, of ``groups``, with which a range of
    ``extents`` takes least; None if no tile's elements fit into local memory."""
    cached = target.worker_cache_bytes // target.worker_cache_share
    most = min(target.device.local_memory_bytes, cached)
    best: tuple[float, Box, Box] | None = None
    for group in groups:
        for tile in _candidates(extents, costs, group, target):
            if sum(prod(box.at(tile)) * nbytes for box, nbytes in costs.elements) > most:
                continue
            tiles = prod(ceil(n / t) for n, t in zip(extents, tile, strict=True))
            seconds = _seconds(tiles, tile, costs, group, target)
            if best is None or seconds < best[0]:
                best = seconds, tile, group
    return None if best is None else best[1:]


def _seconds(tiles: int, tile: Box, costs: TileCosts, group: Box, target: Target) -> float:
    """What work-groups of ``group`` take for so many ``tiles``."""
    busy = waiting = 0.0
    once = target.costs.instruction_seconds
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


def _candidates(extents: Box, costs: TileCosts, group: Box, target: Target) -> Iterator[Box]:
    """Tiles worth a try; where work-items are threads, also those with whose halos work-groups come
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
