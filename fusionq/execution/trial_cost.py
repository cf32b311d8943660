"""What the trials of a list cost the program, in seconds, and what they may.

Samples of a challenger cost what they take beyond as many runs of the best known then, added up
for each comparison: where the challenger is faster on the whole, they cost nothing.  Where the
program waits for no run, each sample also costs the wait for its end.  To prepare a challenger's
launches costs what the program waits for that; what other threads do costs nothing.
"""

from __future__ import annotations

MOST, SHARE = 3.0, 0.01
"""What trials may cost together: so many runs of what ran first, or that part of the time that all
runs of the list have taken so far, if that is more."""


class TrialCost:
    """Of the trials of one list."""

    def __init__(self) -> None:
        self.taken = 0.0
        """Seconds that all runs of the list have taken, about."""
        self.usual = 0.0
        """Seconds of a run of the first, as far as known."""
        self._spent = 0.0
        """Seconds that comparisons which are over took, and that preparing all took."""
        self._excess = 0.0
        """Seconds that the challenger's runs took beyond as many of the best."""
        self._samples = 0
        """That were taken of the two."""

    @property
    def total(self) -> float:
        """Seconds so far."""
        return self._spent + max(self._excess, 0.0)

    @property
    def most(self) -> float:
        """Seconds that trials may cost."""
        return max(MOST * self.usual, SHARE * self.taken)

    @property
    def is_spent(self) -> bool:
        """Whether trials have cost what they may so far."""
        return self.total > self.most

    def is_too_much(self, seconds: float) -> bool:
        """Whether they may not cost so much more."""
        return seconds > 0 and self.total + seconds > self.most

    def prepared(self, seconds: float) -> None:
        """To prepare a run for a trial has taken ``seconds``."""
        self._spent += seconds

    def sampled(self, excess: float = 0.0) -> None:
        """A sample was taken, whose runs took ``excess`` seconds beyond as many of the best."""
        self._samples += 1
        self._excess += excess

    def compared(self, wait: float) -> None:
        """A comparison is over, in which the end of each sample was waited for ``wait``
        seconds."""
        self._spent += self._samples * wait + max(self._excess, 0.0)
        self._excess, self._samples = 0.0, 0

    def forget(self) -> None:
        """The trials begin anew."""
        self._spent = self._excess = 0.0
        self._samples = 0
