"""What the records say, the worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fusionq.profiling.accounting import Accounting, RegionStatistics, tail_ns
from fusionq.profiling.comparison import Comparison, gaps_ns
from fusionq.profiling.text import count, duration, joined, percent
from fusionq.profiling.timeline import Timeline
from fusionq.profiling.waits import Blame

_SLOWER = 0.05
"""Less than that is within what measurements differ by."""

_WORTH_SAYING = 0.01
"""Below this part of the time nothing is worth a line."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that costs time: ``cost`` is its part of all time from the first launch to the
    last, 0 to 1."""

    cost: float
    what: str
    advice: str


def findings(
    timeline: Timeline,
    accounting: Accounting,
    statistics: Sequence[RegionStatistics],
    blames: Sequence[Blame],
    compared: Sequence[Comparison],
    time_slice_ns: int,
) -> tuple[Finding, ...]:
    """All that is worth saying about the program's own launches, the most expensive first; what
    took longer than ``time_slice_ns`` may have lost its core."""
    launches = [launch for launch in timeline.launches if launch.source == "device"]
    if not launches:
        return ()
    gaps = gaps_ns(launches)
    whole = accounting.window_ns + gaps
    found = [
        _gaps(gaps, whole, len(launches)),
        _tail(timeline, whole, statistics, time_slice_ns),
        *_kind(timeline, accounting, whole, blames, time_slice_ns),
        *_slower(compared),
    ]
    kept = [f for f in found if f is not None and f.cost >= _WORTH_SAYING]
    return tuple(sorted(kept, key=lambda f: -f.cost))


def _gaps(gaps: int, whole: int, launches: int) -> Finding | None:
    if not whole or launches < 2:
        return None
    return Finding(
        gaps / whole,
        f"between {count(launches, 'launch', 'launches')} nothing ran for {duration(gaps)}",
        "submit without waiting in between, fuse what can be fused, or replay a fusion",
    )


def _tail(
    timeline: Timeline, whole: int, statistics: Sequence[RegionStatistics], time_slice_ns: int
) -> Finding | None:
    tail = tail_ns(timeline)
    if not whole or not tail:
        return None
    uneven = max(
        (s for s in statistics if s.kind == "stage"),
        key=lambda s: s.max_ns - s.p50_ns,
        default=None,
    )
    what = f"workers ran out of work before the launch ended, {duration(tail)} in all"
    advice = "give the launch more and smaller work-groups"
    if uneven is not None and uneven.count > 1 and _interrupted(timeline, uneven, time_slice_ns):
        what += (
            f"; a work-group of {uneven.name!r} took {duration(uneven.max_ns)}, half of them at "
            f"most {duration(uneven.p50_ns)}: its core probably did something else meanwhile"
        )
        advice = "measure again while the machine does nothing else"
    elif uneven is not None and uneven.count > 1 and uneven.max_ns > 2 * uneven.p50_ns:
        what += (
            f"; a work-group of {uneven.name!r} took up to {duration(uneven.max_ns)}, half of them "
            f"less than {duration(uneven.p50_ns)}"
        )
        advice = "divide the work evenly over work-items, begin with the long ones, or " + (
            "use smaller work-groups"
        )
    return Finding(tail / whole, what, advice)


def _interrupted(timeline: Timeline, region: RegionStatistics, time_slice_ns: int) -> bool:
    """Whether a few work-groups took much longer than all others: they have lost their core."""
    mine = timeline.intervals[timeline.intervals["region"] == region.region]
    durations = mine["end"] - mine["start"]
    outliers = int((durations > 10 * region.p50_ns).sum())
    return region.max_ns > time_slice_ns and 0 < outliers <= max(1, len(durations) // 30)


_ADVICE = {
    "barrier": (
        "work-groups waited at barriers",
        "let a dependence stay inside a work-item, or make work-groups smaller",
    ),
    "ticket": ("workers waited for the next ticket", "make tiles larger"),
    "publish": ("workers published what they had done", "make tiles larger"),
}


def _kind(
    timeline: Timeline,
    accounting: Accounting,
    whole: int,
    blames: Sequence[Blame],
    time_slice_ns: int,
) -> list[Finding]:
    if not whole:
        return []
    scale = accounting.window_ns / whole
    found = [
        Finding(
            accounting.share(kind) * scale, f"{what}, {percent(accounting.share(kind))}", advice
        )
        for kind, (what, advice) in _ADVICE.items()
    ]
    waited = accounting.share("wait")
    if waited and blames:
        worst = blames[0]
        what = (
            f"workers waited for others, {percent(waited)}; most of all {worst.waiter!r} for "
            f"{worst.producer!r} ({duration(worst.sum_ns)} in {count(worst.count, 'wait')}, "
            f"the longest for tile {worst.worst_producer})"
        )
        advice = f"make {worst.producer!r} faster or more even, or let it begin earlier"
        waits = timeline.of_kinds("wait")
        durations = waits["end"] - waits["start"]
        long = durations[durations > time_slice_ns]
        if len(long) * 20 < len(durations) and long.sum() * 2 > durations.sum():
            what += (
                f"; most of it in {count(len(long), 'wait')} of more than "
                f"{duration(time_slice_ns)}, half of all took at most "
                f"{duration(float(np.median(durations)))}: the cores probably did something else"
            )
            advice = "measure again while the machine does nothing else"
        found.append(Finding(waited * scale, what, advice))
    return found


def _slower(compared: Sequence[Comparison]) -> list[Finding]:
    return [
        Finding(
            1 - c.speedup,
            f"fused, {joined(c.headings)} takes {duration(c.fused.makespan_ns)}, unfused "
            f"{duration(c.unfused.makespan_ns)}",
            'leave this list unfused (strategy="unfused")',
        )
        for c in compared
        if c.speedup < 1 - _SLOWER
    ]
