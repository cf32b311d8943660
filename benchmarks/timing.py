"""Interleaved timing, so that a machine's changing speed touches all variants alike."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

SAMPLE_SECONDS = 0.02
"""A sample is a batch of runs that takes about this long; one run, if that takes longer."""
MOST_RUNS = 10_000
"""The most runs in a sample."""
SETTLE_SECONDS = 0.002
"""Pause before a sample: thread pools of the variant before may still be spinning."""


class Waitable(Protocol):
    """What stands for a run that has been submitted, such as an event."""

    def wait(self) -> object:
        """Return when the run is over."""


Start: TypeAlias = Callable[[], Waitable | None]
"""Starts one run; returns what to wait for, or None if the run is over.  Runs that were started
one after the other are over when the last one is."""
Sampler: TypeAlias = Callable[[int], float]
"""Makes so many runs and returns the seconds that they took together."""


@dataclass(frozen=True)
class Timing:
    """Seconds a run, one number for each round of one variant."""

    seconds: tuple[float, ...]
    runs_per_sample: int
    """Runs whose mean each number is."""

    def quantile(self, q: float) -> float:
        """The ``q`` quantile in seconds."""
        return float(np.quantile(self.seconds, q))

    @property
    def median(self) -> float:
        """The median in seconds."""
        return self.quantile(0.5)


def run_to_end(start: Start) -> None:
    """One run, to its end."""
    started = start()
    if started is not None:
        started.wait()


def back_to_back(start: Start) -> Sampler:
    """Runs submitted one after the other, with one wait, for the last."""

    def sample(runs: int) -> float:
        began = time.perf_counter()
        for _ in range(runs):
            started = start()
        if started is not None:
            started.wait()
        return time.perf_counter() - began

    return sample


def one_at_a_time(start: Start) -> Sampler:
    """Runs of which each is over before the next is submitted."""

    def sample(runs: int) -> float:
        began = time.perf_counter()
        for _ in range(runs):
            run_to_end(start)
        return time.perf_counter() - began

    return sample


def time_interleaved(
    samplers: Sequence[Sampler],
    rounds: int,
    *,
    single: bool = False,
    seed: int = 0,
    on_sample: Callable[[], object] = lambda: None,
) -> list[Timing]:
    """One sample of each a round, in a new random order each round.

    Each sample follows an untimed run of its own.  It is a batch of as many runs as take about
    SAMPLE_SECONDS, at least one; ``single``: of one run.  All have run before.
    """
    runs = [1 if single else runs_per_sample(sampler) for sampler in samplers]
    seconds: list[list[float]] = [[] for _ in samplers]
    order = list(range(len(samplers)))
    shuffle = random.Random(seed).shuffle
    for _ in range(rounds):
        shuffle(order)
        for index in order:
            time.sleep(SETTLE_SECONDS)
            samplers[index](1)
            seconds[index].append(samplers[index](runs[index]) / runs[index])
            on_sample()
    return [Timing(tuple(s), r) for s, r in zip(seconds, runs, strict=True)]


def runs_per_sample(sampler: Sampler) -> int:
    """How many runs take SAMPLE_SECONDS, from growing batches, of which the last is the shorter of
    two: one run that something holds up is no reason to wait for each."""
    runs = 1
    while (taken := sampler(runs)) < SAMPLE_SECONDS / 4 or (
        (taken := min(taken, sampler(runs))) < SAMPLE_SECONDS / 4
    ):
        if runs >= MOST_RUNS:
            break
        runs = min(4 * runs, MOST_RUNS)
    return max(1, min(MOST_RUNS, round(runs * SAMPLE_SECONDS / max(taken, 1e-9))))
