"""A list as it ran against the same list unfused, measured in the same profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fusionq.profiling.accounting import KINDS, account, tail_ns
from fusionq.profiling.session import ProfiledList
from fusionq.profiling.timeline import Launch, Timeline, Variant


@dataclass(frozen=True, slots=True)
class MeasuredForm:
    """One form of a list, fused or not: medians over its runs.

    ``makespan_ns``: from the first record to the last.  ``gaps_ns``: between launches, when
    nothing ran.  ``barrier_ns``: in work-group barriers, for each worker.  ``tail_ns``: when some
    worker had nothing left to do.  ``traffic_bytes``: what has to be moved to and from global
    memory.
    """

    launches: int
    makespan_ns: float
    gaps_ns: float
    barrier_ns: float
    tail_ns: float
    traffic_bytes: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """``exact_traffic``: False where some access has a footprint that is only known to be inside
    a box."""

    work: int
    headings: tuple[str, ...]
    runs: int
    fused: MeasuredForm
    unfused: MeasuredForm
    exact_traffic: bool

    @property
    def speedup(self) -> float:
        """How many times faster the fused form is."""
        return self.unfused.makespan_ns / self.fused.makespan_ns if self.fused.makespan_ns else 0.0


def comparisons(timeline: Timeline, works: Sequence[ProfiledList]) -> tuple[Comparison, ...]:
    """One for each list that was compared."""
    found = []
    for work in works:
        if work.compared is not None:
            continue
        fused_traffic, unfused_traffic = work.traffic()
        fused = _form(timeline, work.number, "fused", fused_traffic.bytes)
        unfused = _form(timeline, work.number, "unfused", unfused_traffic.bytes)
        if fused is None or unfused is None:
            continue
        exact = fused_traffic.exact and unfused_traffic.exact
        runs = len(_runs(timeline, work.number, "fused"))
        found.append(Comparison(work.number, work.headings, runs, fused, unfused, exact))
    return tuple(found)


def _runs(timeline: Timeline, work: int, variant: Variant) -> dict[int, list[int]]:
    """The launches of each run."""
    runs: dict[int, list[int]] = {}
    for number, launch in enumerate(timeline.launches):
        if launch.work == work and launch.variant == variant:
            runs.setdefault(launch.run, []).append(number)
    return runs


def _form(
    timeline: Timeline, work: int, variant: Variant, traffic_bytes: int
) -> MeasuredForm | None:
    runs = _runs(timeline, work, variant)
    if not runs:
        return None
    makespans, gaps, barriers, tails = [], [], [], []
    for numbers in runs.values():
        launches = [timeline.launches[n] for n in numbers]
        makespans.append(launches[-1].end_ns - launches[0].start_ns)
        gaps.append(gaps_ns(launches))
        part = timeline.select(numbers)
        accounting = account(part)
        workers = max(part.workers, 1)
        barriers.append(accounting.table[:, KINDS.index("barrier")].sum() / workers)
        tails.append(tail_ns(part))
    makespan, gap, barrier, tail = (
        float(np.median(values)) for values in (makespans, gaps, barriers, tails)
    )
    return MeasuredForm(len(next(iter(runs.values()))), makespan, gap, barrier, tail, traffic_bytes)


def gaps_ns(launches: Sequence[Launch]) -> int:
    """The time between launches that follow each other when neither ran."""
    return sum(max(after.start_ns - before.end_ns, 0) for before, after in pairwise(launches))
