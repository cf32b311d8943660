"""Who made whom wait: for each wait, who arrived last."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fusionq.profiling.timeline import TILE_BITS, Timeline

_TILE = (1 << TILE_BITS) - 1


@dataclass(frozen=True, slots=True)
class Blame:
    """All waits of stage ``waiter`` that ended when stage ``producer`` published, but for those
    that need not wait; ns."""

    waiter: str
    producer: str
    count: int
    sum_ns: int
    max_ns: int
    worst_instance: int
    """The tile that waited longest."""
    worst_producer: int
    """The tile that it waited for."""
    worst_intervals: tuple[int, int] = field(default=(-1, -1), repr=False, compare=False)
    """Where that wait and the publication stand in the timeline; -1: not known."""


def last_arrivers(timeline: Timeline) -> npt.NDArray[np.int64]:
    """For each wait (position in ``timeline.intervals``) the publication that ended it, -1 where
    none is known; for what is no wait, -1.

    What the decoder knows counts.  Else it is the latest publication of the same counter (the
    payload) in the same launch that was over when the wait was.
    """
    intervals = timeline.intervals
    result: npt.NDArray[np.int64] = intervals["producer"].copy()
    kinds = timeline.kinds()
    waits = np.flatnonzero((kinds == "wait") & (result < 0))
    publications = np.flatnonzero(kinds == "publish")
    by_counter: dict[tuple[int, int], npt.NDArray[np.int64]] = {}
    keys = list(zip(intervals["launch"].tolist(), intervals["payload"].tolist(), strict=True))
    for position in publications[np.argsort(intervals["start"][publications], kind="stable")]:
        key = keys[position]
        by_counter[key] = np.append(by_counter.get(key, np.empty(0, np.int64)), position)
    for wait in waits:
        candidates = by_counter.get(keys[wait])
        if candidates is None:
            continue
        # A publication counts from its start: the waiter may see it before it is over.
        seen = np.searchsorted(intervals["start"][candidates], intervals["end"][wait], "right")
        if seen:
            result[wait] = candidates[seen - 1]
    return result


def blame(timeline: Timeline) -> tuple[Blame, ...]:
    """The waits by who waited and for whom, the longest sum first."""
    intervals, producer = timeline.intervals, last_arrivers(timeline)
    lasted = intervals["end"] > intervals["start"]
    waits = np.flatnonzero((timeline.kinds() == "wait") & lasted)
    table: dict[tuple[str, str], list[int]] = {}
    for wait in waits:
        waiter = timeline.regions[intervals["region"][wait]].name
        other = "unknown"
        if producer[wait] >= 0:
            other = timeline.regions[intervals["region"][producer[wait]]].name
        table.setdefault((waiter, other), []).append(int(wait))
    found = []
    for (waiter, other), positions in table.items():
        durations = intervals["end"][positions] - intervals["start"][positions]
        worst = positions[int(durations.argmax())]
        culprit = int(producer[worst])
        found.append(
            Blame(
                waiter, other, len(positions), int(durations.sum()), int(durations.max()),
                int(intervals["instance"][worst]) & _TILE,
                int(intervals["instance"][culprit]) & _TILE if culprit >= 0 else -1,
                (worst, culprit),
            )
        )  # fmt: skip
    return tuple(sorted(found, key=lambda b: -b.sum_ns))
