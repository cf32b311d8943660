"""The choice among candidates by the times of real runs: which one runs next, and which stays.

Every candidate gives the same bits, so any of them may run when the user asks for the list.  What
ran first begins, then the cost model orders them, and what was measured decides: a candidate that
is clearly slower is dropped at once, the others have ``RUNS`` runs, then the fastest stays.  What
trials take beyond the fastest candidate known at the time is their cost; a run that would make it
exceed ``MOST_COST`` is not made.  Nothing depends on a clock here: ``add`` is told what a run took.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from fusionq.base.options import Strategy
from fusionq.cache.learned import Learned, LearnedCandidate

Candidate: TypeAlias = Strategy
"""A strategy by which a candidate's plan is made."""

CANDIDATES: tuple[Candidate, ...] = (
    "auto", "sequence", "unfused", "fused", "overlap", "megakernel",
)  # fmt: skip
"""In the order of their trials where the cost model knows none.  ``auto``, which the cost model
chooses, is a candidate where it was what ran first."""

RUNS, IN_A_ROW = 4, 2
"""Runs of each candidate at most, the first of them in a row; the shortest counts, since what
disturbs a run lengthens it."""

CLEARLY_SLOWER = (2.0, 1.5, 1.2)
"""After so many runs a candidate is dropped whose shortest is so many times that of the fastest."""

COLD_SECONDS = 5e-3
"""That a candidate's first run may take longer than that, since it loads the program and touches
memory."""

MOST_COST, CHEAP_SECONDS = 3.0, 1e-2
"""What trials may cost together: so many runs of what ran first, and in any case so many
seconds."""

MOST_SLOWDOWN = 3.0
"""A candidate is not tried that takes so many times as long by the cost model."""

MOST_MISSES = 3
"""Runs of a candidate that could not be timed, after which it has no others."""

MOST_AWAITED = 64
"""Runs of the list after which nobody waits any longer for what one of them took."""

DRIFT, DRIFTED = 1.5, 4
"""The choice is made anew where so many samples one after the other differ from the time by which
it was made by more than that factor; each time that this has happened before doubles their
number."""

State: TypeAlias = Literal["awaited", "ready", "slower", "left out"]


@dataclass(slots=True)
class Contender:
    """A candidate: ``awaited`` from the background, ``ready`` to run, dropped since ``slower``, or
    ``left out`` for ``reason``."""

    state: State
    reason: str = ""
    slowdown: float = 1.0
    """How many times as long as joined launches it takes by the cost model, where that says so."""
    misses: int = 0
    """Runs that could not be timed."""
    seconds: list[float] = field(default_factory=list)

    @property
    def shortest(self) -> float:
        """Seconds of the shortest run; infinite where none has been timed."""
        return min(self.seconds, default=float("inf"))


class Trials:
    """The trials of lists of one structure and size class; ``first`` is what runs until there is a
    choice."""

    def __init__(self, first: Candidate, awaited: Sequence[Candidate]) -> None:
        self.first: Candidate = first
        members = {first, *awaited}
        self.contenders = {
            name: Contender("ready" if name == first else "awaited")
            for name in CANDIDATES
            if name in members
        }
        self.chosen: Candidate | None = None
        """What stays, once that is known."""
        self.runs = 0
        """Of the list, until there was a choice."""
        self.reopened = 0
        """How often the choice was made anew."""
        self.cost = 0.0
        """Seconds that trials of others than the first took beyond the fastest known then."""
        self._tried: Candidate | None = None
        """Whose run was last launched for its time, where that is not known yet."""
        self._awaited = 0
        """Runs of the list since then."""
        self._drifting = 0
        self._decide()

    # ------------------------------------------------------------------------------ runs
    def next(self) -> tuple[Candidate, bool]:
        """Which candidate runs next, and whether its time is wanted."""
        if self.chosen is not None:
            return self.chosen, False
        self.runs += 1
        if self.waits:
            return self.first, False
        if self._tried is not None and self._awaited < MOST_AWAITED:
            self._awaited += 1
            return self.fastest, False
        name = self._wanted()
        if name is None:  # what it waited for has not come
            self.chosen = self.fastest
            return self.chosen, False
        self._tried, self._awaited = name, 0
        return name, True

    def add(self, name: Candidate, seconds: float) -> None:
        """A run of ``name`` has taken ``seconds``."""
        if self.chosen is not None or self._tried != name:
            return
        self._tried = None
        best = self.contenders[self.fastest].shortest
        if best < seconds and name != self.first:
            self.cost += seconds - best
        self.contenders[name].seconds.append(seconds)
        self._decide()

    def missed(self, name: Candidate) -> None:
        """A run of ``name`` could not be timed; it may have another."""
        if self.chosen is not None or self._tried != name:
            return
        self._tried = None
        self.contenders[name].misses += 1
        self._decide()

    # ------------------------------------------------------------------------ candidates
    def ready(self, name: Candidate, slowdown: float | None = None) -> None:
        """What was awaited can run; it takes ``slowdown`` times as long as joined launches by the
        cost model, which says nothing where that is None."""
        contender = self.contenders[name]
        if contender.state != "awaited":
            return
        contender.state = "ready"
        contender.slowdown = 1.0 if slowdown is None else slowdown
        if contender.slowdown > MOST_SLOWDOWN:
            self.leave_out(name, f"{contender.slowdown:.1f} times as long by the cost model")
        self._decide()

    def await_again(self, name: Candidate) -> None:
        """``name`` is not ready for the lists that come now."""
        contender = self.contenders[name]
        contender.state, contender.seconds, contender.misses = "awaited", [], 0
        self._gone(name)

    def leave_out(self, name: Candidate, reason: str) -> None:
        """``name`` takes no part, or no further one."""
        contender = self.contenders[name]
        contender.state, contender.reason = "left out", reason
        self._gone(name)
        self._decide()

    def _gone(self, name: Candidate) -> None:
        if self.chosen == name:
            self.chosen = None
        if self._tried == name:
            self._tried = None

    @property
    def tried(self) -> int:
        """Runs whose time was wanted."""
        return sum(len(c.seconds) + c.misses for c in self.contenders.values())

    @property
    def awaited(self) -> list[Candidate]:
        """The candidates that the background makes."""
        return [name for name, c in self.contenders.items() if c.state == "awaited"]

    @property
    def waits(self) -> bool:
        """Whether candidates are missing: comparing begins when all are there, and the
        background no longer takes a part of the machine."""
        return any(c.state == "awaited" for c in self.contenders.values())

    @property
    def is_over(self) -> bool:
        """Whether no candidate is left."""
        return all(c.state == "left out" for c in self.contenders.values())

    @property
    def present(self) -> Candidate:
        """What runs where no time is wanted."""
        return self.first if self.waits else self.chosen or self.fastest

    @property
    def fastest(self) -> Candidate:
        """The candidate with the shortest run so far; without any, that by the cost model."""
        return min(
            self._racing,
            key=lambda n: (self.contenders[n].shortest, self.contenders[n].slowdown),
            default=self.first,
        )

    @property
    def _racing(self) -> list[Candidate]:
        return [name for name, c in self.contenders.items() if c.state == "ready"]

    def _wanted(self) -> Candidate | None:
        """Whose time is wanted next; None where there are times enough."""
        wanted = [
            name
            for name, c in self.contenders.items()
            if c.state == "ready"
            and len(c.seconds) < RUNS
            and c.misses < MOST_MISSES
            and self._may_run(name)
        ]
        return min(wanted, key=self._turn, default=None)

    def _turn(self, name: Candidate) -> tuple[bool, bool, float]:
        """Less for whose turn is earlier."""
        own, runs = self.contenders[name], len(self.contenders[name].seconds)
        best = self.contenders[self.fastest].shortest
        may_have_been_cold = runs == 0 or own.shortest <= best + COLD_SECONDS
        later = runs + own.misses >= IN_A_ROW or not may_have_been_cold
        return later, name != self.first, own.slowdown

    def _may_run(self, name: Candidate) -> bool:
        """Whether trials stay inside their cost with another run of ``name``, as far as known."""
        own, usual = self.contenders[name], self.contenders[self.first].shortest
        if not self.contenders[self.first].seconds:
            return name == self.first or self.contenders[self.first].state != "ready"
        best = self.contenders[self.fastest].shortest
        if own.shortest == best:
            return True
        expected = own.shortest if own.seconds else own.slowdown * usual
        cost = self.cost + max(0.0, expected - best)
        return cost <= max(MOST_COST * usual, CHEAP_SECONDS)

    def _decide(self) -> None:
        if self.waits or self.chosen is not None:
            return
        best = self.contenders[self.fastest].shortest
        for name in self._racing:
            contender = self.contenders[name]
            rounds = len(contender.seconds)
            if 0 < rounds <= len(CLEARLY_SLOWER):
                cold = COLD_SECONDS if rounds == 1 else 0.0
                if contender.shortest > CLEARLY_SLOWER[rounds - 1] * best + cold:
                    contender.state = "slower"
        if len(self._racing) <= 1 or (self._tried is None and self._wanted() is None):
            self.chosen = self.fastest

    # ----------------------------------------------------------------------------- drift
    def sample(self, seconds: float) -> None:
        """What a run of the chosen candidate takes later on."""
        if self.chosen is None or not (known := self.contenders[self.chosen].seconds):
            return
        if 1 / DRIFT <= seconds / min(known) <= DRIFT:
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
        self._drifting = 0
        self.chosen = self._tried = None
        self.cost = 0.0
        for contender in self.contenders.values():
            if contender.state == "slower":
                contender.state = "ready"
            contender.seconds, contender.misses = [], 0
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
        """The trials that another process has begun."""
        awaited = [c.strategy for c in learned.candidates if c.strategy != learned.first]
        trials = cls(learned.first, awaited)
        for kept in learned.candidates:
            trials.contenders[kept.strategy] = Contender(
                kept.state, kept.reason, seconds=list(kept.seconds)
            )
        trials.chosen, trials.runs = learned.chosen, learned.runs
        trials.reopened = learned.reopened
        if trials.chosen is None:  # by other sizes, maybe
            trials.restart()
        return trials
