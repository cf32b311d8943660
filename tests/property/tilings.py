"""Persistent kernels cut into tiles at random and done by lanes along any dimension, where planning
would choose."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from fusionq.backends.base import Binding
from fusionq.base.target import Target
from fusionq.ir.nodes import Kernel, LaneDimension
from fusionq.megakernel import launch, schedule
from fusionq.megakernel.tiling import Assignment, Tiling
from fusionq.planning import persistent
from fusionq.planning.known_values import Sizes
from fusionq.planning.lane_dimension import is_free

ASSIGNMENTS: tuple[Assignment, ...] = ("stages", "turns", "tickets")
WORKERS = (1, 2, 2, 3, 4, 5, 8, 17)


@contextmanager
def random_tilings(seed: int) -> Iterator[None]:
    """Persistent kernels that are prepared inside have random tiles, blocks, assignments, numbers
    of workers and dimensions that lanes have, as far as they may."""
    generator, of_lanes = random.Random(seed), random.Random(~seed)

    def lane_dimension(kernel: Kernel, sizes: Sizes, target: Target) -> LaneDimension | None:
        if kernel.ndim == 1 or not is_free(kernel) or target.worker_size != target.sub_group_size:
            return None
        dim = of_lanes.randrange(kernel.ndim)
        return LaneDimension(dim, 1 << 20) if dim + 1 < kernel.ndim else None

    def choose(extents: Sequence[tuple[int, ...]], *_: object) -> Tiling:
        tiles = tuple(
            tuple(generator.choice([1, 2, 3, 5, 16, n, max(n // 2, 1)]) for n in extent)
            for extent in extents
        )
        block = generator.choice([1, 2, len(extents)])
        return Tiling(tiles, block, generator.choice(ASSIGNMENTS))

    def scheduled(
        kernel: Kernel,
        bindings: Mapping[str, Binding],
        target: Target,
        tiling: Tiling | None = None,
        choose: launch.ChosenWorkers = launch.all_workers,
    ) -> schedule.Schedule:
        workers = replace(target, resident_workers=generator.choice(WORKERS))
        return schedule_for(kernel, bindings, workers, tiling)

    schedule_for = launch.schedule_for
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(persistent, "lane_dimension", lane_dimension)
        patch.setattr(schedule, "choose_tiling", choose)
        patch.setattr(launch, "schedule_for", scheduled)
        yield
