"""Whether persistent kernels are faster than a list's launches, and built soon enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusionq.analysis.questions import Questions
from fusionq.analysis.validity import largest_extent, size_order
from fusionq.base.target import Target
from fusionq.planning.build_bound import BuildBound, slow_to_build
from fusionq.planning.cost import Estimate, estimate
from fusionq.planning.list_work import list_work
from fusionq.planning.plan import StagePlan
from fusionq.planning.side_by_side import launches_of_stages
from fusionq.planning.stages import Stage


class PersistentChoice:
    """What the model says of persistent kernels in place of the ``stages``, one launch each or side
    by side.  Without ``measured`` costs, and where they are ``asked`` for, they are wanted."""

    def __init__(
        self,
        questions: Questions,
        stages: Sequence[Stage],
        target: Target,
        measured: Callable[[], Target] | None,
        bound: BuildBound | None,
        asked: bool,
        are_along_rows: Callable[[tuple[int, ...]], bool],
    ) -> None:
        self._questions = questions
        self._launches = [
            [s for n in numbers for s in stages[n].members]
            for numbers in launches_of_stages(stages)
        ]
        self._target = target
        self._measured = measured
        self._bound = bound
        self._asked = asked
        self._are_along_rows = are_along_rows
        self.estimates: list[Estimate] = []
        """Of each persistent kernel that was asked about last."""
        self.text: str | None = None
        """The same in words, for reports."""

    def wants(self, plans: Sequence[StagePlan]) -> bool:
        """Whether the list is to run as ``plans``, some of them persistent kernels."""
        if self._measured is None:
            return True
        questions = self._questions
        self.estimates = [
            estimate(
                list_work(questions, plan, self._launches, self._target, self._are_along_rows),
                self._measured(),
            )
            for plan in plans
            if plan.inner
        ]
        profitable = any(e.prefers_persistent for e in self.estimates)
        self.text = "; ".join(map(str, self.estimates))
        slow = slow_to_build(plans, self._bound) if profitable else None
        if slow is not None:
            profitable = False
            self.text += f"; {slow}: ask for strategy='megakernel' or tune=True to have it"
        # Profitability depends on sizes: the plan serves those of today's order only.
        extent = largest_extent(questions.submissions)
        questions.validity.demand_between(extent, *size_order(extent))
        return self._asked or profitable
