"""Timelines made by hand."""

from __future__ import annotations

import numpy as np

from fusionq.profiling.calibration import Calibration
from fusionq.profiling.regions import Region
from fusionq.profiling.timeline import INTERVAL, Launch, Timeline

CLOCK = Calibration("clock", tick_ns=10, record_ns=20, skew_ns=5)


def launch(start: int, end: int, work: int = 0, run: int = 0, variant="", name: str = "k"):
    return Launch(name, (name,), work, run, variant, start, start, end, 1)


def timeline(regions, rows, launches=None) -> Timeline:
    """``regions``: (name, kind); ``rows``: (worker, region, start, end, instance, payload)."""
    intervals = np.zeros(len(rows), INTERVAL)
    for position, row in enumerate(rows):
        worker, region, start, end, *rest = row
        instance, payload, launched = (*rest, *(0, 0, 0)[len(rest) :])
        intervals[position] = (worker, launched, region, instance, start, end, payload, -1)
    start = min((r[2] for r in rows), default=0)
    end = max((r[3] for r in rows), default=0)
    return Timeline(
        tuple(Region(name, kind) for name, kind in regions),
        tuple(launches or [launch(start, end)]),
        intervals,
        clock=CLOCK,
    )


# Two workers.  Stage b on worker 1 waits at tile 7 for both tiles of stage a; tile 1 comes last.
STAGES = [
    ("a", "stage"), ("b", "stage"), ("a", "publish"), ("b", "wait"), ("tickets", "ticket"),
]  # fmt: skip
WAITING = timeline(
    STAGES,
    [
        (0, 0, 0, 500, 1), (0, 2, 500, 510, 1, 42),
        (1, 4, 0, 10, 0), (1, 0, 10, 200, 0), (1, 2, 200, 210, 0, 42),
        (1, 4, 210, 220, 7), (1, 3, 220, 520, 7, 42), (1, 1, 520, 1000, 7),
    ],
)  # fmt: skip
