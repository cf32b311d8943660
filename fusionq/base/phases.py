"""Seconds by phase: what a submission's or a fusion's first run spends its time on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


@contextmanager
def timed(timings: dict[str, float], phase: str) -> Iterator[None]:
    """Add the seconds that the block takes to ``phase`` of ``timings``; also where it raises."""
    started = perf_counter()
    try:
        yield
    finally:
        add_seconds(timings, phase, perf_counter() - started)


def add_seconds(timings: dict[str, float], phase: str, seconds: float) -> None:
    """Add to a phase."""
    timings[phase] = timings.get(phase, 0.0) + seconds
