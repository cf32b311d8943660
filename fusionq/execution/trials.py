"""The choice among candidates by the times of real runs: which one runs next, and which stays.

Every candidate gives the same bits, so any of them may run when the user asks for the list.  What
ran first is the best until another one has been seen to be faster: a candidate that is ready runs
once or twice, in turn with the best, and the one with the shorter run goes on as the best; a
candidate that is clearly slower is dropped at once.  What its runs take beyond the best one's is
their cost, as is the time to prepare them; a run that would make it exceed what trials may cost is
not made.  Nothing depends on a clock here: ``add`` is told what a run took.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from fusionq.cache.learned import Learned, LearnedCandidate
from fusionq.execution.contender import Candidate, Contender

CANDIDATES: tuple[Candidate, ...] = (
    "auto", "megakernel", "overlap", "fused", "sequence", "unfused",
)  # fmt: skip
"""In the order of their trials.  ``auto``, which the cost model chooses, is the first."""

RUNS = 2
"""Runs of a candidate, each behind one of the best; the shortest counts, since what disturbs a run
lengthens it."""

CLOSE, MOST_RUNS = 1.1, 4
"""Where the shortest runs differ by no more than that factor, there are more of them."""

FASTER = 0.98
"""By so much of the shortest run of the best another one's has to be shorter to take its place."""

CLEARLY_SLOWER = (2.0, 1.3)
"""After so many runs a candidate is dropped whose shortest is so many times that of the best."""

COLD_SECONDS = 1e-2
"""That a candidate's first run may take longer, since its code is in no cache yet: 4.7 ms where the
next ones took 62 µs.  It does not count where the best takes less than that."""

COLD_RUNS = 3
"""So many may take that longer of a persistent kernel, whose workers wait for those that something
else keeps from running: 8 ms where the next ones took 65 µs.  Between them the list runs for as
long as allows their cost."""

MOST_COST, COST_SHARE = 3.0, 0.01
"""What trials may cost together: so many runs of what ran first, or that part of the time that all
runs of the list have taken so far, if that is more."""

MOST_SLOWDOWN = 2.0
"""A candidate is not tried that takes so many times as long as the first by the cost model."""

MOST_BEHIND = 1.5
"""Nor one that takes so many times as long as the best, which has been measured, by then."""

MOST_MISSES = 3
"""Runs of a candidate that could not be timed, after which it has no others."""

MOST_BUSY, BUSY_REST = 8, 0.02
"""Times that it was a persistent kernel's turn while others kept the machine busy, after which it
is not tried: its workers would wait for those that do not run.  After each, nothing is compared
until the list's runs have taken so many seconds more, and twice as many the next time: others may
be busy for longer than many short runs take."""

MOST_TRIED = 2
"""Runs whose times are wanted and not known yet; of the second the device knows before the first
has ended."""

MOST_AWAITED = 64
"""Runs of the list after which nobody waits any longer for what one of them took."""

DRIFT, DRIFTED = 1.5, 4
"""The choice is made anew where so many samples one after the other differ from the time by which
it was made by more than that factor; each time that this has happened before doubles their
number."""


class Trials:
    """The trials of lists of one structure and size class; ``first`` is what runs until another is
    faster, ``awaited`` are the others."""

    def __init__(self, first: Candidate, awaited: Sequence[Candidate]) -> None:
        self.first: Candidate = first
        others = [name for name in CANDIDATES if name in awaited and name != first]
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
        self.cost = 0.0
        """Seconds that trials took beyond the best known then, and that preparing them took."""
        self.taken = 0.0
        """Seconds that all runs of the list have taken, about."""
        self.usual = 0.0
        """Seconds of a run of the first, as far as known."""
        self._challenger: Candidate | None = None
        """What is compared with the best."""
        self._tried: deque[Candidate] = deque()
        """Whose runs were launched for their times, where those are not known yet: one behind the
        other where nobody waits for each, so that runs are compared as they come."""
        self._awaited = 0
        """Runs of the list since then."""
        self._drifting = 0
        self._rests_until = 0.0
        """What the runs of the list take together until it is seen again whether others are
        busy."""
        self._decide()

    # ------------------------------------------------------------------------------ runs
    def next(self, is_busy: Callable[[], bool] = lambda: False) -> tuple[Candidate, bool]:
        """Which candidate runs next, and whether its time is wanted; ``is_busy``: whether others
        keep the machine busy."""
        if self.chosen is not None:
            return self.chosen, False
        self.runs += 1
        if len(self._tried) >= MOST_TRIED:
            if self._awaited < MOST_AWAITED:
                self._awaited += 1
                return self.best, False
            while self._tried:
                self.missed(self._tried[0])
        if self.waits or self._challenger is None:
            return self.chosen or self.best, False
        name = self._turn(self._challenger)
        contender = self.contenders[name]
        if name != self.best and contender.is_persistent and is_busy():
            self._rests_until = self.taken + BUSY_REST * 2**contender.busy
            contender.busy += 1
            if contender.busy >= MOST_BUSY:
                contender.reason = "others keep the machine busy"
                self._end(name, False)
                self._decide()
            return self.chosen or self.best, False
        self._tried.append(name)
        self._awaited = 0
        return name, True

    def _turn(self, challenger: Candidate) -> Candidate:
        """Which of the two that are compared runs: the best, until one of its times is known, then
        the other, in turn; that not again before its last time is known."""
        best = self.contenders[self.best]
        if not (best.seconds or best.misses) or challenger in self._tried:
            return self.best
        behind = self._runs(self.best) > self._runs(challenger)
        return challenger if behind else self.best

    def _runs(self, name: Candidate) -> int:
        contender = self.contenders[name]
        return len(contender.seconds) + contender.misses + self._tried.count(name)

    @property
    def challenger(self) -> Candidate | None:
        """What is compared with the best."""
        return self._challenger

    @property
    def expects(self) -> bool:
        """Whether the time of a run that was launched is still wanted."""
        return bool(self._tried)

    def add(self, name: Candidate, seconds: float) -> None:
        """A run of ``name`` has taken ``seconds``."""
        if name not in self._tried:
            return
        self._tried.remove(name)
        self.tried += 1
        contender, best = self.contenders[name], self.contenders[self.best].shortest
        if name != self.best and best < float("inf"):
            self.cost += max(0.0, seconds - best)
        contender.timed += 1
        if name not in (self.best, self._challenger):
            return  # it comes too late
        if name == self.best or not self._is_cold(contender, seconds, best):
            contender.seconds.append(seconds)
        if name == self.first and contender.seconds:
            self.usual = contender.shortest
        self._decide()

    def _is_cold(self, contender: Contender, seconds: float, best: float) -> bool:
        """Whether a run of a challenger took so long since it was among its first."""
        slow = CLEARLY_SLOWER[0] * best
        if best >= COLD_SECONDS or seconds > slow + COLD_SECONDS or contender.seconds:
            return False
        if contender.timed == 1:
            return seconds > best
        return contender.is_persistent and contender.timed <= COLD_RUNS and seconds > slow

    def missed(self, name: Candidate) -> None:
        """A run of ``name`` could not be timed; it may have another."""
        if name not in self._tried:
            return
        self._tried.remove(name)
        self.tried += 1
        self.contenders[name].misses += 1
        self._decide()

    def prepared(self, seconds: float) -> None:
        """To prepare a run for a trial has taken ``seconds``."""
        if self.chosen is None:
            self.cost += seconds

    # ------------------------------------------------------------------------ candidates
    def ready(self, name: Candidate, slowdown: float | None = None) -> None:
        """What was awaited can run; it takes ``slowdown`` times as long as the first by the cost
        model, which says nothing where that is None."""
        contender = self.contenders[name]
        if contender.state != "awaited":
            return
        contender.state = "ready"
        contender.is_predicted = slowdown is not None
        contender.slowdown = 1.0 if slowdown is None else slowdown
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
        while name in self._tried:
            self._tried.remove(name)
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
        if challenger is None or self.taken < self._rests_until:
            return True
        return self.is_spent and not self.contenders[challenger].seconds

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
        return self.chosen == "unfused" or unfused.shortest <= CLEARLY_SLOWER[-1] * best

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

    @property
    def most_cost(self) -> float:
        """Seconds that trials may cost."""
        return max(MOST_COST * self.usual, COST_SHARE * self.taken)

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
                behind = contender.slowdown / max(self.contenders[self.best].slowdown, 1e-9)
                is_measured = self.best != self.first
                if contender.is_predicted and is_measured and behind > MOST_BEHIND:
                    contender.state = "slower"
                    contender.reason = f"{behind:.1f} times as long as {self.best} by the model"
                    continue
                self._challenger = name
                for compared in (self.best, name):
                    self.contenders[compared].forget()
                return True
        if not self.awaited and not self.is_over:
            self.chosen = self.best
        return False

    def _compare(self, name: Candidate) -> bool:
        """Whether the comparison of ``name`` with the best has come to its end."""
        own, best = self.contenders[name], self.contenders[self.best]
        if own.misses >= MOST_MISSES or best.misses >= MOST_MISSES:
            self._end(name, self._rank(name) < self._rank(self.best))
            return True
        if not best.seconds:
            return False
        rounds = len(own.seconds)
        if not rounds and best.shortest < COLD_SECONDS:
            return False  # it waits until the list has run for longer
        if not rounds:
            expected = (own.slowdown / max(best.slowdown, 1e-9) - 1) * best.shortest
            if self._is_too_much(expected):
                self.leave_out(name, "trials may not cost more")
                return True
            return False
        slower = own.shortest / best.shortest
        if rounds <= len(CLEARLY_SLOWER) and slower > CLEARLY_SLOWER[rounds - 1]:
            self._end(name, False)
            return True
        most = MOST_RUNS if 1 / CLOSE < own.shortest / best.shortest < CLOSE else RUNS
        enough = rounds >= most and len(best.seconds) >= most
        if enough or self._is_too_much(own.shortest - best.shortest):
            self._end(name, own.shortest < FASTER * best.shortest)
            return True
        return False

    @property
    def is_spent(self) -> bool:
        """Whether trials have cost what they may so far."""
        return self.cost > self.most_cost

    def _is_too_much(self, seconds: float) -> bool:
        return seconds > 0 and self.cost + seconds > self.most_cost

    def _end(self, name: Candidate, is_faster: bool) -> None:
        """What ``name`` is from now on."""
        self._challenger = None
        own, best = self.contenders[name], self.contenders[self.best]
        if own.seconds and best.seconds:  # from now on what was measured counts
            own.slowdown = best.slowdown * own.shortest / best.shortest
            own.is_predicted = False
        loser = self.best if is_faster else name
        self.contenders[loser].state = "slower"
        if is_faster:
            self.best = name

    # ----------------------------------------------------------------------------- drift
    def sample(self, seconds: float) -> None:
        """What a run of the chosen candidate takes later on."""
        if self.chosen is None:
            return
        known = self.contenders[self.chosen].seconds
        if not known or 1 / DRIFT <= seconds / min(known) <= DRIFT:
            self._drifting = 0
            return
        self._drifting += 1
        if self._drifting >= DRIFTED << min(self.reopened, 16):
            self.reopen()

    def reopen(self) -> None:
        """Compare again all candidates that can run."""
        self.reopened += 1
        self.restart()

    def restart(self) -> None:
        """Forget the times."""
        self._drifting, self._rests_until = 0, 0.0
        self.chosen = self._challenger = None
        self._tried.clear()
        self.cost = 0.0
        for contender in self.contenders.values():
            if contender.state == "slower":
                contender.state, contender.reason = "ready", ""
            if contender.seconds:
                contender.slowdown = 1.0  # what it was is no longer so
                contender.is_predicted = False
            contender.forget()
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
