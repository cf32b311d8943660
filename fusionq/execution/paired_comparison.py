"""One more comparison of what was chosen with another candidate: samples of the two in turn.

The first comparisons of a list have few samples, of which something else may have disturbed each.
Here the two are compared sample by sample: what makes all runs take longer for a while makes both
of a pair take longer, and what lengthens a single sample disturbs a single pair.  So the number of
pairs counts in which the one is faster, and the median of their quotients, where a sum or a
shortest run would be decided by one of them.
"""

from __future__ import annotations

from math import ceil, inf
from typing import Literal, TypeAlias

from fusionq.execution.contender import HELD_UP, Candidate
from fusionq.execution.samples import FASTER, SEVERAL

LONG, MOST_RUNS = 4e-3, 64
"""What the runs of a sample take together, about, where nobody waits for each, and the most that
it has: what a sample takes beside its runs, up to 0.17 ms and differently by candidate, is a few
hundredths of that."""

FEWEST, MOST_PAIRS = 5, 9
"""Pairs by which it is won at least, and after which it is not."""

CLEAR = 1.25
"""In two pairs of two the other one takes so many times as long as what was chosen: that is
enough."""

MOST_MISSES = 6
"""Samples that could not be taken: each halves the runs of those that follow, as other work may
come between so many."""

Verdict: TypeAlias = Literal["open", "won", "lost", "behind", "unknown"]
"""Whether the other one was faster, about as fast or slower, or clearly slower."""


def sample_runs(seconds: float, in_batches: bool) -> int:
    """How many runs a sample has where one takes so long."""
    if not in_batches:
        return 1
    return max(SEVERAL, min(ceil(LONG / max(seconds, 1e-9)), MOST_RUNS))


class PairedComparison:
    """Of ``other`` and what was ``chosen``, by samples of so many ``runs`` to begin with."""

    def __init__(self, other: Candidate, chosen: Candidate, runs: int) -> None:
        self.other, self.chosen, self.runs = other, chosen, runs
        self._grows = runs > 1
        """Whether there may be more, if a run takes less than was known."""
        self.seconds: dict[Candidate, list[float]] = {chosen: [], other: []}
        """A run took, of each one's samples."""
        self.cost = 0.0
        """Seconds that the other's runs took beyond as many of the chosen one's."""
        self._is_warm = False
        """Whether the other one has run: its first run finds its code in no cache."""
        self._misses = 0

    def next(self) -> tuple[Candidate, int]:
        """Of which of the two the next sample is, and how many runs it has."""
        if not self._is_warm:
            return self.other, 1
        own, others = self.seconds[self.chosen], self.seconds[self.other]
        return (self.chosen if len(own) <= len(others) else self.other), self.runs

    def add(self, name: Candidate, seconds: float, runs: int, usual: float) -> None:
        """A sample of ``name``; ``usual``: seconds of a run of the chosen one, as far as known."""
        if name == self.other:
            known = self.seconds[self.chosen][-1:] or [usual]
            self.cost += runs * (seconds - known[0])
        if not self._is_warm and name == self.other:
            self._is_warm = True
        elif runs == self.runs:
            self.seconds[name].append(seconds)
            if self._grows and name == self.other:
                self.runs = max(runs, sample_runs(min(self.seconds[self.chosen]), True))

    def missed(self) -> None:
        """A sample could not be taken."""
        self._misses += 1
        self._grows = False
        if self.runs > SEVERAL and self._is_warm:
            self.runs = max(self.runs // 2, SEVERAL)
            del self.seconds[self.chosen][len(self.seconds[self.other]) :]

    @property
    def quotients(self) -> list[float]:
        """What the other one takes over what the chosen one does, of each pair, in order of
        size."""
        pairs = zip(self.seconds[self.other], self.seconds[self.chosen], strict=False)
        return sorted(other / max(own, 1e-12) for other, own in pairs)

    @property
    def behind(self) -> float:
        """The median of them; infinite where there is none."""
        found = self.quotients
        if not found:
            return inf
        return (found[len(found) // 2] + found[(len(found) - 1) // 2]) / 2

    def _is_held_up(self, name: Candidate) -> bool:
        """Whether most samples of ``name`` took so much longer than its shortest that what they
        take together counts, as of persistent kernels beside other processes."""
        found = self.seconds[name]
        return 2 * sum(seconds > HELD_UP * min(found) for seconds in found) > len(found)

    @property
    def verdict(self) -> Verdict:
        """What the pairs say so far."""
        found = self.quotients
        count = len(found)
        if self._misses >= MOST_MISSES:
            return "unknown"
        held_up = [name for name in self.seconds if self._is_held_up(name)]
        if count >= FEWEST and len(held_up) == 1:  # what holds up the one does not the other
            taken, of_other = (sum(self.seconds[n][:count]) for n in (self.chosen, self.other))
            return "won" if held_up == [self.chosen] and of_other < FASTER * taken else "lost"
        wins = sum(quotient < 1 for quotient in found)
        if count >= FEWEST and count - wins <= count // 4 and self.behind < FASTER:
            return "won"
        if count >= 2 and found[0] > CLEAR:
            return "behind"
        if count >= FEWEST - 1 and not wins:
            return "behind" if self.behind > CLEAR else "lost"
        lost_already = count - wins > MOST_PAIRS // 4
        if (count >= FEWEST and lost_already) or count >= MOST_PAIRS:
            return "behind" if self.behind > CLEAR else "lost"
        return "open"
