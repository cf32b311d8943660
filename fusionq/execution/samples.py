"""What the samples of two candidates say: how many runs each has, which do not count, and which of
the two is faster.

A sample is one run, or several behind each other.  What disturbs a run lengthens it, so the
shortest sample counts; but a candidate's first runs find its code in no cache, and a persistent
kernel waits for those of its workers that something else keeps from running.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from fusionq.execution.contender import Contender

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

SEVERAL = 3
"""Runs of a sample where nobody waits for each: two more than what a run takes by itself says."""

BESIDE = 1.5e-4
"""Seconds that a sample may take beside its runs, differently by candidate: the end is waited for,
then the device's threads are woken, and the host's first launches are not behind others.  0.01 to
0.17 ms were seen, for persistent kernels and for launches.  It is about the same for samples of one
run and of several, so that their difference tells what a run takes."""

DECIDES = 1e-4
"""By so many seconds two runs by themselves have to differ to decide alone: less than ``BESIDE``,
since most candidates take about the same beside their runs.  Replayed samples of 52 forms, for each
two candidates: the median of runs until the choice is 8 (9 with 0.15 ms), and 11.8 % choose what is
slower by 5 % or more (11.8), 4.9 % on a quiet machine (4.7); with 0.06 ms 13 and 8 %."""

LEAST_SHARE = 0.25
"""Of what a sample of several takes, that its runs take: also of short ones more was not seen to be
beside them, where one that was held up by itself would say that they take nothing."""

CLEARLY_BATCHED, LEAST_CLEAR = 1.25, 5e-5
"""A run of the best by itself contradicts what is known of it where it takes so many times as long,
or as short, and so many seconds more or less.  A run of each by itself decides by
``CLEARLY_SLOWER`` and ``CLEARLY_FASTER`` where the two differ by ``DECIDES``."""

BY_ITSELF = 2e-3
"""Seconds of a run from which on one by itself is a sample."""

SLOW = 2.0
"""A persistent kernel's first run that takes so many times as long as one of the best was held up;
where samples have several runs, what takes so long by itself has none."""

COLD_SECONDS = 1e-2
"""That a candidate's first run may take longer, since its code is in no cache yet: 4.7 ms where the
next ones took 62 µs.  It does not count where the best takes less than that."""

COLD_ON_DEVICE = 1e-4
"""That a first run may take longer where the device times it, or as long again as the best if that
is more; what takes longer than that is slower.  On an H100 first runs took what the next ones did,
and those of persistent kernels 30 to 200 µs more."""

COLD_RUNS = 3
"""So many may take any time of a persistent kernel, whose workers wait for those that something
else keeps from running: 8 to 40 ms where the next ones took 65 µs.  Between them the list runs for
as long as allows their cost."""

CORE_TAKEN = (2e-3, 5e-2)
"""As many may of any other, too, that take from so many to so many seconds more than ``SLOW``
says: systems give a core to others for some milliseconds, and a candidate of 40 µs was dropped for
a run of 12.8 ms beside two busy processes."""

DISTURBED, MOST_DISTURBED = (1.5, 2.0), 2
"""A first sample of several runs that takes so many times what one took by itself, or any that
takes so many times as long as an earlier sample of its kind, was disturbed: it does not count, so
many times."""


def batch(best: Contender) -> int:
    """How many runs a sample has where nobody waits for each, by what one of the ``best`` takes."""
    return 1 if min(best.alone, default=BY_ITSELF) >= BY_ITSELF else SEVERAL


def among_others(seconds: float, runs: int, alone: Sequence[float]) -> float:
    """What a run of a sample of several takes without what is beside them, where one by itself took
    ``alone``: that may have been held up."""
    if runs == 1 or not alone:
        return seconds
    least = seconds - BESIDE / runs
    return max((runs * seconds - min(alone)) / (runs - 1), least, LEAST_SHARE * seconds)


def is_cold(contender: Contender, seconds: float, runs: int, most: int, best: float) -> bool:
    """Whether a challenger's sample of ``runs``, of at ``most`` so many, took so long since it was
    among its first; ``best``: what the best takes."""
    slow = SLOW * best
    if best >= COLD_SECONDS or contender.alone or runs > 1:
        return False
    shortest, longest = (0.0, inf) if contender.is_persistent else CORE_TAKEN
    if contender.timed <= COLD_RUNS and shortest < seconds - slow < longest:
        return True
    if contender.timed > 1 or seconds > slow + COLD_SECONDS:
        return False
    return seconds > (best if most == 1 else slow)


def is_cold_on_device(contender: Contender, seconds: float, best: float) -> bool:
    """The same where the device has timed the sample: no processor of the host can have been taken
    from it, and the code is there."""
    return contender.timed == 1 and best < seconds <= best + max(best, COLD_ON_DEVICE)


def is_disturbed(contender: Contender, seconds: float, runs: int) -> bool:
    """Whether a sample took so much longer than what is known of the candidate that something else
    has to be the reason; counts those."""
    among, again = DISTURBED
    limit = again * (contender.fastest_alone if runs == 1 else contender.fastest)
    if runs > 1 and limit == inf:  # there is no earlier one
        limit = among * min(contender.alone, default=inf)
    if seconds <= limit or contender.disturbed >= MOST_DISTURBED:
        return False
    contender.disturbed += 1
    return True


def verdict(own: Contender, best: Contender, most: int) -> bool | None:
    """Whether the challenger is faster than the best by samples of at ``most`` so many runs; None
    where others are needed."""
    if most > 1:
        return _verdict_of_several(own, best, most)
    if not own.seconds or not best.seconds:
        return None
    rounds, slower = len(own.seconds), own.shortest / best.shortest
    if rounds <= len(CLEARLY_SLOWER) and slower > CLEARLY_SLOWER[rounds - 1]:
        return False
    if slower < CLEARLY_FASTER:
        return True if len(best.seconds) >= RUNS else None
    needed = MOST_RUNS if UNSURE < slower < 1 else RUNS
    if rounds >= needed and len(best.seconds) >= needed:
        return slower < FASTER
    return None


def is_faster_by_itself(own: Contender, best: Contender) -> bool:
    """Whether a run of the challenger by itself is so much shorter than one of the best that others
    are not needed where samples have several."""
    known, alone = min(best.alone, default=0.0), min(own.alone, default=inf)
    return alone < CLEARLY_FASTER * known and known - alone > DECIDES


def _verdict_of_several(own: Contender, best: Contender, most: int) -> bool | None:
    """The same where nobody waits for each run."""
    if not own.alone or not best.alone:
        return None
    alone, best_alone = min(own.alone), min(best.alone)
    if not own.seconds:
        is_faster = is_faster_by_itself(own, best)
        if is_faster and len(best.alone) < RUNS:
            return None
        is_slower = alone > CLEARLY_SLOWER[0] * best_alone and alone - best_alone > DECIDES
        if is_faster or is_slower or alone > SLOW * best_alone:
            own.seconds, own.is_rough = own.alone[:], True
            return is_faster
        return None
    if not best.seconds:
        return None
    # No run takes longer than one by itself, which makes those among others look short where it was
    # held up: what both take together has to say the same.
    slower = min(own.shortest, alone) / min(best.shortest, best_alone)
    sample, of_best = (c.shortest * (most - 1) + min(c.alone) for c in (own, best))
    return slower < FASTER and sample < of_best
