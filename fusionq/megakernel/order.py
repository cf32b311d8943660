"""In which order a persistent kernel's instructions are taken.

Any order in which a tile comes after those that it waits for is right.  This one goes through the
last stage from one end to the other and does what its tiles need just before them: a tile's *wave*
is at least one before the first wave of those that wait for it.  So tiles of one wave do not wait
for each other, and what a stage has written is read while it is in the cache.

For a 3-point stencil this gives the skew of two tiles a step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusionq.megakernel.evaluate import Integers
from fusionq.megakernel.tiles import TileBox, TiledStage


def waves(
    stages: Sequence[TiledStage],
    waits: Sequence[Sequence[TileBox]],
    block: int,
    together: int = 1,
) -> list[Integers]:
    """The wave of each row of tiles (tiles that agree in the first dimension) of each stage.

    ``block`` stages are done together, then the next ones: a limit to what has to be in the cache.
    ``together``: rows of a stage in a wave.
    """
    rows = max([stage.count[0] for stage in stages])
    if block == 1:  # a stage does not wait for itself
        counts = {stage.count[0] for stage in stages}
        evenly = {n: _evenly(n, rows) for n in counts}
        return [evenly[stage.count[0]] for stage in stages]
    found: list[Integers] = [np.empty(0, np.int64)] * len(stages)
    for start in range(0, len(stages), block):
        stop = min(start + block, len(stages))
        found[start:stop] = _block(stages, waits, start, stop, rows, together)
    return found


def _block(
    stages: Sequence[TiledStage],
    waits: Sequence[Sequence[TileBox]],
    start: int,
    stop: int,
    rows: int,
    together: int,
) -> list[Integers]:
    latest: list[Integers] = []
    for stage in stages[start:stop]:
        latest.append(_last_evenly(stage.count[0], rows) // together)
    needed = [False] * (stop - start)
    bound = [np.full(stage.count[0], np.iinfo(np.int64).max) for stage in stages[start:stop]]
    for s in reversed(range(start, stop)):
        k = s - start
        if needed[k]:
            latest[k] = _filled(bound[k], latest[k])
        for box in waits[s]:
            if box.producer < start:
                continue
            p = box.producer - start
            needed[p] = True
            low, high, wave = _row_intervals(stages[s], box, latest[k] - 1, stages[box.producer])
            _lower(bound[p], low, high, wave)
    return latest


def _evenly(count: int, rows: int) -> Integers:
    """The waves of ``count`` rows of tiles, where the stage with the most has ``rows``."""
    return np.arange(count, dtype=np.int64) * rows // count


def _last_evenly(count: int, rows: int) -> Integers:
    """The last of the waves that each of ``count`` rows of tiles stands for."""
    return (np.arange(1, count + 1, dtype=np.int64) * rows - 1) // count


def _filled(wave: Integers, evenly: Integers) -> Integers:
    """``wave``, not after what would be ``evenly``, and with a value for rows that nobody waits
    for: as much before that as a neighbour."""
    free = wave == np.iinfo(np.int64).max
    if free.all():
        return evenly
    before = np.where(free, 0, np.minimum(wave - evenly, 0))
    position = np.where(free, 0, np.arange(len(wave)))
    nearest = np.maximum.accumulate(position)
    filled = np.where(free[nearest], before[~free][0], before[nearest])
    return evenly + filled


def _row_intervals(
    stage: TiledStage, box: TileBox, wave: Integers, producer: TiledStage
) -> tuple[Integers, Integers, Integers]:
    """The rows of the producer that each row of tiles waits for, and by which wave."""
    if box.low is None or box.high is None:
        whole = np.zeros(1, np.int64), np.array([producer.count[0] - 1])
        return (*whole, wave.min(keepdims=True))
    shape = (stage.count[0], -1)
    empty = box.is_empty().reshape(shape)
    low = np.where(empty, producer.count[0], box.low[0].reshape(shape)).min(axis=1)
    high = np.where(empty, -1, box.high[0].reshape(shape)).max(axis=1)
    some = low <= high
    return low[some], high[some], wave[some]


def _lower(bound: Integers, low: Integers, high: Integers, wave: Integers) -> None:
    """``bound[low:high + 1] = min(itself, wave)`` for each of the intervals: each is the union of
    two whose length is a power of two, and those are pushed down from the longest."""
    if len(low) == 0:
        return
    level = np.log2(high - low + 1).astype(np.int64)
    level -= (1 << level) > high - low + 1  # rounding
    for k in reversed(range(int(level.max()) + 1)):
        here = level == k
        if k == int(level.max()):
            table = np.full(len(bound), np.iinfo(np.int64).max)
        if here.any():
            np.minimum.at(table, low[here], wave[here])
            np.minimum.at(table, high[here] - (1 << k) + 1, wave[here])
        if k:
            half = 1 << (k - 1)
            shifted = table.copy()
            shifted[half:] = np.minimum(shifted[half:], table[:-half])
            table = shifted
    np.minimum(bound, table, out=bound)


def instructions(
    stages: Sequence[TiledStage], wave: Sequence[Integers], block: int
) -> tuple[Integers, Integers]:
    """Stage and tile of every instruction, in order."""
    tiles = np.array([s.tiles for s in stages])
    stage = np.repeat(np.arange(len(stages)), tiles)
    tile = np.arange(len(stage)) - np.repeat(np.cumsum(tiles) - tiles, tiles)
    if block == 1:  # waves go through a stage's tiles as they are numbered
        return stage, tile
    key = np.concatenate(
        [np.repeat(w, s.tiles // s.count[0]) for w, s in zip(wave, stages, strict=True)]
    )
    order = np.lexsort((tile, stage, key, stage // block))
    return stage[order], tile[order]
