"""A persistent kernel's stages cut into tiles, and what each tile waits for, for given sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod

import numpy as np

from fusionq.base.frozen import dataclass
from fusionq.base.identity_cache import cached_by_identity
from fusionq.ir.nodes import Persistent, StageCode
from fusionq.megakernel.evaluate import Integers, evaluate


@dataclass(frozen=True)
class TiledStage:
    """A stage's range, the shape of its tiles, and how many there are in each dimension."""

    extents: tuple[int, ...]
    tile: tuple[int, ...]
    count: tuple[int, ...]

    @property
    def tiles(self) -> int:
        """The number of tiles."""
        return prod(self.count)

    def items(self) -> tuple[tuple[Integers, ...], tuple[Integers, ...]]:
        """The first and the last work-item of every tile, by dimension."""
        first: list[Integers] = []
        last: list[Integers] = []
        for d, count in enumerate(self.count):
            start = np.arange(count, dtype=np.int64) * self.tile[d]
            if len(self.count) > 1:
                start = np.tile(start.repeat(prod(self.count[d + 1 :])), prod(self.count[:d]))
            first.append(start)
            last.append(np.minimum(start + self.tile[d], self.extents[d]) - 1)
        return tuple(first), tuple(last)


@dataclass(frozen=True)
class TileBox:
    """For each tile of a stage the box of tiles of ``producer`` that it waits for: ``low`` to
    ``high``, inclusive, by dimension; nothing where some low exceeds its high.  Both None: all."""

    producer: int
    low: tuple[Integers, ...] | None
    high: tuple[Integers, ...] | None

    def is_empty(self) -> np.typing.NDArray[np.bool_]:
        """Where a tile waits for nothing."""
        assert self.low is not None and self.high is not None
        empty = self.low[0] > self.high[0]
        for low, high in zip(self.low[1:], self.high[1:], strict=True):
            empty = empty | (low > high)
        return empty


def extents_of(body: Persistent, params: Sequence[Mapping[str, int]]) -> list[tuple[int, ...]]:
    """The range of each stage; ``params``: for each stage, its code's integer parameters."""
    known: dict[tuple[int, int], tuple[int, ...]] = {}
    found = []
    for stage, values in zip(body.stages, params, strict=True):
        kind = stage.code, id(values)  # of stages with equal parameters mostly one object
        extents = known.get(kind)
        if extents is None:
            extents = known[kind] = extents_by(body.codes[stage.code], values)
        found.append(extents)
    return found


def extents_by(code: StageCode, values: Mapping[str, int]) -> tuple[int, ...]:
    """The range of a stage whose ``code`` has the integer parameters ``values``."""
    return tuple([int(evaluate(extent, values)) for extent in code.extents])


@lru_cache(1024)
def tiled(extents: tuple[int, ...], tile: tuple[int, ...]) -> TiledStage:
    """``extents`` cut into tiles of that shape."""
    count = tuple([-(-extent // size) for extent, size in zip(extents, tile, strict=True)])
    return TiledStage(extents, tile, count)


def boxes(
    body: Persistent, stages: Sequence[TiledStage], params: Sequence[Mapping[str, int]]
) -> tuple[tuple[TileBox, ...], ...]:
    """What each tile of each of the ``stages`` waits for, one entry for each wait of its code.
    Boxes of stages that are alike share their arrays."""
    known: dict[object, list[_Bounds]] = {}
    found = []
    for use, stage, values in zip(body.stages, stages, params, strict=True):
        producers = use.producers
        # Equal stages are one object, as long as that is kept.
        kind = use.code, id(stage), *[id(stages[p]) for p in producers], *values.values()
        bounds = known.get(kind)
        if bounds is None:
            sources = [stages[p] for p in producers]
            bounds = known[kind] = _bounds(body.codes[use.code], sources, stage, values)
        found.append(tuple([TileBox(p, *b) for p, b in zip(producers, bounds, strict=True)]))
    return tuple(found)


@cached_by_identity
def whole_boxes(body: Persistent) -> tuple[tuple[TileBox, ...], ...]:
    """As ``boxes``, where each tile waits for all of each producer, whatever the sizes."""
    return tuple([
        tuple([TileBox(p, None, None) for p in use.producers]) for use in body.stages
    ])  # fmt: skip


_Bounds = tuple[tuple[Integers, ...] | None, tuple[Integers, ...] | None]


def _bounds(
    code: StageCode,
    sources: Sequence[TiledStage],
    stage: TiledStage,
    params: Mapping[str, int],
) -> list[_Bounds]:
    first, last = stage.items()
    found: list[_Bounds] = []
    for wait, source in zip(code.waits, sources, strict=True):
        if wait.bounds is None:
            found.append((None, None))
            continue
        low: list[Integers] = []
        high: list[Integers] = []
        nothing = np.zeros(stage.tiles, dtype=bool)
        zero = np.zeros(stage.tiles, dtype=np.int64)
        for d, (a, b) in enumerate(wait.bounds):
            lower = np.maximum(evaluate(a, params, first, last), zero)
            upper = evaluate(b, params, first, last) + zero
            nothing |= upper < lower
            low.append(lower // source.tile[d])
            high.append(np.minimum(upper // source.tile[d], source.count[d] - 1))
        high[0] = np.where(nothing, -1, high[0])
        found.append((tuple(low), tuple(high)))
    return found
