"""What a launch's duration depends on: the chain of work that could not have been shorter, and
how long the launch would take if one stage took no time."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusionq.profiling.timeline import Intervals, Timeline
from fusionq.profiling.waits import last_arrivers

_MOST_STAGES = 12


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The chain that ends where the launch does; nanoseconds.

    ``by_region``: what each region contributes.  ``makespan_ns`` is what was measured; the
    difference is time in which nothing on the chain was recorded.
    """

    launch: int
    length_ns: int
    makespan_ns: int
    steps: int
    by_region: Mapping[str, int]

    @property
    def error(self) -> float:
        """The part of the measured makespan that the chain does not explain."""
        return 1 - self.length_ns / self.makespan_ns if self.makespan_ns else 0.0


def critical_path(timeline: Timeline, launch: int) -> CriticalPath:
    """Follow, from the interval that ended last, always whoever kept the present one from
    starting: the last arriver that it waited for, or what its worker did before."""
    makespan = timeline.launches[launch].makespan_ns
    chain = _Chain(timeline, launch)
    by_region: dict[str, int] = {}
    length = steps = 0
    node = chain.last()
    while node is not None:
        duration = int(chain.end[node] - chain.begin[node])
        name = str(timeline.regions[chain.intervals["region"][node]])
        by_region[name] = by_region.get(name, 0) + duration
        length, steps = length + duration, steps + 1
        node = chain.before(node)
    spent = ((name, ns) for name, ns in by_region.items() if ns)
    ordered = dict(sorted(spent, key=lambda item: -item[1]))
    return CriticalPath(launch, min(length, makespan), makespan, steps, ordered)


class _Chain:
    """The accounted intervals of one launch, by worker in order of time; waits hand over to the
    one that they waited for."""

    def __init__(self, timeline: Timeline, launch: int) -> None:
        kinds = timeline.kinds()
        mine = np.flatnonzero(
            (timeline.intervals["launch"] == launch)
            & np.isin(kinds, ("stage", "ticket", "wait", "barrier", "publish"))
        )
        worker, start, end = (timeline.intervals[f][mine] for f in ("worker", "start", "end"))
        mine = mine[np.lexsort((end, start, worker))]
        self.intervals: Intervals = timeline.intervals[mine]
        self.is_wait = kinds[mine] == "wait"
        self.begin, self.end = self.intervals["start"].copy(), self.intervals["end"].copy()
        local = np.full(len(timeline.intervals), -1)
        local[mine] = np.arange(len(mine))
        producer = last_arrivers(timeline)[mine]
        self.producer = np.where(producer >= 0, local[producer], -1)

    def last(self) -> int | None:
        """What ended last."""
        return int(self.end.argmax()) if len(self.end) else None

    def before(self, node: int) -> int | None:
        """What kept ``node`` from starting; of a wait that really waited, who it waited for, and
        the wait counts from then."""
        same = node > 0 and self.intervals["worker"][node - 1] == self.intervals["worker"][node]
        previous = node - 1 if same else None
        if previous is not None and self.is_wait[previous]:
            producer = int(self.producer[previous])
            if producer >= 0 and self.end[producer] > self.begin[previous]:
                self.begin[previous] = min(self.end[producer], self.end[previous])
        if self.is_wait[node]:
            producer = int(self.producer[node])
            if producer >= 0 and self.intervals["end"][producer] > self.intervals["start"][node]:
                return producer
        return previous


# ------------------------------------------------------------------------------- what if
@dataclass(frozen=True, slots=True)
class WhatIf:
    """How long a launch would take if a stage took no time, by a replay of what was measured;
    nanoseconds.  ``replayed_ns``: the same replay with the stage; the model's error is its distance
    from ``measured_ns``."""

    stage: str
    without_ns: int
    replayed_ns: int
    measured_ns: int

    @property
    def saved(self) -> float:
        """The part of the time that would be saved."""
        return 1 - self.without_ns / self.replayed_ns if self.replayed_ns else 0.0


def what_if(timeline: Timeline, launch: int) -> tuple[WhatIf, ...]:
    """For each stage of a launch, of many only those that take longest; the greatest saving
    first."""
    replay = _Replay(timeline, launch)
    measured, replayed = timeline.launches[launch].makespan_ns, replay.makespan(None)
    mine = timeline.intervals[timeline.intervals["launch"] == launch]
    sums = np.bincount(mine["region"], mine["end"] - mine["start"], len(timeline.regions))
    stages = [k for k, r in enumerate(timeline.regions) if r.kind == "stage" and sums[k]]
    stages.sort(key=lambda k: -sums[k])
    found = [
        WhatIf(timeline.regions[k].name, replay.makespan(k), replayed, measured)
        for k in stages[:_MOST_STAGES]
    ]
    return tuple(sorted(found, key=lambda w: w.without_ns))


class _Replay:
    """A launch as tasks (work-groups or tiles) that workers take in the order in which they began,
    each when it is free and what it waits for is there."""

    def __init__(self, timeline: Timeline, launch: int) -> None:
        chain = _Chain(timeline, launch)
        intervals = chain.intervals
        self.start = timeline.launches[launch].start_ns
        self.workers = len(set(intervals["worker"].tolist()))
        tasks: dict[tuple[int, int], list[int]] = {}
        for position, (worker, instance) in enumerate(
            zip(intervals["worker"].tolist(), intervals["instance"].tolist(), strict=True)
        ):
            tasks.setdefault((worker, instance), []).append(position)
        owner = np.full(len(intervals), -1)
        ordered = sorted(tasks.values(), key=lambda t: int(intervals["start"][t[0]]))
        for number, positions in enumerate(ordered):
            owner[positions] = number
        durations = intervals["end"] - intervals["start"]
        self.tasks: list[tuple[dict[int, int], list[int], int]] = []
        """For each task: nanoseconds by region, the tasks that it waits for, and what passes on
        its worker before it."""
        last_end: dict[int, int] = {}
        for positions in ordered:
            spent: dict[int, int] = {}
            needs: list[int] = []
            for p in positions:
                if chain.is_wait[p] and chain.producer[p] >= 0:
                    needs.append(int(owner[chain.producer[p]]))
                else:
                    region = int(intervals["region"][p])
                    spent[region] = spent.get(region, 0) + int(durations[p])
            worker = int(intervals["worker"][positions[0]])
            begin, end = (
                int(intervals["start"][positions[0]]),
                int(intervals["end"][positions].max()),
            )
            gap = begin - last_end.get(worker, self.start)
            inside = end - begin - int(durations[positions].sum())
            last_end[worker] = end
            self.tasks.append((spent, needs, max(gap, 0) + max(inside, 0)))

    def makespan(self, free_region: int | None) -> int:
        """How long it takes if ``free_region`` takes no time."""
        workers = [0] * self.workers
        heapq.heapify(workers)
        done: npt.NDArray[np.int64] = np.zeros(len(self.tasks), np.int64)
        for number, (spent, needs, gap) in enumerate(self.tasks):
            start = heapq.heappop(workers) + gap
            start = max([start, *(int(done[n]) for n in needs)])
            work = sum(ns for region, ns in spent.items() if region != free_region)
            done[number] = start + work
            heapq.heappush(workers, int(done[number]))
        return int(done.max(initial=0))
