"""A candidate in the trials of a list: what is known of it so far."""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from fusionq.base.frozen import dataclass
from fusionq.base.options import Candidate

__all__ = ["Candidate", "Contender", "State"]

INF = float("inf")

State: TypeAlias = Literal["awaited", "ready", "slower", "left out"]

HELD_UP = 2.0
"""A persistent kernel's run that takes so many times its shortest was held up: its workers waited
for one that something else kept from running."""

ERRATIC, REMEMBERED = (2, 3), 12
"""It is erratic if so many of its latest samples were, at least, and more than one in so many; so
many are remembered.  Beside two busy processes on two cores 0.7 of the runs were, of 0.4 to 170 ms
where launches took 0.7: by the shortest it was the fastest."""


@dataclass(slots=True, eq=False)
class Contender:
    """A candidate: ``awaited`` from the background, ``ready`` to run, ``slower`` than another, or
    ``left out`` for ``reason``."""

    state: State
    reason: str = ""
    slowdown: float = 1.0
    """How many times as long as the first it takes by the cost model, where that says so."""
    model: float = 1.0
    """The same by the cost model alone."""
    is_predicted: bool = False
    """Whether that is all that is known of it."""
    is_persistent: bool = False
    """Whether it has a persistent kernel."""
    timed: int = 0
    """Samples whose times were known, whether they count or not."""
    misses: int = 0
    """Samples that could not be taken."""
    busy: int = 0
    """Runs that were not made since the machine was busy."""
    seconds: list[float] = field(default_factory=list)
    """A run took, of the samples when it was last compared; among others, where samples have
    several runs."""
    latest: list[float] = field(default_factory=list)
    """The same of a persistent kernel's latest samples but its first, whether they count or not."""
    is_rough: bool = False
    """Whether that is what one takes by itself, where samples have several runs."""
    alone: list[float] = field(default_factory=list)
    """The same of samples of one run."""
    fastest: float = float("inf")
    """Seconds of a run of the shortest sample of several, also from earlier comparisons."""
    fastest_alone: float = float("inf")
    """The same of samples of one."""
    compared: int = 0
    """How often what was chosen was compared with it later on."""
    again: float = 0.0
    """When that is to be done the next time, by the seconds that the list has run."""
    is_leading: bool = False
    """Whether it was faster the last time."""
    behind: float | None = None
    """How many times as long as what is chosen it took then."""
    disturbed: int = 0
    """Samples that did not count since something else had to be the reason for what they took."""

    @property
    def shortest(self) -> float:
        """Seconds of a run of the shortest sample; infinite where there is none.  Of an erratic one
        the median of all."""
        if self.is_erratic:
            return sorted(self.latest)[len(self.latest) // 2]  # `statistics` takes 5 ms to import
        return min(self.seconds, default=INF)

    @property
    def is_erratic(self) -> bool:
        """Whether it is held up so often that its shortest run is not what one takes."""
        fewest, part = ERRATIC
        held_up = sum(took > HELD_UP * min(self.latest) for took in self.latest)
        return held_up >= fewest and part * held_up > len(self.latest)

    def ran(self, seconds: float) -> None:
        """Remember what a run took, if it is a persistent kernel's and not its first."""
        if self.is_persistent and self.timed > 1:
            self.latest = [*self.latest[1 - REMEMBERED :], seconds]

    def begin_anew(self, is_best: bool = False) -> None:
        """Forget all that was measured: the trials begin anew.  Whether the best is erratic, its
        latest runs have told."""
        if not is_best:
            self.latest = []
        if self.state == "slower":
            self.state, self.reason = "ready", ""
        if self.seconds:
            self.slowdown = 1.0  # what it was is no longer so
            self.is_predicted = False
        self.forget()
        self.fastest = self.fastest_alone = float("inf")

    def forget(self, keeps_alone: bool = False) -> None:
        """Forget its times; ``keeps_alone``: but those of samples of one run, where others have
        several."""
        self.seconds, self.is_rough = [], False
        if not keeps_alone:
            self.alone = []
        self.misses = self.busy = self.disturbed = 0
