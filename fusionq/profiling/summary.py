"""A profile as text for a terminal: the worst thing first."""

from __future__ import annotations

from collections.abc import Iterator

from fusionq.base.units import format_bytes
from fusionq.profiling.accounting import KINDS
from fusionq.profiling.model import ProfileResults
from fusionq.profiling.text import count, duration, joined, percent, table

_MOST_ROWS = 12
_COSTLY = 0.05


def summary(profile: ProfileResults) -> str:
    """What was found, as plain text."""
    kernels = profile.by_kernel
    parts = (
        _head(profile), _findings(profile), _time(profile), _regions(kernels),
        _waits(profile, kernels), _overlap(kernels), _path(kernels), _compared(profile),
        _counters(profile), _clock(kernels),
    )  # fmt: skip
    return "\n\n".join("\n".join(lines) for part in parts if (lines := list(part)))


def _head(profile: ProfileResults) -> Iterator[str]:
    own = profile.timeline.launches
    if not own:
        yield "profile: nothing ran"
        return
    total = sum(launch.makespan_ns for launch in own)
    workers = profile.timeline.workers
    on = f" on {count(workers, 'worker')}" if workers else ""
    yield f"profile: {count(len(own), 'launch', 'launches')}, {duration(total)}{on}"


def _findings(profile: ProfileResults) -> Iterator[str]:
    found = profile.findings
    if not found:
        if profile.timeline.clock is not None and profile.timeline.launches:
            yield "nothing stands out: the workers were busy with work"
        return
    worst, *others = found
    yield f"worst: {worst.what} ({percent(worst.cost)} of the time)"
    yield f"       → {worst.advice}"
    for finding in others:
        yield f"also:  {finding.what} ({percent(finding.cost)})"
        yield f"       → {finding.advice}"


def _time(profile: ProfileResults) -> Iterator[str]:
    accounting = profile.accounting
    if not len(accounting.table):
        return
    rows = []
    for worker, times in enumerate(accounting.table):
        shares = [percent(t / accounting.window_ns) for t in times]
        name = "average worker" if accounting.estimated else f"worker {worker}"
        rows.append((name, *shares, duration(accounting.window_ns)))
    rows.append(("all", *(percent(accounting.share(kind)) for kind in KINDS), ""))
    most = max((launch.every for launch in profile.timeline.launches), default=1)
    yield "time of each worker" + (
        f", estimated: of short work-groups one in {most} recorded" if accounting.estimated else ""
    )
    yield from table(("", *KINDS, "total"), rows)
    if accounting.records_share > _COSTLY:
        yield (
            f"  records took about {percent(accounting.records_share)} of it; "
            "profile(every=…) records fewer work-groups"
        )


def _regions(profile: ProfileResults) -> Iterator[str]:
    rows = []
    for s in profile.statistics[:_MOST_ROWS]:
        notes = []
        if not s.trusted:
            notes.append("not trustworthy: shorter than two ticks")
        if s.dropped:
            notes.append(f"{s.dropped:,} dropped")
        if s.sampled:
            notes.append("sampled")
        name = s.name if s.kind != "region" else f"{s.name} (region)"
        rows.append(
            (
                name, f"{s.count:,}", duration(s.p50_ns), duration(s.p99_ns), duration(s.max_ns),
                duration(s.sum_ns), percent(s.imbalance) if s.workers_ns else "-",
                ", ".join(notes),
            )
        )  # fmt: skip
    if rows:
        yield "regions, for each work-group"
        yield from table(("", "count", "p50", "p99", "max", "sum", "imbalance", ""), rows)
    if len(profile.statistics) > _MOST_ROWS:
        yield f"  … and {len(profile.statistics) - _MOST_ROWS} more"


def _waits(profile: ProfileResults, kernels: ProfileResults) -> Iterator[str]:
    rows = []
    for b in kernels.waits[:_MOST_ROWS]:
        waiter, producer = (_stage(profile, interval) for interval in b.worst_intervals)
        who = f"tile {b.worst_instance} for {b.worst_producer}"
        if (waiter, producer) != (b.waiter, b.producer):
            who = f"{waiter}, tile {b.worst_instance}, for {producer}, tile {b.worst_producer}"
        name = f"{b.waiter} for {b.producer}"
        rows.append((name, f"{b.count:,}", duration(b.sum_ns), duration(b.max_ns), who))
    if rows:
        yield "who waited for whom"
        yield from table(("", "waits", "sum", "longest", ""), rows)


def _stage(profile: ProfileResults, interval: int) -> str:
    timeline = profile.timeline
    if interval < 0:
        return "unknown"
    return timeline.regions[int(timeline.intervals["region"][interval])].name


def _overlap(profile: ProfileResults) -> Iterator[str]:
    rows = [
        (f"{o.first} and {o.second}", duration(o.both_ns), percent(o.share))
        for o in profile.overlaps[:_MOST_ROWS]
        if o.both_ns
    ]
    if rows:
        yield "stages at work at the same time"
        yield from table(("", "both", "of the shorter"), rows)


def _path(profile: ProfileResults) -> Iterator[str]:
    path = profile.critical_path
    if path is None:
        return
    yield (
        f"critical path of the longest launch: {duration(path.length_ns)} of "
        f"{duration(path.makespan_ns)} measured (error {percent(path.error)}), "
        f"{count(path.steps, 'step')}"
    )
    for name, ns in list(path.by_region.items())[:_MOST_ROWS]:
        yield f"  {duration(ns):>9}  {name}"
    rows = [
        (w.stage, duration(w.without_ns), percent(w.saved)) for w in profile.what_if[:_MOST_ROWS]
    ]
    if len(rows) > 1:
        replayed, measured = profile.what_if[0].replayed_ns, profile.what_if[0].measured_ns
        yield f"if a stage took no time (replayed: {duration(replayed)} of {duration(measured)})"
        yield from table(("", "that launch", "saved"), rows)


def _compared(profile: ProfileResults) -> Iterator[str]:
    for c in profile.comparisons:
        more = "" if c.exact_traffic else " (at most)"
        yield (
            f"fused against unfused: {joined(c.headings)}: {c.speedup:.2f} times as fast, "
            f"medians of {count(c.runs, 'run')}"
        )
        rows = [
            (name, str(f.launches), duration(f.makespan_ns), duration(f.gaps_ns),
             format_bytes(f.traffic_bytes) + more, duration(f.barrier_ns), duration(f.tail_ns))
            for name, f in (("unfused", c.unfused), ("fused", c.fused))
        ]  # fmt: skip
        yield from table(
            ("", "launches", "makespan", "launch gaps", "traffic", "barriers", "tail"), rows
        )
    for work in profile.works:
        if work.compared is not None and len(work.submissions) > 1:
            yield f"not compared with unfused: {joined(work.headings)}: {work.compared}"


def _counters(profile: ProfileResults) -> Iterator[str]:
    if profile.counters:
        yield "counters"
        yield from table(("", ""), [(n, f"{v:,}") for n, v in profile.counters.items()])[1:]


def _clock(profile: ProfileResults) -> Iterator[str]:
    timeline = profile.timeline
    if timeline.clock is None:
        if timeline.no_clock is not None:
            yield f"host-side timing of launches only: {timeline.no_clock}"
            by_name: dict[str, list[int]] = {}
            for launch in timeline.launches:
                by_name.setdefault(launch.name, []).append(launch.makespan_ns)
            for name, times in list(by_name.items())[:_MOST_ROWS]:
                several = f"{len(times)} × " if len(times) > 1 else ""
                yield f"  {duration(sum(times)):>9}  {several}{name}"
        return
    clock = timeline.clock
    counted = ""
    if clock.function == "cycle_counter":
        counted = f"; kernels read the cycle counter, of {clock.count_ns:.4g} ns a count"
    skew = "unknown" if clock.skew_ns is None else f"at most {duration(clock.skew_ns)}"
    yield (
        f"clock: tick {duration(clock.tick_ns)}, a record costs {duration(clock.record_ns)}, "
        f"skew between workers {skew}{counted}"
    )
    if timeline.dropped:
        dropped = ", ".join(f"{name}: {n:,}" for name, n in timeline.dropped.items())
        yield f"records that were not kept: {dropped}"
