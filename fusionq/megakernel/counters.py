"""Which tiles of a persistent kernel's stages are counted together: its barrier counters."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

import numpy as np

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.frozen import dataclass
from fusionq.codegen import queue_layout as q
from fusionq.megakernel.tiles import TileBox, TiledStage


@dataclass(frozen=True)
class Counters:
    """A stage's barrier counters: ``shared`` tiles by dimension count on one; ``first`` is the
    line of the first, ``total`` that of the counter of all tiles; -1: not needed."""

    shared: tuple[int, ...]
    first: int
    total: int


def counters_of(
    stages: Sequence[TiledStage], waits: Sequence[Sequence[TileBox]], few: bool
) -> tuple[tuple[Counters, ...], int]:
    """Counters for every stage, as few as its consumers' boxes allow: where all boxes begin and
    end at multiples of some number of tiles, that many share one.  ``few``: more do where boxes
    would have many counters, so that a tile waits for more tiles than it needs, of stages that are
    all done before its own."""
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
                if few:
                    known[kind] = _few(bounded, known[kind], stage.count)
            shared = known[kind]
            first = line
            line += prod(-(-n // k) for n, k in zip(stage.count, shared, strict=True))
        if len(bounded) < len(wanted):
            total = line
            line += 1
        found.append(Counters(shared, first, total))
    return tuple(found), line


def producer_of(counters: Sequence[Counters], line: int) -> int | None:
    """The stage that is counted on a ``line`` of the control memory; None for another line."""
    for k, own in reversed(list(enumerate(counters))):
        if line == own.total or 0 <= own.first <= line:
            return k
    return None


def completions(
    counters: Sequence[Counters], stages: Sequence[TiledStage], producer: int, line: int
) -> int:
    """How many tiles of the stage ``producer`` count on that ``line`` in a launch."""
    own, count = counters[producer], stages[producer].count
    if line == own.total:
        return prod(count)
    rest, tiles = line - own.first, 1
    for n, shared in reversed(list(zip(count, own.shared, strict=True))):
        rest, at = divmod(rest, -(-n // shared))
        tiles *= min(shared, n - at * shared)
    return tiles


def no_counters(stages: Sequence[TiledStage]) -> tuple[tuple[Counters, ...], int]:
    """Those of a single worker, which does one instruction after the other: none."""
    return tuple([Counters((1,) * len(stage.count), -1, -1) for stage in stages]), q.FIRST_COUNTER


def _few(
    wanted: Sequence[TileBox], shared: tuple[int, ...], count: tuple[int, ...]
) -> tuple[int, ...]:
    """``shared``, or multiples of it, so that no box has many counters."""
    found = list(shared)
    while True:
        spans = [max(_span(box, d, k) for box in wanted) for d, k in enumerate(found)]
        d = max(range(len(spans)), key=spans.__getitem__)
        if prod(spans) <= CODE_LIMITS.box_counters or spans[d] <= 1:
            return tuple(found)
        found[d] = min(2 * found[d], count[d])


def _span(box: TileBox, dim: int, shared: int) -> int:
    """How many counters in a dimension, of ``shared`` tiles, a box has at most."""
    assert box.low is not None and box.high is not None
    some = ~box.is_empty()
    spans = box.high[dim][some] // shared - box.low[dim][some] // shared + 1
    return int(spans.max(initial=1))


def _stride(wanted: Sequence[TileBox], dim: int, count: int) -> int:
    stride = 0
    for box in wanted:
        assert box.low is not None and box.high is not None
        some = ~box.is_empty()
        ends = box.high[dim][some] + 1
        for edge in (box.low[dim][some], ends[ends < count]):
            stride = gcd(stride, int(np.gcd.reduce(edge, initial=0)))
    return stride if 0 < stride < count else count
