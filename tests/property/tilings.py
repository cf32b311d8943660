"""Persistent kernels cut into tiles at random, where a schedule would choose."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from fusionq.backends.base import Binding
from fusionq.base.target import Target
from fusionq.ir.nodes import Kernel
from fusionq.megakernel import launch, schedule
from fusionq.megakernel.tiling import Assignment, Tiling

ASSIGNMENTS: tuple[Assignment, ...] = ("stages", "turns", "tickets")
WORKERS = (1, 2, 2, 3, 4, 5, 8, 17)


@contextmanager
def random_tilings(seed: int) -> Iterator[None]:
    """Persistent kernels that are prepared inside have random tiles, blocks, assignments and
    numbers of workers."""
    generator = random.Random(seed)

    def choose(extents: Sequence[tuple[int, ...]], *_: object) -> Tiling:
        tiles = tuple(
            tuple(generator.choice([1, 2, 3, 5, 16, n, max(n // 2, 1)]) for n in extent)
            for extent in extents
        )
        block = generator.choice([1, 2, len(extents)])
        return Tiling(tiles, block, generator.choice(ASSIGNMENTS))

    def scheduled(
        kernel: Kernel, bindings: Mapping[str, Binding], target: Target, *others: object
    ) -> schedule.Schedule:
        workers = replace(target, resident_workers=generator.choice(WORKERS))
        return schedule_for(kernel, bindings, workers, *others)

    schedule_for = launch.schedule_for
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "choose_tiling", choose)
        patch.setattr(launch, "schedule_for", scheduled)
        yield
