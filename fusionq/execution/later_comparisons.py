"""When what was chosen is compared once more, with which of the others, and what comes of that.

A list that runs on is looked at again at growing distances (``GROWTH``), as long as that takes no
more than ``SHARE`` of the time that it has run.  Of those that are due each submission by itself
comes first, then what was the closest.  A change needs two comparisons one after the other that are
won, with other runs between them.
"""

from __future__ import annotations

from collections.abc import Mapping

from fusionq.execution.contender import Candidate, Contender
from fusionq.execution.paired_comparison import PairedComparison, Verdict, sample_runs
from fusionq.execution.samples import BESIDE
from fusionq.execution.trial_cost import TrialCost

SHARE = 0.02
"""What they may cost, of the time that the list's runs have taken since the choice: what they took
before is no reason for many at once."""

SOON, GROWTH, FAR = 0.05, 2.0, 4.0
"""Seconds that the list's runs take before one that was won is repeated; how many times as long
a list has run when what lost is looked at again, and what was clearly slower."""

STEADIER, MOST_STEADY = 3.0, 5
"""So many times as long after each change, up to so many: where what is faster varies with what
else the machine does, the one should not follow each phase of the other."""

FIRST = 1.0
"""Seconds that a list runs before what another process has chosen is looked at, and twice as many
for each comparison with that candidate there."""

EXPECTED = 3
"""Pairs that one has, by which its cost is expected."""

CHEAPEST, DEAREST = 0.1, 1.0
"""So many times longer than one of what is chosen a run takes at least and at most, by that
expectation: what was seen to take more may have been held up."""


class LaterComparisons:
    """Of one list's trials."""

    def __init__(self, contenders: Mapping[Candidate, Contender], costs: TrialCost) -> None:
        self._contenders, self._costs = contenders, costs
        self.cost = 0.0
        """Seconds that all have cost."""
        self.count = 0
        """How many have come to an end."""
        self.changes = 0
        """How often another one was chosen by them."""
        self.current: PairedComparison | None = None
        self._since = 0.0
        """Seconds that the list's runs had taken when the choice was made."""
        self._more = 0.0
        """Seconds that they may cost beside their share."""
        self._waits = 0.0
        """What the end of a sample is waited for, where the program would not."""

    def chosen_now(self) -> None:
        """The choice has been made."""
        self._since = self._costs.taken

    def forget(self) -> None:
        """The choice is made anew."""
        self.current = None
        for contender in self._contenders.values():
            contender.again, contender.is_leading, contender.behind = 0.0, False, None

    def all_are_due(self, longer: float, seconds: float) -> None:
        """Runs of what is chosen take ``longer``, so many times; comparisons may cost so many
        ``seconds`` more.  Of the others that is to be seen."""
        self.current = None
        self._more += seconds
        for contender in self._contenders.values():
            contender.again, contender.is_leading = 0.0, False
            if contender.behind is not None:
                contender.behind /= longer

    @property
    def most(self) -> float:
        """Seconds that they may cost."""
        return SHARE * max(self._costs.taken - self._since, 0.0) + self._more

    def stop(self) -> None:
        """What has been seen so far does not count."""
        self.current = None

    def is_open(self, chosen: Candidate) -> bool:
        """Whether another one has not been compared with what is chosen yet, or has won the last
        time."""
        others = (self._contenders[name] for name in self._others(chosen))
        return any(contender.is_leading or not contender.compared for contender in others)

    def _others(self, chosen: Candidate) -> list[Candidate]:
        """What may be compared with what is chosen."""
        return [
            name
            for name, contender in self._contenders.items()
            if contender.state in ("slower", "awaited") and name != chosen
        ]

    def due(self, chosen: Candidate, in_batches: bool) -> Candidate | None:
        """What is to be looked at now, whether it can run here yet or not."""
        taken = self._costs.taken
        found = [n for n in self._others(chosen) if self._contenders[n].again <= taken]
        found.sort(key=lambda name: (name != "unfused", self._behind(name, chosen)))
        for name in found:
            if self.cost + self._expected(name, chosen, in_batches) <= self.most:
                return name
        return None

    def begin(self, name: Candidate, chosen: Candidate, in_batches: bool) -> None:
        """Compare ``name`` once more."""
        runs = sample_runs(self._run_seconds(chosen), in_batches)
        self.current = PairedComparison(name, chosen, runs)
        self._waits = BESIDE if in_batches else 0.0

    def _behind(self, name: Candidate, chosen: Candidate) -> float:
        """How many times as long as the chosen one it takes, as far as known."""
        own, best = self._contenders[name], self._contenders[chosen]
        return own.behind or own.slowdown / max(best.slowdown, 1e-9)

    def _run_seconds(self, chosen: Candidate) -> float:
        """What a run of the chosen one takes, as far as known."""
        seconds = self._contenders[chosen].shortest
        return seconds if seconds < float("inf") else self._costs.usual

    def _expected(self, name: Candidate, chosen: Candidate, in_batches: bool) -> float:
        """Seconds that a comparison costs, about."""
        seconds = self._run_seconds(chosen)
        longer = min(max(self._behind(name, chosen) - 1, CHEAPEST), DEAREST) * seconds
        waits = BESIDE if in_batches else 0.0
        return EXPECTED * (longer * sample_runs(seconds, in_batches) + 2 * waits)

    def add(self, name: Candidate, seconds: float, runs: int) -> Candidate | None:
        """A sample of the comparison; the candidate that is chosen by it, if it is."""
        pairs = self.current
        if pairs is None:
            return None
        self.cost += self._waits
        pairs.add(name, seconds, runs, self._contenders[pairs.chosen].shortest)
        return self._judged(pairs)

    def missed(self) -> None:
        """A sample of the comparison could not be taken."""
        if self.current is not None:
            self.current.missed()
            self._judged(self.current)

    def _judged(self, pairs: PairedComparison) -> Candidate | None:
        verdict = pairs.verdict
        if verdict == "open":
            spent = self.cost + max(pairs.cost, 0.0)
            if spent <= 2 * self.most or pairs.behind < 1:
                return None
            verdict = "behind" if pairs.behind > 1 else "unknown"
        self.current = None
        self.cost += max(pairs.cost, 0.0)
        return self._ended(pairs, verdict)

    def _ended(self, pairs: PairedComparison, verdict: Verdict) -> Candidate | None:
        own, taken = self._contenders[pairs.other], self._costs.taken
        self.count += 1
        own.compared += 1
        if pairs.quotients:
            own.behind = pairs.behind
            self._contenders[pairs.chosen].seconds = pairs.seconds[pairs.chosen]
        if verdict == "won" and not own.is_leading:
            rest = SOON * STEADIER ** min(self.changes, MOST_STEADY)
            own.is_leading, own.again = True, taken + rest
            return None
        if verdict == "won":
            self.changes += 1
            self._change(pairs)
            return pairs.other
        own.is_leading = False
        own.again = taken * (FAR if verdict == "behind" else GROWTH)
        return None

    def _change(self, pairs: PairedComparison) -> None:
        """The other one is chosen, by the times of its samples."""
        own, before = self._contenders[pairs.other], self._contenders[pairs.chosen]
        behind, taken = pairs.behind, self._costs.taken
        for contender in self._contenders.values():
            if contender.behind is not None:
                contender.behind /= behind
        own.state, before.state = "ready", "slower"
        own.reason = before.reason = ""
        before.compared += 1
        own.seconds, before.seconds = (pairs.seconds[n] for n in (pairs.other, pairs.chosen))
        own.is_rough = before.is_rough = own.is_predicted = False
        own.slowdown = before.slowdown * behind
        own.is_leading, own.behind = False, None
        before.is_leading, before.behind, before.again = False, 1 / behind, taken * GROWTH
