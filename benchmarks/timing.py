"""Interleaved timing, so that a machine's changing speed touches all variants alike."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

SAMPLE_SECONDS = 0.002
"""A sample repeats a short call until it takes about this long."""
SETTLE_SECONDS = 0.002
"""Pause before a sample: thread pools of the variant before may still be spinning."""


@dataclass(frozen=True)
class Timing:
    """Seconds a call, over the rounds of one variant."""

    seconds: tuple[float, ...]
    repetitions: int
    """Calls in each sample."""

    def quantile(self, q: float) -> float:
        """The ``q`` quantile in seconds."""
        return float(np.quantile(self.seconds, q))

    @property
    def median(self) -> float:
        """The median in seconds."""
        return self.quantile(0.5)


def time_interleaved(
    calls: Sequence[Callable[[], object]],
    rounds: int,
    *,
    seed: int = 0,
    on_sample: Callable[[], object] = lambda: None,
) -> list[Timing]:
    """Time every call once a round, in a new random order each round.

    Each sample follows an untimed call of its own.  ``calls`` have run before.
    """
    repetitions = [_repetitions(call) for call in calls]
    seconds: list[list[float]] = [[] for _ in calls]
    order = list(range(len(calls)))
    shuffle = random.Random(seed).shuffle
    for _ in range(rounds):
        shuffle(order)
        for index in order:
            time.sleep(SETTLE_SECONDS)
            seconds[index].append(_sample(calls[index], repetitions[index]))
            on_sample()
    return [Timing(tuple(s), r) for s, r in zip(seconds, repetitions, strict=True)]


def _repetitions(call: Callable[[], object]) -> int:
    once = min(_sample(call, 1) for _ in range(3))
    return max(1, min(1000, round(SAMPLE_SECONDS / max(once, 1e-9))))


def _sample(call: Callable[[], object], repetitions: int) -> float:
    call()
    start = time.perf_counter()
    for _ in range(repetitions):
        call()
    return (time.perf_counter() - start) / repetitions
