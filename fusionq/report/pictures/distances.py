"""How far apart, in the order of a persistent kernel's instructions, a tile and those it waits
for are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fusionq.megakernel.evaluate import Integers
from fusionq.megakernel.schedule import Schedule
from fusionq.megakernel.tiles import TileBox

MOST_SAMPLED = 4000
"""Instructions for which the distance is found."""


def positions(schedule: Schedule) -> list[Integers]:
    """For each stage, the position of each of its tiles in the order of instructions."""
    found = [np.empty(stage.tiles, np.int64) for stage in schedule.stages]
    at = np.arange(len(schedule.stage))
    for number, of_stage in enumerate(found):
        mine = schedule.stage == number
        of_stage[schedule.tile[mine]] = at[mine]
    return found


def box_of(box: TileBox, tile: int, schedule: Schedule) -> tuple[slice, ...] | None:
    """The tiles of the producer, by dimension, that ``tile`` waits for; None: none."""
    count = schedule.stages[box.producer].count
    if box.low is None or box.high is None:
        return tuple(slice(0, n) for n in count)
    ends = [(int(a[tile]), int(b[tile]) + 1) for a, b in zip(box.low, box.high, strict=True)]
    return None if any(a >= b for a, b in ends) else tuple(slice(a, b) for a, b in ends)


@dataclass(frozen=True)
class Distances:
    """For ``sampled`` instructions, all or evenly drawn ones: of those that wait, how many
    positions in the order before them the last tile is that they wait for."""

    values: Integers
    sampled: int


def distances(schedule: Schedule, position: list[Integers]) -> Distances:
    """The distances of a schedule whose tiles have these positions."""
    grids = [p.reshape(s.count) for p, s in zip(position, schedule.stages, strict=True)]
    last = [int(p.max()) for p in position]
    chosen = sample(len(schedule.stage), MOST_SAMPLED)
    found = []
    for at in chosen.tolist():
        latest = -1
        for box in schedule.waits[int(schedule.stage[at])]:
            if box.low is None:
                latest = max(latest, last[box.producer])
                continue
            tiles = box_of(box, int(schedule.tile[at]), schedule)
            if tiles is not None:
                latest = max(latest, int(grids[box.producer][tiles].max()))
        if latest >= 0:
            found.append(at - latest)
    return Distances(np.array(found, np.int64), len(chosen))


def sample(total: int, most: int) -> NDArray[np.int64]:
    """All of the numbers below ``total``, or ``most`` of them drawn at random, the same each
    time."""
    if total <= most:
        return np.arange(total)
    return np.sort(np.random.default_rng(0).choice(total, most, replace=False))
