"""What the samples of two candidates say: how many runs each has, which do not count, and which of
the two is faster.

A sample is one run, or several behind each other.  What disturbs a run lengthens it, so the
shortest sample counts; but a candidate's first runs find its code in no cache, and a persistent
kernel waits for those of its workers that something else keeps from running.
"""

from __future__ import annotations

from math import ceil

from fusionq.execution.contender import Contender
from fusionq.execution.drift import ALONE

RUNS = 2
"""Samples of a candidate, each behind one of the best; the shortest counts, since what disturbs a
run lengthens it."""

UNSURE, MOST_RUNS = 0.9, 3
"""Where the challenger's shortest is shorter than the best's, but no less than that part of it,
there are as many samples.  Where it is not shorter there is nothing to win."""

FASTER = 0.97
"""By so much of the shortest sample of the best another one's has to be shorter to take its
place."""

CLEARLY_FASTER = 0.8
"""So many times the shortest of two samples of the best, where one decides: it is among the first,
which take longer than later ones."""

CLEARLY_SLOWER = (1.4, 1.1)
"""After so many samples a candidate is dropped whose shortest is so many times that of the best."""

BATCH_SECONDS, MOST_BATCHED = 3e-4, 8
"""What a sample takes, about, where nobody waits for the runs, and the most runs that it has.  A
run by itself takes 25 µs longer there, to wake the device's threads and to see the end."""

CLEARLY_SLOWER_BATCH, CLEARLY_FASTER_BATCH = (1.2, 1.1), 0.87
"""The same of samples of several runs, and so many times that of the best where one of each
decides."""

UNLIKE = 1.5e-4
"""Seconds by which a sample may be too long, by candidate: the end is waited for, then the device's
threads are woken, and the host's first launches are not behind others.  0.02 to 0.17 ms were seen,
for persistent kernels and for launches.  Where two samples differ by less, longer ones decide."""

LONG_SECONDS, MOST_LONG = 2e-3, 48
"""What those take, about, and the most runs that they have."""

CLEARLY_SLOWER_LONG, CLEARLY_FASTER_LONG = (1.1, 1.05), 0.93
"""As ``CLEARLY_SLOWER_BATCH`` and ``CLEARLY_FASTER_BATCH``."""

SLOW = 2.0
"""A persistent kernel's first run that takes so many times as long as one of the best was held up;
where samples have several runs, what takes so long by itself has none."""

COLD_SECONDS = 1e-2
"""That a candidate's first run may take longer, since its code is in no cache yet: 4.7 ms where the
next ones took 62 µs.  It does not count where the best takes less than that."""

COLD_RUNS = 3
"""So many may take any time of a persistent kernel, whose workers wait for those that something
else keeps from running: 8 to 40 ms where the next ones took 65 µs.  Between them the list runs for
as long as allows their cost."""

DISTURBED, MOST_DISTURBED = (1.5, 2.0), 2
"""A run among others that takes so many times what it took by itself, or any that takes so many
times as long as in an earlier sample, was disturbed: it does not count, so many times."""


def batch(best: Contender, is_long: bool = False) -> int:
    """How many runs a sample has where nobody waits for each, by what one of the ``best`` takes."""
    wanted, most = (LONG_SECONDS, MOST_LONG) if is_long else (BATCH_SECONDS, MOST_BATCHED)
    alone = min(best.alone, default=wanted)
    return max(1, min(ceil(wanted / max(alone, 1e-9)), most))


def is_cold(contender: Contender, seconds: float, runs: int, most: int, best: float) -> bool:
    """Whether a challenger's sample of ``runs``, of at ``most`` so many, took so long since it was
    among its first; ``best``: what the best takes."""
    slow = SLOW * best
    if best >= COLD_SECONDS or contender.alone or runs > 1:
        return False
    if contender.is_persistent and contender.timed <= COLD_RUNS and seconds > slow:
        return True
    if contender.timed > 1 or seconds > slow + COLD_SECONDS:
        return False
    return seconds > (best if most == 1 else slow)


def is_disturbed(contender: Contender, seconds: float, runs: int) -> bool:
    """Whether a sample took so much longer than what is known of the candidate that something else
    has to be the reason; counts those."""
    among, again = DISTURBED
    limit = again * contender.fastest + ALONE
    if runs > 1:
        limit = min(limit, among * min(contender.alone, default=float("inf")))
    if seconds <= limit or contender.disturbed >= MOST_DISTURBED:
        return False
    contender.disturbed += 1
    return True


def is_unsure(own: Contender, best: Contender, runs: int) -> bool:
    """Whether samples of ``runs`` may say which of the two is faster only because of what they
    take beside their runs."""
    if not own.seconds or not best.seconds:
        return False
    return abs(own.shortest - best.shortest) * runs < UNLIKE


def verdict(own: Contender, best: Contender, most: int, is_long: bool = False) -> bool | None:
    """Whether the challenger is faster than the best by samples of at ``most`` so many runs; None
    where others are needed."""
    is_first = most > 1 and own.alone and not own.seconds
    if is_first and min(own.alone) > SLOW * min(best.alone):
        own.seconds = own.alone[:]
        return False
    if not own.seconds or not best.seconds:
        return None
    rounds, slower = len(own.seconds), own.shortest / best.shortest
    limits, faster = CLEARLY_SLOWER_BATCH, CLEARLY_FASTER_BATCH
    if is_long:
        limits, faster = CLEARLY_SLOWER_LONG, CLEARLY_FASTER_LONG
    elif most == 1:
        limits, faster = CLEARLY_SLOWER, CLEARLY_FASTER
    if rounds <= len(limits) and slower > limits[rounds - 1]:
        return False
    if slower < faster:
        return True if most > 1 or len(best.seconds) >= RUNS else None
    needed = MOST_RUNS if UNSURE < slower < 1 else RUNS
    if rounds >= needed and len(best.seconds) >= needed:
        return slower < FASTER
    return None
