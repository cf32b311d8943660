"""The candidates of a list: which of them can run, which is the fastest known, and which stays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from fusionq.execution.contender import Candidate, Contender

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

NEAR = 1.5
"""Of a persistent kernel that takes no more than so many times as long as the best, others are
tried that differ from it in a size: by that they take a few hundredths more or less, a tenth
rarely."""

AS_FAST = 1.15
"""Each submission by itself was about as fast as the best if it took no more than so many times as
long, less ``unplanned``."""


class Standing(ABC):
    """Of lists of one structure and size class; ``first`` is what runs until another is faster,
    ``awaited`` are the others, in the order of their trials."""

    def __init__(self, first: Candidate, awaited: Sequence[Candidate]) -> None:
        self.first: Candidate = first
        others = [name for name in awaited if name != first]
        self.contenders = {first: Contender("ready")} | {n: Contender("awaited") for n in others}
        self.here: set[Candidate] = {first}
        """What can run in this process."""
        self.best: Candidate = first
        """The fastest known; what runs where no time is wanted."""
        self.chosen: Candidate | None = None
        """What stays, once all have been compared."""
        self.unplanned = 0.0
        """Seconds that a run of each submission by itself takes longer where it has no plan."""
        self.variants: dict[Candidate, tuple[Candidate, ...]] = {}
        """Of a candidate those that differ from it in a size, which take part if it is chosen or
        ``NEAR`` that."""

    @abstractmethod
    def _decide(self) -> None:
        """Another candidate is there, or one less."""

    @abstractmethod
    def _leaves(self, name: Candidate) -> None:
        """``name`` is compared with no other from now on."""

    def ready(self, name: Candidate, slowdown: float | None = None) -> None:
        """What was awaited can run; it takes ``slowdown`` times as long as the first by the cost
        model, which says nothing where that is None."""
        self.here.add(name)
        contender = self.contenders[name]
        if contender.state != "awaited":
            return
        contender.state = "ready" if self.chosen is None else "slower"
        contender.is_predicted = slowdown is not None
        contender.slowdown = contender.model = 1.0 if slowdown is None else slowdown
        for other, variants in self.variants.items():
            if name in variants:  # no model tells the two apart, and the other one was measured
                known = self.contenders[other]
                contender.slowdown, contender.model = known.slowdown, known.model
                contender.is_predicted = False
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

    def _await_variants(self) -> bool:
        """Await those of the best, and of what is near that, which take no part yet; whether there
        are any."""
        found = False
        for name, variants in self.variants.items():
            if name == self.best or self._is_near(name):
                for variant in variants:
                    if variant not in self.contenders:
                        self.contenders[variant], found = Contender("awaited"), True
        return found

    def _is_near(self, name: Candidate) -> bool:
        """Whether ``name`` took about as long as the best when they were compared."""
        own, best = self.contenders[name], self.contenders[self.best]
        is_measured = bool(own.seconds) and not own.is_predicted
        return is_measured and own.slowdown <= NEAR * best.slowdown

    def _gone(self, name: Candidate) -> None:
        self.here.discard(name)
        self._leaves(name)
        if name == self.best:
            self.chosen = None
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
    def might_stay_unfused(self) -> bool:
        """Whether each submission by itself was chosen, or was about as fast, though it ran without
        a plan, which takes the host longer."""
        unfused = self.contenders.get("unfused")
        if self.chosen is None or unfused is None or unfused.state not in ("ready", "slower"):
            return False
        best = self.contenders[self.chosen].shortest
        return self.chosen == "unfused" or unfused.shortest - self.unplanned <= AS_FAST * best

    @property
    def is_over(self) -> bool:
        """Whether no candidate is left."""
        return all(c.state == "left out" for c in self.contenders.values())

    @property
    def present(self) -> Candidate:
        """What runs where no time is wanted."""
        return self.best
