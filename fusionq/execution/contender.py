"""A candidate in the trials of a list: what is known of it so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from fusionq.base.options import Strategy

Candidate: TypeAlias = Strategy
"""A strategy by which a candidate's plan is made."""

State: TypeAlias = Literal["awaited", "ready", "slower", "left out"]


@dataclass(slots=True)
class Contender:
    """A candidate: ``awaited`` from the background, ``ready`` to run, ``slower`` than another, or
    ``left out`` for ``reason``."""

    state: State
    reason: str = ""
    slowdown: float = 1.0
    """How many times as long as the first it takes by the cost model, where that says so."""
    is_predicted: bool = False
    """Whether that is all that is known of it."""
    is_persistent: bool = False
    """Whether it has a persistent kernel."""
    timed: int = 0
    """Runs whose times were known, whether they count or not."""
    misses: int = 0
    """Runs that could not be timed."""
    busy: int = 0
    """Runs that were not made since the machine was busy."""
    seconds: list[float] = field(default_factory=list)
    """Of the runs when it was last compared."""

    @property
    def shortest(self) -> float:
        """Seconds of the shortest run; infinite where none has been timed."""
        return min(self.seconds, default=float("inf"))

    def forget(self) -> None:
        """Forget its times."""
        self.seconds, self.misses, self.busy = [], 0, 0
