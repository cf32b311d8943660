"""Seconds by phase: what a submission's or a fusion's first run spends its time on."""

from __future__ import annotations

from time import perf_counter


class timed:
    """Add the seconds that the block takes to ``phase`` of ``timings``; also where it raises.

    A class, since a generator as a context manager takes twice as long."""

    __slots__ = ("_phase", "_started", "_timings")

    def __init__(self, timings: dict[str, float], phase: str) -> None:
        self._timings, self._phase = timings, phase

    def __enter__(self) -> None:
        self._started = perf_counter()

    def __exit__(self, *error: object) -> None:
        add_seconds(self._timings, self._phase, perf_counter() - self._started)


def add_seconds(timings: dict[str, float], phase: str, seconds: float) -> None:
    """Add to a phase."""
    timings[phase] = timings.get(phase, 0.0) + seconds
