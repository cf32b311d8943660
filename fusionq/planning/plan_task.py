"""A list to be planned, and what its plan will be as far as planning has come."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.submission import Submission
from fusionq.analysis.validity import ScalarPlace
from fusionq.base.frozen import dataclass
from fusionq.base.options import FusionOptions
from fusionq.base.target import Target
from fusionq.planning.build_bound import BuildBound
from fusionq.planning.cost import Estimate
from fusionq.planning.plan import Became, Recomputation, StagePlan
from fusionq.planning.promotion import Promotions

_NOT_ALLOWED = "barriers='none' allows no work-group barrier between them"


@dataclass(frozen=True)
class PlanTask:
    """The list ``submissions`` to be planned for ``target``."""

    submissions: Sequence[Submission]
    options: FusionOptions
    target: Target
    fixed: dict[ScalarPlace, int]
    """Scalars that become constants."""
    seen: Collection[ScalarPlace]
    """Scalars that plans had as constants, of other values than now: none again."""
    varying: Collection[ScalarPlace]
    """Scalars that have changed from list to list."""
    is_another: bool
    """Whether there are plans of the same structure, for other sizes or scalars."""
    measured: Callable[[], Target] | None
    """The target with measured costs; None: ``auto`` makes no persistent kernels."""
    bound: BuildBound | None
    """What may be built while the user waits; None: anything."""
    rest_on: tuple[Callable[[ListValidity], None], ...]
    """Let the list's validity remember for which sizes and scalars it is as it is."""
    finds_dependences: bool
    """Whether the plan tells what depends on what, which launches one by one do not ask for."""

    @property
    def barrierless(self) -> str | None:
        """Why there are no work-group barriers between submissions; None if there may be."""
        return _NOT_ALLOWED if self.options.barriers == "none" else None

    def costs(self) -> Target:
        """The target with the best costs there are."""
        return self.target if self.measured is None else self.measured()

    def asks_for(self, strategy: Became) -> bool:
        """Whether the user has asked for that ``strategy``."""
        return self.options.strategy == strategy

    @property
    def compares(self) -> bool:
        """Whether ``auto`` compares ways to run the list by what they cost."""
        return self.options.strategy == "auto" and self.measured is not None


@dataclasses.dataclass(slots=True)
class Draft:
    """What a plan will say; each way to run the list that is better replaces what the ones before
    have said."""

    found: tuple[PairScope, ...]
    layout: Promotions
    strategy: Became
    fallback: str | None
    plans: tuple[StagePlan, ...] | None = None
    """The launches; None: those of the layout's stages, which have not been made yet."""
    choice: str | None = None
    estimates: Sequence[Estimate] = ()
    """Of the persistent kernels in ``plans``, where these were compared with launches."""
    recomputed: tuple[Recomputation, ...] = ()

    def add_choice(self, text: str) -> None:
        """Say on what grounds one more way was chosen or not."""
        self.choice = "; ".join(filter(None, (self.choice, text)))
