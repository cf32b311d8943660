"""The choice among candidates by the times of real runs: which one runs next, and which stays.

Every candidate gives the same bits, so any of them may run when the user asks for the list.  What
ran first is the best until another one has been seen to be faster: of a candidate that is ready
samples are taken in turn with the best, and the one with the shorter sample goes on as the best; a
candidate that is clearly slower is dropped at once, one that is clearly faster taken at once, and
among those that are about as fast the best stays.  What was found while something else held up both
is compared once more (``repeated_comparisons``).  A sample is one run, where somebody waits for
each; where runs follow each other without a wait (``in_batches``), it is one and then
``SEVERAL``.  A sample that would make trials cost more than they may
(``trial_cost``) is not taken.  Nothing depends on a clock here: ``add`` is told what a sample took.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusionq.cache.learned import Learned, LearnedCandidate
from fusionq.execution.contender import Candidate, Contender
from fusionq.execution.drift import Drift
from fusionq.execution.repeated_comparisons import REST, compared_again, is_unproven
from fusionq.execution.samples import (
    CLEARLY_BATCHED,
    COLD_SECONDS,
    FASTER,
    LEAST_CLEAR,
    RUNS,
    among_others,
    batch,
    contradicts,
    is_cold,
    is_disturbed,
    is_faster_by_itself,
    long_batch,
    verdict,
)
from fusionq.execution.trial_cost import TrialCost

CANDIDATES: tuple[Candidate, ...] = (
    "auto", "megakernel", "overlap", "fused", "sequence", "unfused",
)  # fmt: skip
"""In the order of their trials.  ``auto``, which the cost model chooses, is the first."""

PERSISTENT_LAST: tuple[Candidate, ...] = (
    "auto", "overlap", "fused", "sequence", "unfused", "megakernel",
)  # fmt: skip
"""The order where the cost model was not fitted to persistent kernels, which take the longest to
build and rarely win there."""

MOST_SLOWDOWN = 3.0
"""A candidate is not tried that takes so many times as long as the first by the cost model."""

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

AS_FAST = 1.15
"""Each submission by itself was about as fast as the best if it took no more than so many times as
long, less ``unplanned``."""

MOST_AWAITED = 64
"""Runs of the list after which nobody waits any longer for what one of them took."""


class Trials:
    """The trials of lists of one structure and size class; ``first`` is what runs until another is
    faster, ``awaited`` are the others, in the order of their trials."""

    def __init__(self, first: Candidate, awaited: Sequence[Candidate]) -> None:
        self.first: Candidate = first
        others = [name for name in awaited if name != first]
        self.contenders = {first: Contender("ready")} | {n: Contender("awaited") for n in others}
        self.best: Candidate = first
        """The fastest known; what runs where no time is wanted."""
        self.chosen: Candidate | None = None
        """What stays, once all have been compared."""
        self.runs = 0
        """Of the list, until there was a choice."""
        self.tried = 0
        """Those whose time was wanted."""
        self.reopened = 0
        """How often the choice was made anew."""
        self.costs = TrialCost()
        self.unplanned = 0.0
        """Seconds that a run of each submission by itself takes longer where it has no plan."""
        self._challenger: Candidate | None = None
        """What is compared with the best."""
        self._tried: Candidate | None = None
        """Of what a sample is being taken."""
        self._awaited = 0
        """Runs of the list since then that are no part of it."""
        self._long = 0
        """Runs of a sample where short ones have not decided."""
        self._renews = False
        """Whether what is known of the best is compared with another run of it first."""
        self._lead = 0
        """Runs of the best until samples are taken."""
        self.leads = False
        """Whether the run that is next is one of those."""
        self._in_batches = False
        self._drift = Drift()
        self._rests_until = 0.0
        """What the runs of the list take together until it is seen again whether others are
        busy."""
        self._decide()

    # ------------------------------------------------------------------------------ runs
    def next(self, is_busy: Callable[[], bool] = lambda: False) -> tuple[Candidate, int]:
        """Which candidate runs next, and how many runs a sample has that begins with that; 0: no
        time is wanted.  ``is_busy``: whether others keep the machine busy."""
        self.leads = False
        if self.chosen is not None:
            return self.chosen, 0
        self.runs += 1
        if self._tried is not None:
            if self._awaited < MOST_AWAITED:
                self._awaited += 1
                return self.best, 0
            self.missed(self._tried)
        if self.waits or self._challenger is None:
            return self.chosen or self.best, 0
        if self._in_batches and self._lead:
            self._lead -= 1
            self.leads = True
            return self.best, 0
        name, runs = self._turn(self._challenger)
        contender = self.contenders[name]
        is_rested = contender.busy >= MOST_BUSY
        if name != self.best and contender.is_persistent and not is_rested and is_busy():
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
        return self._long or batch(self.contenders[self.best])

    @property
    def in_batches(self) -> bool:
        """Whether runs follow each other without a wait, and are sampled so."""
        return self._in_batches

    @in_batches.setter
    def in_batches(self, value: bool) -> None:
        if value != self._in_batches:
            self._in_batches = value
            for contender in self.contenders.values():
                contender.known = contender.known_alone = float("inf")
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
        is_first = name != self.best and is_cold(contender, seconds, runs, self._batch, compared)
        if not (is_first or is_disturbed(contender, seconds, runs)):
            if runs == 1:
                self._ran_alone(contender, seconds)
            else:
                contender.fastest = min(contender.fastest, seconds)
            if runs == self._batch:
                contender.seconds.append(among)
                contender.known = min(contender.known, seconds)
        if name == self.first and (contender.seconds or contender.alone):
            self.costs.usual = min(contender.seconds or contender.alone)
        self._decide()

    def _ran_alone(self, contender: Contender, seconds: float) -> None:
        """A sample of one run.  Where it says that samples need more runs, since something had
        held up the best one's first, those that are compared are taken anew."""
        before = self._batch
        contender.fastest_alone = min(contender.fastest_alone, seconds)
        contender.known_alone = min(contender.known_alone, seconds)
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
        self.tried += 1
        self.contenders[name].misses += 1
        self._decide()

    # ------------------------------------------------------------------------ candidates
    def ready(self, name: Candidate, slowdown: float | None = None) -> None:
        """What was awaited can run; it takes ``slowdown`` times as long as the first by the cost
        model, which says nothing where that is None."""
        contender = self.contenders[name]
        if contender.state != "awaited":
            return
        contender.state = "ready"
        contender.is_predicted = slowdown is not None
        contender.slowdown = contender.model = 1.0 if slowdown is None else slowdown
        if contender.slowdown > MOST_SLOWDOWN and name != self.first:
            self.leave_out(name, f"{contender.slowdown:.1f} times as long by the cost model")
        elif self.contenders[self.best].state != "ready":
            self.best = name
        self._decide()

    def await_again(self, name: Candidate) -> None:
        """``name`` is not ready for the lists that come now."""
        contender = self.contenders[name]
        contender.state = "awaited"
        contender.forget()
        self._gone(name)

    def leave_out(self, name: Candidate, reason: str) -> None:
        """``name`` takes no part, or no further one."""
        contender = self.contenders[name]
        contender.state, contender.reason = "left out", reason
        self._gone(name)
        self._decide()

    def _gone(self, name: Candidate) -> None:
        if name in (self.best, self._challenger):
            self._count_cost()
        if name == self._tried:
            self._tried = None
        if name == self._challenger:
            self._challenger = None
        if name == self.best:
            self.chosen = self._challenger = None
            others = [n for n, c in self.contenders.items() if c.state in ("ready", "slower")]
            self.best = min(others, key=self._rank, default=self.first)
            if others:
                self.contenders[self.best].state = "ready"

    def _rank(self, name: Candidate) -> tuple[float, float]:
        contender = self.contenders[name]
        return contender.shortest, contender.slowdown

    @property
    def awaited(self) -> list[Candidate]:
        """The candidates that are to be made yet, in order."""
        return [name for name, c in self.contenders.items() if c.state == "awaited"]

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

    @property
    def might_stay_unfused(self) -> bool:
        """Whether each submission by itself was chosen, or was about as fast, though it ran without
        a plan, which takes the host longer."""
        unfused = self.contenders.get("unfused")
        if self.chosen is None or unfused is None or unfused.state not in ("ready", "slower"):
            return False
        best = self.contenders[self.chosen].shortest
        return self.chosen == "unfused" or unfused.shortest - self.unplanned <= AS_FAST * best

    def compare_again(self, name: Candidate) -> None:
        """What was slower runs in another way now, and is compared once more."""
        if self.contenders[name].state == "slower":
            self.contenders[name].state = "ready"
            self.chosen = None
            self._decide()

    @property
    def is_over(self) -> bool:
        """Whether no candidate is left."""
        return all(c.state == "left out" for c in self.contenders.values())

    @property
    def present(self) -> Candidate:
        """What runs where no time is wanted."""
        return self.best

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
        if self.awaited or self.is_over:
            return False
        again = compared_again(self.contenders, self.best)
        if again is None:
            self.chosen = self.best
            return False
        if self.contenders[again].win == "repeated":
            self._rests_until = self.costs.taken + REST
        return self._next_challenger()

    def _begin(self, challenger: Candidate) -> None:
        """The next comparison.  Where samples have several runs, what is known of the best is still
        known, if another run of it by itself says so."""
        best = self.contenders[self.best]
        self._challenger, self._lead, self._long = challenger, LEAD, 0
        self.contenders[challenger].forget()
        self._renews = self._batch > 1 and bool(best.seconds) and not best.is_rough
        if not self._renews:
            best.forget(self._batch > 1)

    def _compare(self, name: Candidate) -> bool:
        """Whether the comparison of ``name`` with the best has come to its end."""
        own, best = self.contenders[name], self.contenders[self.best]
        if own.misses >= MOST_MISSES or best.misses >= MOST_MISSES:
            self._end(name, self._rank(name) < self._rank(self.best))
            return True
        if not best.seconds and not best.alone:
            return False
        if best.seconds and not own.seconds and best.shortest >= COLD_SECONDS:
            expected = (own.slowdown / max(best.slowdown, 1e-9) - 1) * best.shortest
            if self.costs.is_too_much(expected):
                self.leave_out(name, "trials may not cost more")
                return True
        is_faster = verdict(own, best, self._batch, self._long > 0)
        if is_faster is not None and self._is_unsure(own):
            return False
        if is_faster is None:
            if self._becomes_long(own, best):
                return False
            expected = (own.shortest - best.shortest) * self._batch
            if not (own.seconds and best.seconds and self.costs.is_too_much(expected)):
                return False
            is_faster = own.shortest < FASTER * best.shortest
        self._end(name, is_faster)
        return True

    def _becomes_long(self, own: Contender, best: Contender) -> bool:
        """Whether longer samples are to decide, which begin then."""
        if self._batch == 1 or self._long or not own.seconds or not best.seconds:
            return False
        self._long = long_batch(own, best)
        own.seconds, best.seconds = [], []
        own.disturbed = best.disturbed = 0
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
        is_among = bool(is_measured) and self._batch > 1
        is_unfused = self.best == "unfused"
        if is_faster and is_unproven(own, best, compared, is_among, is_unfused):
            own.win, is_faster = "unproven", False
        if is_faster and own.seconds:
            best.lost_to = name, own.shortest, is_among
        elif not is_faster and compared < float("inf"):
            own.lost_to = self.best, compared, is_among
            own.is_doubtful = name != "unfused" and contradicts(own)
        loser = self.best if is_faster else name
        self.contenders[loser].state = "slower"
        if is_faster:
            self.best = name

    # ----------------------------------------------------------------------------- drift
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
            self.reopen()

    def reopen(self) -> None:
        """Compare again all candidates that can run."""
        self.reopened += 1
        self.restart()

    def restart(self) -> None:
        """Forget the times."""
        self._drift, self._rests_until = Drift(), 0.0
        self.chosen = self._challenger = self._tried = None
        self.costs.forget()
        for name, contender in self.contenders.items():
            contender.begin_anew(name == self.best)
        self._decide()

    # --------------------------------------------------------------------------- records
    def learned(self, kernels: str, work_items: int, device: str) -> Learned:
        """What other processes can know of it."""
        return Learned(
            kernels, work_items, device, self.first, self.chosen, self.runs, self.reopened,
            tuple(
                LearnedCandidate(name, c.state, c.reason, tuple(c.seconds))
                for name, c in self.contenders.items()
            ),
        )  # fmt: skip

    @classmethod
    def of(cls, learned: Learned) -> Trials:
        """The trials that another process has begun; what it has not chosen is not there yet."""
        awaited = [c.strategy for c in learned.candidates if c.strategy != learned.first]
        trials = cls(learned.first, awaited)
        for kept in learned.candidates:
            own = trials.contenders[kept.strategy]
            if learned.chosen is not None or kept.state == "left out":
                own.state, own.reason, own.seconds = kept.state, kept.reason, list(kept.seconds)
        trials.runs, trials.reopened = learned.runs, learned.reopened
        trials.chosen = learned.chosen
        trials.best = learned.chosen or trials.first
        if trials.chosen is None:
            trials._decide()
        return trials
