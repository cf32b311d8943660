"""What the instructions of workers that follow lists wait for, worked out beforehand: the lines of
the control memory and how many tiles count there, as ``codegen.queue_layout`` has them.

A worker that works that out itself, by closed forms over its tile, begins a microsecond later
(H100, a decode step of 165 stages: 1.155 ms where that is listed in place of 1.223).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusionq.base.frozen import dataclass
from fusionq.codegen import queue_layout as q
from fusionq.megakernel.counters import Counters
from fusionq.megakernel.evaluate import Integers
from fusionq.megakernel.tiles import TileBox, TiledStage

MOST_LISTED = 1 << 14
"""Instructions whose waits are listed, at most: where there are more, launches take long."""
_MOST_WAITS = q.LISTED_WORDS - q.LISTED_WAITS


@dataclass(frozen=True)
class _Waits:
    """Of each tile of a stage: ``count`` lines, or ``BY_FORMS``; ``words`` has a row for each, of
    which the first ``count`` are used; ``counter``: the line of its own, or -1."""

    count: Integers
    words: Integers
    counter: Integers


def listed_waits(
    stages: Sequence[TiledStage],
    waits: Sequence[Sequence[TileBox]],
    counters: Sequence[Counters],
    stage: Integers,
    tile: Integers,
    starts: Integers,
    assigned: Integers,
    place: int,
) -> Integers:
    """Where each worker's list begins, and all lists, which stand at ``place`` of the schedule;
    ``stage`` and ``tile``: the instructions in order, ``starts`` and ``assigned``: the workers'
    positions in that order."""
    found = [_of_stage(stages, k, waits[k], counters) for k in range(len(stages))]
    first = np.cumsum([0, *(one.tiles for one in stages)])
    count = np.concatenate([one.count for one in found])
    counter = np.concatenate([one.counter for one in found])
    words = np.zeros((len(count), max(one.words.shape[1] for one in found)), np.int64)
    for begin, one in zip(first, found, strict=False):
        words[begin : begin + len(one.count), : one.words.shape[1]] = one.words
    stage, tile = stage[assigned], tile[assigned]
    row = first[stage] + tile
    own = np.where(count == q.BY_FORMS, 0, count)[row]
    worker = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    # Behind the last instruction of each worker there is a word that says so.
    ends = np.cumsum(own + q.LISTED_WAITS)
    place += len(starts) - 1
    at = ends - own - q.LISTED_WAITS + worker
    begins = np.concatenate([[0], ends])[starts[:-1]] + np.arange(len(starts) - 1)
    total = int(ends[-1]) + len(starts) - 1 if len(ends) else len(starts) - 1
    lists = np.full(total + q.LISTED_WORDS, -1, np.int64)
    lists[at] = stage << q.TILE_BITS | tile
    lists[at + 1] = (place + ends + worker) << q.LINE_SHIFT
    lists[at + 1] |= (counter[row] + 1) << q.COUNT_BITS | count[row]
    for k in range(words.shape[1]):
        some = own > k
        lists[at[some] + q.LISTED_WAITS + k] = words[row[some], k]
    return np.concatenate([place + begins, lists])


def _of_stage(
    stages: Sequence[TiledStage],
    number: int,
    waits: Sequence[TileBox],
    counters: Sequence[Counters],
) -> _Waits:
    tiles = stages[number].tiles
    columns: list[Integers] = []
    used: list[np.typing.NDArray[np.bool_]] = []
    total = np.zeros(tiles, np.int64)
    for box in reversed(waits):
        lines, number_of = _lines(box, stages[box.producer], counters[box.producer], tiles)
        total += number_of
        columns += lines
        used += [number_of > k for k in range(len(lines))]
    count = np.where(total > _MOST_WAITS, q.BY_FORMS, total)
    words = np.zeros((tiles, 0), np.int64)
    if columns:
        is_used = np.stack(used, 1)
        order = np.argsort(~is_used, axis=1, kind="stable")[:, :_MOST_WAITS]
        words = np.take_along_axis(np.stack(columns, 1), order, 1)
    return _Waits(count, words, _counter(stages[number], counters[number]))


def _lines(
    box: TileBox, producer: TiledStage, own: Counters, tiles: int
) -> tuple[list[Integers], Integers]:
    """For each of ``tiles`` the words of what it waits for in ``box``, and how many these are."""
    if box.low is None or box.high is None:
        word = own.total << q.LINE_SHIFT | producer.tiles
        return [np.full(tiles, word)], np.ones(tiles, np.int64)
    shared = own.shared
    begin = [low // k for low, k in zip(box.low, shared, strict=True)]
    many = [
        np.maximum(high // k - at + 1, 0)
        for high, k, at in zip(box.high, shared, begin, strict=True)
    ]
    number = np.where(box.is_empty(), 0, np.prod(many, axis=0))
    found = []
    for k in range(min(int(number.max(initial=0)), _MOST_WAITS)):
        rest: Integers | int = k
        places: list[Integers] = []
        for at, length in reversed(list(zip(begin, many, strict=True))):
            length = np.maximum(length, 1)
            places.insert(0, at + rest % length)
            rest = rest // length
        line = np.zeros(tiles, np.int64)
        counted = np.ones(tiles, np.int64)
        for place, n, size in zip(places, producer.count, shared, strict=True):
            line = line * -(-n // size) + place
            counted = counted * np.minimum(size, n - place * size)
        found.append(own.first + line << q.LINE_SHIFT | np.maximum(counted, 0))
    return found, number


def _counter(stage: TiledStage, own: Counters) -> Integers:
    """The line of the counter of each tile; -1 where there is none."""
    if own.first < 0:
        return np.full(stage.tiles, -1, np.int64)
    rest = np.arange(stage.tiles, dtype=np.int64)
    places: list[Integers] = []
    for n in reversed(stage.count):
        places.insert(0, rest % n)
        rest = rest // n
    line = np.zeros(stage.tiles, np.int64)
    for place, n, size in zip(places, stage.count, own.shared, strict=True):
        line = line * -(-n // size) + place // size
    return own.first + line
