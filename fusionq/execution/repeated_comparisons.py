"""Which comparisons of two candidates are repeated, since something else may have decided them.

Two candidates run one after the other, and what else the machine does meanwhile may hold up the one
more than the other.  Where the faster of the two took much longer than it does at other times, its
win says little, and neither does one over what took much longer than it was known to take.
"""

from __future__ import annotations

from collections.abc import Mapping

from fusionq.execution.contender import Candidate, Contender
from fusionq.execution.samples import CLEARLY_BATCHED, FASTER

SECOND_COMPARISON = 1.1
"""A persistent kernel that was slower by more, though not by the model, is compared with the best
once more at the end: other work on the machine makes it wait for so long that it is no more to be
compared."""

CLOSE = 1.25
"""So is one that took less than so many times as long as the best now does, where something else
held up both when they were compared."""

REST = 0.05
"""Seconds that the list's runs take before a win is repeated which is not proved: by then what held
them up may have ended."""


def is_unproven(
    own: Contender, best: Contender, took: float, is_among: bool, is_unfused: bool
) -> bool:
    """Whether a win over the best, which ``took`` so long, does not count yet: that is much longer
    than it was known to take before, and the winner is not shorter than that.  ``is_among``: by
    samples of several runs; ``is_unfused``: whether the best is each submission by itself.  A
    second win counts."""
    known = best.known_alone
    if is_among:  # among others a run takes no longer, but where the host launches one by one
        known = best.known if is_unfused else min(known, best.known)
    is_held_up = took > CLEARLY_BATCHED * known and own.shortest >= FASTER * known
    return is_held_up and own.win == "none"


def compared_again(
    contenders: Mapping[Candidate, Contender], fastest: Candidate
) -> Candidate | None:
    """A candidate that was slower and is compared once more with the ``fastest``, as which it is
    marked; None: no further one."""
    for name, contender in contenders.items():
        if contender.state != "slower" or name == fastest or not contender.timed:
            continue
        if contender.win == "unproven":
            contender.win = "repeated"
        elif not contender.is_second and _is_doubted(contender, contenders, fastest):
            contender.is_second = True
        else:
            continue
        contender.state = "ready"
        return name
    return None


def _is_doubted(
    contender: Contender, contenders: Mapping[Candidate, Contender], fastest: Candidate
) -> bool:
    best = contenders[fastest]
    behind = contender.slowdown / max(best.slowdown, 1e-9)
    is_other = contender.is_persistent and behind > SECOND_COMPARISON
    return (
        (is_other and contender.model <= best.model)
        or (behind < CLOSE and _was_held_up(contender, contenders))
        or contender.is_doubtful
    )


def _was_held_up(contender: Contender, contenders: Mapping[Candidate, Contender]) -> bool:
    """Whether what was faster than ``contender`` took so much longer then than it did at other
    times that something else has to have held up both."""
    if contender.lost_to is None:
        return False
    name, seconds, is_among = contender.lost_to
    winner = contenders[name]
    fastest = winner.fastest_alone  # among others it takes no longer than by itself
    if is_among:
        fastest = min(fastest, winner.fastest)
    return fastest * CLEARLY_BATCHED < seconds
