"""The neutral form of what was recorded: launches, and intervals of workers.

Nothing here knows how kernels were instrumented; the analysis knows nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fusionq.profiling.calibration import Calibration
from fusionq.profiling.regions import Region

INTERVAL = np.dtype(
    [
        ("worker", np.int32),  # who; -1 while not known
        ("launch", np.int32),  # position in Timeline.launches
        ("region", np.int32),  # position in Timeline.regions
        ("instance", np.int64),  # the work-group, or the tile, above it the stage's number
        ("start", np.int64),  # ns
        ("end", np.int64),  # ns; of a mark, the same
        ("payload", np.int64),
        ("producer", np.int64),  # of a wait: the interval of the last that it waited for, or -1
    ]
)
TILE_BITS = 40
"""Of an instance of a persistent kernel, the bits of the tile."""

Intervals = npt.NDArray[Any]
"""An array of INTERVAL."""

ACCOUNTED = ("stage", "ticket", "wait", "barrier", "publish")
"""Kinds of regions that a worker spends its time in, one after the other, never nested; other
regions lie inside them."""

WORK_NAMES = {"stage": "work"}
"""What a kind is called where time is accounted for, if not by its own name."""

Variant = Literal["", "fused", "unfused"]


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch; times in nanoseconds of ``time.monotonic_ns``.

    ``submissions``: the members of the list that it runs, by their headings.  ``work``: which of
    the profile's lists it belongs to, and ``run``: the how-manieth time that it ran.  ``variant``:
    "" for the program's own launches; "fused" and "unfused" for those made for comparison.
    ``start_ns`` and ``end_ns``: from the first record to the last, or the host's measure.  One of
    ``every`` work-groups recorded.
    """

    name: str
    submissions: tuple[str, ...]
    work: int
    run: int
    variant: Variant
    submitted_ns: int
    start_ns: int
    end_ns: int
    groups: int
    every: int = 1
    source: Literal["device", "host"] = "device"

    @property
    def makespan_ns(self) -> int:
        """From start to end."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A region of which only totals were kept: of its durations in nanoseconds (of marks: of
    their payloads).  ``first`` and ``last``: when it first began and last ended, in ns."""

    region: int
    launch: int
    sum: int
    min: int
    max: int
    count: int
    first: int
    last: int


@dataclass(frozen=True)
class Timeline:
    """All that was recorded.  ``dropped``: how many records of a region were not kept."""

    regions: tuple[Region, ...]
    launches: tuple[Launch, ...]
    intervals: Intervals
    aggregates: tuple[Aggregate, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    clock: Calibration | None = None
    no_clock: str | None = None
    """Why there is no clock."""

    @property
    def workers(self) -> int:
        """How many workers there are."""
        return int(self.intervals["worker"].max(initial=-1)) + 1

    @property
    def is_sampled(self) -> bool:
        """Whether some work-groups did not record."""
        return any(launch.every > 1 for launch in self.launches)

    def kinds(self) -> npt.NDArray[np.str_]:
        """Each interval's kind."""
        kinds = np.array([str(region.kind) for region in self.regions], dtype=np.str_)
        found: npt.NDArray[np.str_] = kinds[self.intervals["region"]]
        return found

    def of_kinds(self, *kinds: str) -> Intervals:
        """The intervals of regions of these kinds."""
        return self.intervals[np.isin(self.kinds(), kinds)]

    def accounted(self) -> Intervals:
        """What workers spend their time in."""
        return self.of_kinds(*ACCOUNTED)

    def only(self, variant: Variant) -> Timeline:
        """The part that belongs to the launches of ``variant``."""
        wanted = [k for k, launch in enumerate(self.launches) if launch.variant == variant]
        return self.select(wanted)

    def select(self, launches: list[int]) -> Timeline:
        """The part that belongs to some launches, which are counted anew."""
        number = np.full(len(self.launches) + 1, -1)
        number[launches] = np.arange(len(launches))
        new = number[self.intervals["launch"]]
        kept = new >= 0
        intervals = self.intervals[kept].copy()
        intervals["launch"] = new[kept]
        position = np.cumsum(kept) - 1
        producer = intervals["producer"]
        known = producer >= 0
        intervals["producer"][known] = position[producer[known]]
        return Timeline(
            self.regions,
            tuple(self.launches[k] for k in launches),
            intervals,
            tuple(
                replace(a, launch=int(number[a.launch]))
                for a in self.aggregates
                if number[a.launch] >= 0
            ),
            self.counters,
            self.dropped,
            self.clock,
            self.no_clock,
        )


def assign_workers(intervals: Intervals) -> None:
    """Give each work-group a worker: whoever was free when it began and had been so for the
    shortest time.  Work-groups that overlap in time have different workers, so there are as many
    as ran at once.

    For devices that do not say who runs a work-group; one runs to its end before its worker
    takes another.
    """
    if not len(intervals):
        return
    keys = np.stack([intervals["launch"].astype(np.int64), intervals["instance"]])
    order = np.lexsort((intervals["start"], keys[1], keys[0]))
    changes = np.any(np.diff(keys[:, order], axis=1) != 0, axis=0)
    first = np.concatenate(([0], np.flatnonzero(changes) + 1))
    starts = np.minimum.reduceat(intervals["start"][order], first)
    ends = np.maximum.reduceat(intervals["end"][order], first)
    free: list[int] = []  # when each worker's last work-group ended
    owner = np.empty(len(first), np.int32)
    for group in np.argsort(starts, kind="stable"):
        begin = int(starts[group])
        idle = [k for k, since in enumerate(free) if since <= begin]
        if idle:
            worker = max(idle, key=free.__getitem__)
        else:
            worker = len(free)
            free.append(0)
        free[worker] = int(ends[group])
        owner[group] = worker
    sizes = np.diff(np.append(first, len(order)))
    intervals["worker"][order] = np.repeat(owner, sizes)
