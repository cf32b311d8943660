"""The extents of overlapped tiles: little computed twice, little memory, work for all workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import ceil, prod

from fusionq.base.frozen import dataclass
from fusionq.base.target import Target

MOST_ROWS = 64
"""Work-items of a tile in a dimension that is not the last, at most."""

MOST_PARTS = 64
"""Into how many parts a row is cut, at most, while they are longer than a work-group."""

MOST_ITEMS = 1 << 15
"""Work-items of a tile, at most."""

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
    (None: the tile itself), and the boxes of elements in local memory with the bytes of each."""

    items: Sequence[tuple[Growth | None, float]]
    elements: Sequence[tuple[Growth, int]]


def best_tile(
    extents: Box, costs: TileCosts, lanes: int, target: Target
) -> Box | None:
    """The extents of the tile, of work-groups of ``lanes``, with which a range of ``extents`` takes
    least; None if no tile's elements fit into local memory."""
    most = min(target.device.local_memory_bytes, target.worker_cache_bytes // 4)
    best: tuple[float, Box] | None = None
    for tile in _candidates(extents, lanes):
        if sum(prod(box.at(tile)) * nbytes for box, nbytes in costs.elements) > most:
            continue
        busy = 0.0
        for growth, seconds in costs.items:
            *outer, last = tile if growth is None else growth.at(tile)
            busy += seconds * prod(outer) * ceil(last / lanes) * lanes
        tiles = prod(ceil(n / t) for n, t in zip(extents, tile, strict=True))
        rounds = ceil(tiles / target.resident_workers)
        cost = rounds * (busy + target.costs.instruction_seconds)
        if best is None or cost < best[0]:
            best = cost, tile
    return None if best is None else best[1]


def _candidates(extents: Box, lanes: int) -> Iterator[Box]:
    """Tiles worth a try: rows in few parts of whole work-groups, or of powers of two of those,
    times powers of two of rows."""
    *outer, last = extents
    vectors = ceil(last / lanes)
    rows = [ceil(vectors / k) * lanes for k in range(1, min(vectors, MOST_PARTS) + 1)]
    rows += [lanes * n for n in _powers(MOST_ITEMS // lanes) if n < vectors]
    slower = [_powers(min(n, MOST_ROWS)) for n in outer]
    for *sides, row in product(*slower, dict.fromkeys(rows)):
        tile = (*sides, row)
        if prod(tile) <= MOST_ITEMS:
            yield tile


def _powers(most: int) -> list[int]:
    """Powers of two up to the first that is as much."""
    found = [1]
    while found[-1] < most:
        found.append(2 * found[-1])
    return found
