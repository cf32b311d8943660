"""What a process has learned of a list's candidates, for others, and from them."""

from __future__ import annotations

from fusionq.cache.learned import Learned, LearnedCandidate
from fusionq.execution.later_comparisons import FIRST, GROWTH
from fusionq.execution.trials import Trials

MOST_COUNTED = 30
"""By which distances still grow."""


def learned_of(trials: Trials, kernels: str, work_items: int, device: str) -> Learned:
    """What other processes can know of ``trials``."""
    return Learned(
        kernels, work_items, device, trials.first, trials.chosen, trials.runs, trials.reopened,
        trials.later.changes,
        tuple(
            LearnedCandidate(name, c.state, c.reason, tuple(c.seconds), c.compared)
            for name, c in trials.contenders.items()
        ),
    )  # fmt: skip


def trials_of(learned: Learned) -> Trials:
    """The trials that another process has begun; what it has not chosen is not there yet, and what
    it has is looked at again later."""
    awaited = [c.strategy for c in learned.candidates if c.strategy != learned.first]
    trials = Trials(learned.first, awaited)
    if learned.chosen is not None:
        trials.here.clear()
    for kept in learned.candidates:
        own = trials.contenders[kept.strategy]
        if learned.chosen is not None or kept.state == "left out":
            own.state, own.reason, own.seconds = kept.state, kept.reason, list(kept.seconds)
            own.compared = kept.compared
            own.again = FIRST * GROWTH ** min(kept.compared, MOST_COUNTED)
    trials.runs, trials.reopened = learned.runs, learned.reopened
    trials.later.changes = learned.changes
    trials.become(learned.chosen)
    return trials
