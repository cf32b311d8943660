"""What each worker did with its time, how evenly it was shared, and what ran beside what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusionq.profiling.timeline import ACCOUNTED, WORK_NAMES, Intervals, Timeline

KINDS = ("work", "ticket", "wait", "barrier", "publish", "idle")
"""What a worker's time is divided into."""


@dataclass(frozen=True)
class Accounting:
    """Nanoseconds of each worker by kind: rows are workers, columns ``KINDS``.

    ``window_ns``: the sum of the launches' makespans; each row adds up to it.  ``estimated``: not
    all work-groups recorded, and the one row is that of an average worker.  ``records_share``: the
    part of the workers' time that the records themselves took, about.
    """

    table: npt.NDArray[np.int64]
    window_ns: int
    estimated: bool = False
    records_share: float = 0.0

    def share(self, kind: str) -> float:
        """The part of all workers' time, 0 to 1."""
        total = self.table.sum()
        return float(self.table[:, KINDS.index(kind)].sum() / total) if total else 0.0


def account(timeline: Timeline, compute_units: int = 1) -> Accounting:
    """Divide the time of all launches that the device measured.

    Where not all work-groups recorded, as many workers as there are ``compute_units`` count, and
    those that recorded stand for the others.
    """
    window = sum(launch.makespan_ns for launch in timeline.launches if launch.source == "device")
    sampled = timeline.is_sampled
    intervals = timeline.accounted()
    table = np.zeros((timeline.workers, len(KINDS)), np.int64)
    durations = exclusive_durations(intervals)
    if sampled and len(intervals):
        every = np.array([launch.every for launch in timeline.launches])
        durations = (intervals["end"] - intervals["start"]) * every[intervals["launch"]]
    kinds = np.array([KINDS.index(WORK_NAMES.get(r.kind, r.kind)) if r.kind in ACCOUNTED else -1
                      for r in timeline.regions] or [-1])  # fmt: skip
    if len(intervals):
        np.add.at(table, (intervals["worker"], kinds[intervals["region"]]), durations)
    if sampled:
        table = table.sum(axis=0, keepdims=True) // max(compute_units, 1)
    idle = KINDS.index("idle")
    table[:, idle] = window - table.sum(axis=1)
    if sampled and table[0, idle] < 0:  # of what was picked there was more than of the rest
        table[0] = (table[0] * (window / (window - table[0, idle]))).astype(np.int64)
        table[0, idle] = window - table[0, :idle].sum()
    workers = compute_units if sampled else timeline.workers
    cost = 0.0 if timeline.clock is None else timeline.clock.record_ns
    # An end and the next beginning share a clock read; each work-group has one more.
    ends, groups = (
        len(set(zip(intervals[one].tolist(), intervals[other].tolist(), strict=True)))
        for one, other in (("worker", "end"), ("launch", "instance"))
    )
    share = (ends + groups) * cost / (window * workers) if window and workers else 0.0
    return Accounting(table, window, sampled, share)


def exclusive_durations(intervals: Intervals) -> npt.NDArray[np.int64]:
    """Each interval's duration, without what the next interval of the same worker takes of it."""
    order = np.lexsort((intervals["end"], intervals["start"], intervals["worker"]))
    ends = intervals["end"][order].copy()
    if len(order) > 1:
        same = intervals["worker"][order][1:] == intervals["worker"][order][:-1]
        following = np.where(same, intervals["start"][order][1:], np.iinfo(np.int64).max)
        ends[:-1] = np.minimum(ends[:-1], following)
    durations = np.empty(len(order), np.int64)
    durations[order] = ends - intervals["start"][order]
    return durations


# ------------------------------------------------------------------------------- balance
@dataclass(frozen=True, slots=True)
class RegionStatistics:
    """How long a region took, in nanoseconds.  ``workers_ns``: the sum on each worker, of regions
    that are measured as a whole.  ``trusted``: not shorter than two ticks of the clock."""

    region: int
    name: str
    kind: str
    sampled: bool
    count: int
    sum_ns: int
    p50_ns: float
    p99_ns: float
    max_ns: int
    trusted: bool
    dropped: int
    workers_ns: tuple[int, ...] = ()

    @property
    def imbalance(self) -> float:
        """How much longer the busiest worker was at it than the average one; 0 is even."""
        mean = sum(self.workers_ns) / len(self.workers_ns) if self.workers_ns else 0
        return max(self.workers_ns) / mean - 1 if mean else 0.0


def statistics(timeline: Timeline) -> tuple[RegionStatistics, ...]:
    """Of each region that was measured, the longest sum first; marks have no duration."""
    trusted = 0.0 if timeline.clock is None else timeline.clock.trusted_ns
    found = []
    for number, region in enumerate(timeline.regions):
        if region.kind == "mark":
            continue
        mine = timeline.intervals[timeline.intervals["region"] == number]
        dropped = timeline.dropped.get(str(region), 0)
        head = (number, str(region), region.kind, region.sampled)
        if len(mine):
            durations = mine["end"] - mine["start"]
            p50, p99 = (float(p) for p in np.percentile(durations, (50, 99)))
            typical = p50
            if region.kind == "wait":  # those that need not wait have no length
                lasted = durations[durations > 0]
                typical = float(np.median(lasted)) if len(lasted) else trusted
            on_worker: tuple[int, ...] = ()
            if not region.sampled:
                on_worker = tuple(
                    map(int, np.bincount(mine["worker"], durations, timeline.workers))
                )
            found.append(
                RegionStatistics(
                    *head, len(mine), int(durations.sum()), p50, p99, int(durations.max()),
                    typical >= trusted, dropped, on_worker,
                )
            )  # fmt: skip
        totals = [a for a in timeline.aggregates if a.region == number]
        if totals:
            count, sum_ = sum(a.count for a in totals), sum(a.sum for a in totals)
            longest = max(a.max for a in totals)
            found.append(
                RegionStatistics(
                    *head, count, sum_, sum_ / count, float(longest), longest,
                    sum_ / count >= trusted, dropped,
                )
            )  # fmt: skip
    return tuple(sorted(found, key=lambda s: -s.sum_ns))


# ------------------------------------------------------------------------------- overlap
_NEIGHBOURS = 8
"""So many of the stages after a stage are compared with it."""


@dataclass(frozen=True, slots=True)
class StageOverlap:
    """For how long two stages of one launch were both at work, in nanoseconds; ``shorter_ns``: how
    long the shorter of them was."""

    first: str
    second: str
    both_ns: int
    shorter_ns: int

    @property
    def share(self) -> float:
        """The part of the shorter stage's time."""
        return self.both_ns / max(self.shorter_ns, 1)


def overlaps(timeline: Timeline) -> tuple[StageOverlap, ...]:
    """Of all pairs of stages that begin soon after each other, each pair over the launches that
    have both; the longest first."""
    both: dict[tuple[int, int], int] = {}
    alone: dict[tuple[int, int], tuple[int, int]] = {}
    stages = timeline.of_kinds("stage")
    for launch in range(len(timeline.launches)):
        mine = stages[stages["launch"] == launch]
        active = {
            int(r): _union(mine[mine["region"] == r])
            for r in dict.fromkeys(mine["region"].tolist())
        }
        numbers = sorted(active, key=lambda r: int(active[r][0, 0]))
        for position, a in enumerate(numbers):
            for b in numbers[position + 1 : position + 1 + _NEIGHBOURS]:
                pair = a, b
                both[pair] = both.get(pair, 0) + _common(active[a], active[b])
                lengths = alone.get(pair, (0, 0))
                alone[pair] = lengths[0] + _length(active[a]), lengths[1] + _length(active[b])
    names = [str(r) for r in timeline.regions]
    found = (StageOverlap(names[a], names[b], ns, min(alone[a, b])) for (a, b), ns in both.items())
    return tuple(sorted(found, key=lambda o: -o.both_ns))


def _union(intervals: Intervals) -> npt.NDArray[np.int64]:
    """Disjoint (start, end) in order of time that cover the intervals."""
    order = np.argsort(intervals["start"], kind="stable")
    starts = intervals["start"][order]
    reach = np.maximum.accumulate(intervals["end"][order])
    new = np.concatenate(([True], starts[1:] > reach[:-1]))
    last = np.append(np.flatnonzero(new)[1:] - 1, len(order) - 1)
    return np.stack([starts[new], reach[last]], axis=1)


def _length(pieces: npt.NDArray[np.int64]) -> int:
    return int((pieces[:, 1] - pieces[:, 0]).sum())


def _common(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> int:
    return _length(a) + _length(b) - _length(_merged(a, b))


def _merged(*sets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    pieces = np.concatenate(sets)
    pieces = pieces[np.argsort(pieces[:, 0], kind="stable")]
    reach = np.maximum.accumulate(pieces[:, 1])
    new = np.concatenate(([True], pieces[1:, 0] > reach[:-1]))
    last = np.append(np.flatnonzero(new)[1:] - 1, len(pieces) - 1)
    return np.stack([pieces[new, 0], reach[last]], axis=1)


def tail_ns(timeline: Timeline, launches: Sequence[int] | None = None) -> int:
    """For how long some worker had nothing left to do before the launch ended, summed; 0 where
    not all work-groups recorded, and nobody knows."""
    total = 0
    if timeline.is_sampled:
        return 0
    accounted = timeline.accounted()
    chosen = range(len(timeline.launches)) if launches is None else launches
    for launch in chosen:
        mine = accounted[accounted["launch"] == launch]
        if len(mine) and timeline.workers > 1:
            last = np.zeros(timeline.workers, np.int64)
            np.maximum.at(last, mine["worker"], mine["end"])
            started = timeline.launches[launch].start_ns
            total += timeline.launches[launch].end_ns - max(int(last.min()), started)
    return total
