"""The choice among candidates by the times of real runs: which one runs next, and which stays.

Every candidate gives the same bits, so any of them may run when the user asks for the list.  What
ran first is the best until another one has been seen to be faster: of a candidate that is ready
samples are taken in turn with the best, and the one with the shorter sample goes on as the best; a
candidate that is clearly slower is dropped at once, one that is clearly faster taken at once, and
among those that are about as fast the best stays.  What something else may have decided is compared
again later (``later_comparisons``).  A sample is one run, where somebody waits for each; where runs
follow each other without a wait (``in_batches``), it is one and then
``SEVERAL``.  A sample that would make trials cost more than they may
(``trial_cost``) is not taken.  Nothing depends on a clock here: ``add`` is told what a sample took.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusionq.execution.chosen import ChosenStanding
from fusionq.execution.contender import Candidate, Contender
from fusionq.execution.drift import Drift
from fusionq.execution.samples import (
    CLEARLY_BATCHED,
    COLD_SECONDS,
    FASTER,
    LEAST_CLEAR,
    RUNS,
    among_others,
    batch,
    is_cold,
    is_cold_on_device,
    is_disturbed,
    is_faster_by_itself,
    verdict,
)

MOST_BEHIND = 1.5
"""Nor one that takes so many times as long by the model as the best, which has been measured by
then, unless that took so much longer than by the model that this one is still ahead of it: where
all that joins is slower or faster than by the model, the model is wrong of what ran first."""

LEAD = 2
"""Runs of the best before the first sample of a comparison, where nobody waits for runs: what comes
behind a pause, or behind other work, takes up to twice as long, and a pause may be why a candidate
is ready."""

MOST_MISSES = 3
"""Runs of a candidate that could not be timed, after which it has no others."""

MOST_BUSY, BUSY_REST = 3, 0.02
"""Times that it was a persistent kernel's turn while others kept the machine busy, after which it
is tried all the same: others stay busy, and its runs there are what is to be known.  After each,
nothing is compared until the list's runs have taken so many seconds more, and twice as many the
next time: where others are busy for a while only, what runs take later counts."""

BUSY_RUNS = 6
"""Samples but its first that such a persistent kernel has at least, if its shortest might win."""

MOST_AWAITED = 64
"""Runs of the list after which nobody waits any longer for what one of them took."""


class Trials(ChosenStanding):
    """The trials of lists of one structure and size class; ``first`` is what runs until another is
    faster, ``awaited`` are the others, in the order of their trials."""

    def __init__(self, first: Candidate, awaited: Sequence[Candidate]) -> None:
        super().__init__(first, awaited)
        self.runs = 0
        """Of the list, until there was a choice."""
        self.tried = 0
        """Those whose time was wanted."""
        self._challenger: Candidate | None = None
        """What is compared with the best."""
        self._renews = False
        """Whether what is known of the best is compared with another run of it first."""
        self._lead = 0
        """Runs of the best until samples are taken."""
        self.leads = False
        """Whether the run that is next is one of those."""
        self.by_device = False
        """Whether the device times the samples: then nothing that the host does is in them."""
        self._rests_until = 0.0
        """What the runs of the list take together until it is seen again whether others are
        busy."""
        self._decide()

    # ------------------------------------------------------------------------------ runs
    def next(self, is_busy: Callable[[], bool] = lambda: False) -> tuple[Candidate, int]:
        """Which candidate runs next, and how many runs a sample has that begins with that; 0: no
        time is wanted.  ``is_busy``: whether others keep the machine busy."""
        self.leads = False
        if self.chosen is None:
            self.runs += 1
        elif not (self.compares_again() and self.is_compared_again):
            return self.chosen, 0
        if self._tried is not None:
            if self._awaited < MOST_AWAITED:
                self._awaited += 1
                return self.best, 0
            self.missed(self._tried)
        if self.chosen is not None:
            return self._next_of_pairs(self.chosen)
        if self.waits or self._challenger is None:
            return self.chosen or self.best, 0
        if self._in_batches and self._lead:
            self._lead -= 1
            self.leads = True
            return self.best, 0
        name, runs = self._turn(self._challenger)
        contender = self.contenders[name]
        is_rested = contender.busy >= MOST_BUSY
        is_held_up = contender.is_persistent and not self.by_device  # others may keep workers away
        if name != self.best and is_held_up and not is_rested and is_busy():
            self._rests_until = self.costs.taken + BUSY_REST * 2**contender.busy
            contender.busy += 1
            return self.best, 0
        self._tried = name
        self._awaited = 0
        return name, runs

    def _turn(self, challenger: Candidate) -> tuple[Candidate, int]:
        """Of which of the two that are compared the next sample is, and how many runs it has: of
        the best, until one of its times is known, then of the other, in turn.  Where samples have
        several runs, the first of each is one."""
        own, best = self.contenders[challenger], self.contenders[self.best]
        if not (best.alone or best.misses) or self._renews:
            return self.best, 1
        runs = self._batch
        if runs > 1 and not own.alone:
            return challenger, 1
        is_first = runs > 1 and len(best.alone) < RUNS and not own.seconds
        if is_first and is_faster_by_itself(own, best):  # the best one's may be held up
            return self.best, 1
        behind = len(best.seconds) + best.misses > len(own.seconds) + own.misses
        return challenger if behind else self.best, runs

    @property
    def _batch(self) -> int:
        """Runs of a sample."""
        if not self._in_batches:
            return 1
        return batch(self.contenders[self.best])

    @property
    def in_batches(self) -> bool:
        """Whether runs follow each other without a wait, and are sampled so."""
        return self._in_batches

    @in_batches.setter
    def in_batches(self, value: bool) -> None:
        if value != self._in_batches:
            self._in_batches = value
            self._stop_pairs()
            for name in (self.best, self._challenger):
                if name is not None and self.chosen is None:
                    self.contenders[name].forget()  # other times are not compared with these

    @property
    def challenger(self) -> Candidate | None:
        """What is compared with the best."""
        return self._challenger

    @property
    def expects(self) -> bool:
        """Whether a sample is being taken."""
        return self._tried is not None

    def add(self, name: Candidate, seconds: float, runs: int = 1) -> None:
        """A sample of so many runs of ``name``, which took ``seconds`` each."""
        if name != self._tried:
            return
        self._tried = None
        if self.chosen is not None:
            self._change(self.later.add(name, seconds, runs))
            return
        self.tried += runs
        contender, best = self.contenders[name], self.contenders[self.best]
        if name == self.best and runs == 1:
            self._renew(contender, seconds)
        is_alone = runs == 1 and (self._batch > 1 or not best.alone)
        compared = min(best.alone, default=float("inf")) if is_alone else best.shortest
        among = among_others(seconds, runs, contender.alone)
        is_compared = name != self.best and compared < float("inf")
        self.costs.sampled((among - compared) * runs if is_compared else 0.0)
        contender.timed += 1
        if runs == self._batch:
            contender.ran(seconds)
        is_first = name != self.best and (
            is_cold_on_device(contender, seconds, compared)
            if self.by_device
            else is_cold(contender, seconds, runs, self._batch, compared)
        )
        if not (is_first or is_disturbed(contender, seconds, runs)):
            if runs == 1:
                self._ran_alone(contender, seconds)
            else:
                contender.fastest = min(contender.fastest, seconds)
            if runs == self._batch:
                contender.seconds.append(among)
        if name == self.first and (contender.seconds or contender.alone):
            self.costs.usual = min(contender.seconds or contender.alone)
        self._decide()

    def _ran_alone(self, contender: Contender, seconds: float) -> None:
        """A sample of one run.  Where it says that samples need more runs, since something had
        held up the best one's first, those that are compared are taken anew."""
        before = self._batch
        contender.fastest_alone = min(contender.fastest_alone, seconds)
        contender.alone.append(seconds)
        if self._batch > before and self._challenger is not None:
            for name in (self.best, self._challenger):
                self.contenders[name].seconds = []

    def _renew(self, best: Contender, seconds: float) -> None:
        """A run of the best by itself.  Where it says that one before was held up, or that the
        machine has changed, nothing before it counts: by more than varies beside a run."""
        if self._renews:
            self._renews = False
            known = min(best.alone)
            is_near = known / CLEARLY_BATCHED < seconds < CLEARLY_BATCHED * known
            if not is_near and abs(seconds - known) > LEAST_CLEAR:
                best.forget()
                best.fastest = best.fastest_alone = float("inf")

    def missed(self, name: Candidate) -> None:
        """No sample of ``name`` could be taken; there may be another."""
        if name != self._tried:
            return
        self._tried = None
        if self.chosen is not None:
            self.later.missed()
            return
        self.tried += 1
        self.contenders[name].misses += 1
        self._decide()

    # ------------------------------------------------------------------------ candidates
    def become(self, chosen: Candidate | None) -> None:
        """What another process has ``chosen`` runs, if it has; else the trials begin."""
        self.chosen, self.best = chosen, chosen or self.first
        self._decide()

    def _leaves(self, name: Candidate) -> None:
        pairs = self.later.current
        if pairs is not None and name in (pairs.other, pairs.chosen):
            self._stop_pairs()
        if name in (self.best, self._challenger):
            self._count_cost()
        if name == self._tried:
            self._tried = None
        if name in (self.best, self._challenger):
            self._challenger = None

    @property
    def waits(self) -> bool:
        """Whether nothing is compared: a candidate has to be made first, one at a time, so that the
        background takes no part of the machine while a run is timed; or trials have cost so much
        that the next one is for later."""
        if self.chosen is not None:
            return False
        challenger = self._challenger
        if challenger is None or self.costs.taken < self._rests_until:
            return True
        own = self.contenders[challenger]
        return self.costs.is_spent and (not own.seconds or self._is_unsure(own))

    def _is_unsure(self, own: Contender) -> bool:
        """Whether the challenger's shortest run may not be what one takes, and there are too few to
        know: of a persistent kernel that was held up, or is tried while others are busy."""
        may_win = min(own.seconds, default=float("inf")) < self.contenders[self.best].shortest
        is_held_up = own.is_erratic or own.busy >= MOST_BUSY
        return may_win and is_held_up and len(own.latest) < BUSY_RUNS

    @property
    def compares(self) -> bool:
        """Whether two candidates are compared now, so that the next run's time is wanted."""
        return self.chosen is None and not self.waits

    def _count_cost(self) -> None:
        """A comparison is over."""
        best, wait = self.contenders[self.best], 0.0
        if self._in_batches and best.alone and best.seconds:
            wait = max(min(best.alone) - best.shortest, 0.0)
        self.costs.compared(wait)

    def _decide(self) -> None:
        """Compare what has been timed, and go on to the next candidate."""
        while self.chosen is None:
            if self._challenger is None:
                if not self._next_challenger():
                    return
            elif not self._compare(self._challenger):
                return

    def _next_challenger(self) -> bool:
        """Begin with the next candidate, or choose; False where there is nothing to compare."""
        if self.contenders[self.best].state == "awaited":
            return False
        for name, contender in self.contenders.items():
            if contender.state == "ready" and name != self.best:
                best = self.contenders[self.best]
                behind = contender.model / max(best.model, 1e-9)
                is_measured = contender.is_predicted and self.best != self.first
                is_ahead = contender.slowdown <= best.slowdown
                if is_measured and behind > MOST_BEHIND and not is_ahead:
                    contender.state = "slower"
                    contender.reason = f"{behind:.1f} times as long as {self.best} by the model"
                    continue
                self._begin(name)
                return True
        if self.awaited or self.is_over or self._await_variants():
            return False
        self.chosen = self.best
        self.later.chosen_now()
        return False

    def _begin(self, challenger: Candidate) -> None:
        """The next comparison.  Where samples have several runs, what is known of the best is still
        known, if another run of it by itself says so."""
        best = self.contenders[self.best]
        self._challenger, self._lead = challenger, LEAD
        self.contenders[challenger].forget()
        self._renews = self._batch > 1 and bool(best.seconds) and not best.is_rough
        if not self._renews:
            best.forget(self._batch > 1)

    def _compare(self, name: Candidate) -> bool:
        """Whether the comparison of ``name`` with the best has come to its end."""
        own, best = self.contenders[name], self.contenders[self.best]
        if own.misses >= MOST_MISSES or best.misses >= MOST_MISSES:
            if own.seconds and best.seconds:
                self._end(name, self._rank(name) < self._rank(self.best))
            else:  # the model decides
                self._end(name, own.slowdown < best.slowdown)
            return True
        if not best.seconds and not best.alone:
            return False
        if best.seconds and not own.seconds and best.shortest >= COLD_SECONDS:
            expected = (own.slowdown / max(best.slowdown, 1e-9) - 1) * best.shortest
            if self.costs.is_too_much(expected):
                own.state, own.reason = "slower", "trials may not cost more so far"
                self._challenger = None
                return True
        is_faster = verdict(own, best, self._batch)
        if is_faster is not None and self._is_unsure(own):
            return False
        if is_faster is None:
            expected = (own.shortest - best.shortest) * self._batch
            if not (own.seconds and best.seconds and self.costs.is_too_much(expected)):
                return False
            is_faster = own.shortest < FASTER * best.shortest
        self._end(name, is_faster)
        return True

    def _end(self, name: Candidate, is_faster: bool) -> None:
        """What ``name`` is from now on."""
        self._count_cost()
        self._challenger = None
        own, best = self.contenders[name], self.contenders[self.best]
        is_measured = best.seconds and not own.is_rough
        compared = best.shortest if is_measured else min(best.alone, default=float("inf"))
        if own.seconds and compared < float("inf"):  # from now on what was measured counts
            own.slowdown = best.slowdown * own.shortest / compared
            own.is_predicted = False
        loser = self.best if is_faster else name
        self.contenders[loser].state = "slower"
        if is_faster:
            self.best = name

    def restart(self) -> None:
        """Forget the times."""
        self._drift, self._rests_until = Drift(), 0.0
        self.chosen = self._challenger = self._tried = None
        self.costs.forget()
        self.later.forget()
        for name, contender in self.contenders.items():
            contender.begin_anew(name == self.best)
        self._decide()
