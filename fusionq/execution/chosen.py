"""The candidate of a list that was chosen: whether its runs still take what they took, and later
comparisons with others."""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.execution.contender import Candidate
from fusionq.execution.drift import Drift
from fusionq.execution.later_comparisons import LaterComparisons
from fusionq.execution.standing import Standing
from fusionq.execution.trial_cost import TrialCost

DRIFTED_RUNS = 3.0
"""Runs by what is chosen, that later comparisons may cost more when those take another time."""


class ChosenStanding(Standing):
    """The candidates of a list, of which one is chosen by and by."""

    def __init__(self, first: Candidate, awaited: Sequence[Candidate]) -> None:
        super().__init__(first, awaited)
        self.reopened = 0
        """How often runs of what was chosen took another time, so that all were compared again."""
        self.costs = TrialCost()
        self.later = LaterComparisons(self.contenders, self.costs)
        """Later comparisons of what was chosen."""
        self.wanted: Candidate | None = None
        """What is to be made for one."""
        self._drift = Drift()
        self._in_batches = False
        self._tried: Candidate | None = None
        """Of what a sample is being taken."""
        self._awaited = 0
        """Runs of the list since then that are no part of it."""

    @property
    def is_compared_again(self) -> bool:
        """Whether what was chosen is being compared once more."""
        return self.chosen is not None and self.later.current is not None

    @property
    def is_open(self) -> bool:
        """Whether what was chosen may not be the fastest: another one has not been compared with it
        once more, or has won."""
        return self.chosen is None or self.later.is_open(self.chosen)

    def compares_again(self) -> bool:
        """Whether it is from now on, if it was not: another one is due that can run, or ``wanted``,
        so that it can."""
        self.wanted = None
        if self.chosen is None or self.later.current is not None:
            return self.is_compared_again
        name = self.later.due(self.chosen, self._in_batches)
        if name is not None and name in self.here:
            self.later.begin(name, self.chosen, self._in_batches)
        else:
            self.wanted = name
        return name is not None

    def _next_of_pairs(self, chosen: Candidate) -> tuple[Candidate, int]:
        pairs = self.later.current
        if pairs is None:
            return chosen, 0
        self._tried, runs = pairs.next()
        self._awaited = 0
        return self._tried, runs

    def _change(self, name: Candidate | None) -> None:
        """Another one is chosen by a later comparison, if that is not None."""
        if name is not None:
            self.chosen = self.best = name
            self._drift = Drift()
            self._await_variants()

    def prepared(self, seconds: float) -> None:
        """To prepare a run of another one than the best has taken so long."""
        if self.chosen is None:
            self.costs.prepared(seconds)
        else:
            self.later.cost += seconds

    def compare_again(self, name: Candidate) -> None:
        """What was slower runs in another way now: what is chosen is compared with it soon."""
        contender = self.contenders[name]
        contender.again, contender.behind = 0.0, None

    def _stop_pairs(self) -> None:
        """What is being looked at once more, is not."""
        if self.later.current is not None:
            self.later.stop()
            self._tried = None

    def sample(self, seconds: float) -> None:
        """What a run of the chosen candidate takes later on."""
        if self.chosen is None:
            return
        contender = self.contenders[self.chosen]
        if not self._in_batches:
            contender.ran(seconds)
        is_rough = contender.is_rough or (contender.timed == 1 and self.chosen != self.first)
        if is_rough and seconds < contender.shortest:  # its first run decided, which takes longer
            contender.seconds, contender.is_rough = [seconds], False
            contender.timed += 1
        alone = min(contender.alone, default=0.0) if self._in_batches else 0.0
        known = min(contender.seconds, default=float("inf"))
        if self._drift.is_another(known, seconds, self.reopened, alone, contender.is_erratic):
            self.reopen(seconds)

    def reopen(self, seconds: float) -> None:
        """A run takes ``seconds`` by now: compare all candidates again that can run."""
        self.reopened += 1
        self._drift = Drift()
        if self.chosen is not None:
            own = self.contenders[self.chosen]
            longer = seconds / own.shortest if own.seconds else 1.0
            own.slowdown *= longer
            own.seconds = [seconds]
            self.later.all_are_due(longer, DRIFTED_RUNS * seconds)
