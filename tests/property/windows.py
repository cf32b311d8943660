"""Overlapped tiles as sliding windows at random, where planning would choose."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from fusionq.base.target import Target
from fusionq.ir.nodes import Barrier, For
from fusionq.planning import overlap, overlap_choice, overlapped_tiles
from fusionq.planning.plan import StagePlan
from fusionq.planning.tile_shape import Box, TileCosts, TileShape, best_tile


@contextmanager
def random_windows(seed: int) -> Iterator[None]:
    """Lists that are planned inside have halos in local memory, however many launches that makes,
    and of tiles that may slide most do so, by random steps; for one seed in six all is as planning
    chooses."""
    if seed % 6 == 5:
        yield
        return
    generator = random.Random(seed)

    def chosen(
        extents: Box, costs: TileCosts, groups: Sequence[Box], target: Target
    ) -> TileShape | None:
        found = best_tile(extents, costs, groups, target)
        if found is None or not costs.slides:
            return found
        window = generator.choice((1, 1, 2, 3, 4))
        sides = [generator.choice((1, 2, 5, 16)) for _ in extents[1:-1]]
        tile = (window * generator.choice((2, 3, 16)), *sides, target.worker_size)
        return TileShape(tile, found.group, window)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlap, "WAYS", ("tiled",))
        patch.setattr(overlap_choice, "MORE_LAUNCHES", 1 << 30)
        patch.setattr(overlapped_tiles, "best_tile", chosen)
        yield


def slides(stage: StagePlan) -> bool:
    """Whether work-groups of a launch do their tiles as sliding windows."""
    return stage.tiling is not None and any(
        isinstance(s, For) and any(isinstance(inner, Barrier) for inner in s.body)
        for s in stage.kernel.body
    )
