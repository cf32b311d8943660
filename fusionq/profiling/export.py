"""A profile in plain types."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fusionq.profiling.accounting import KINDS
from fusionq.profiling.model import ProfileResults


def to_dict(profile: ProfileResults) -> dict[str, Any]:
    """Nanoseconds and bytes by name; shares and ratios have no unit, 0 to 1."""
    timeline, accounting = profile.timeline, profile.accounting
    path = profile.critical_path
    return {
        "launches": [
            {**asdict(launch), "makespan_ns": launch.makespan_ns} for launch in timeline.launches
        ],
        "workers": [
            {f"{kind}_ns": int(ns) for kind, ns in zip(KINDS, row, strict=True)}
            for row in accounting.table
        ],
        "window_ns": accounting.window_ns,
        "findings": [
            {"cost_share": f.cost, "what": f.what, "advice": f.advice} for f in profile.findings
        ],
        "regions": [{**asdict(s), "imbalance_share": s.imbalance} for s in profile.statistics],
        "waits": [
            {name: value for name, value in asdict(b).items() if name != "worst_intervals"}
            for b in profile.waits
        ],
        "overlaps": [
            {"first": o.first, "second": o.second, "both_ns": o.both_ns, "shorter_share": o.share}
            for o in profile.overlaps
        ],
        "critical_path": None
        if path is None
        else {
            "launch": path.launch,
            "length_ns": path.length_ns,
            "makespan_ns": path.makespan_ns,
            "error_share": path.error,
            "steps": path.steps,
            "by_region_ns": dict(path.by_region),
        },
        "what_if": [{**asdict(w), "saved_share": w.saved} for w in profile.what_if],
        "comparisons": [{**asdict(c), "speedup_ratio": c.speedup} for c in profile.comparisons],
        "not_compared": [
            {"submissions": list(w.headings), "reason": w.compared}
            for w in profile.works
            if w.compared is not None
        ],
        "counters": dict(profile.counters),
        "dropped_records": dict(timeline.dropped),
        "clock": None if timeline.clock is None else asdict(timeline.clock),
        "no_clock": timeline.no_clock,
    }
