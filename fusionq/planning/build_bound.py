"""What ``auto`` has built while the user waits: no more than a bound.

Who asks for a strategy by name, or for ``tune``, gets what that takes to build.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from fusionq.analysis.item_space import ItemSpace, common_space
from fusionq.analysis.submission import Submission
from fusionq.base.target import Target
from fusionq.ir.nodes import Kernel
from fusionq.planning.build_cost import build_work
from fusionq.planning.plan import StagePlan
from fusionq.planning.stages import Stage, space_of

FOREGROUND_SECONDS = 0.5
"""That any list may take to build."""

UNDERESTIMATED = 1.3
"""What a build takes of its prediction at most, in nine of ten (benchmarks/build_cost.py)."""

UNFUSED_BUILDS = 2
"""As many times what it takes unfused, if that is more."""


class BuildBound:
    """The bound for a list of ``submissions``; ``is_built``: whether a kernel has been built
    before, so that it takes no time."""

    def __init__(
        self,
        submissions: Sequence[Submission],
        target: Target,
        is_built: Callable[[Kernel], bool],
    ) -> None:
        self._costs = target.build
        self._is_built = is_built
        self._known: dict[int, tuple[Kernel, float]] = {}
        """Kernels with their predicted seconds, by their ids."""
        unfused = {id(submission.ir): submission.ir for submission in submissions}
        self.seconds = max(
            FOREGROUND_SECONDS, UNFUSED_BUILDS * sum(map(self.predicted, unfused.values()))
        )

    def predicted(self, kernel: Kernel) -> float:
        """The seconds that a kernel is predicted to take."""
        if id(kernel) not in self._known:
            self._known[id(kernel)] = kernel, build_work(kernel).seconds(self._costs)
        return self._known[id(kernel)][1]

    def exceeded_by_bodies(self, kernels: Collection[Kernel]) -> str | None:
        """Why a persistent kernel of these and perhaps more bodies is not built in the foreground;
        None if it may be."""
        costs = self._costs
        bodies = (self.predicted(k) - costs.build_program + costs.build_body for k in kernels)
        return self.exceeded_by(costs.build_program + costs.build_workers + sum(bodies))

    def exceeded_by(self, seconds: float) -> str | None:
        """Why what is predicted to take so long is not built in the foreground; None if it may
        be."""
        likely = UNDERESTIMATED * seconds
        if likely <= self.seconds:
            return None
        return (
            f"a build of up to {likely:.2f} s is predicted for what it has so far, and strategy "
            f"'auto' waits for one of {self.seconds:.1f} s at most"
        )

    def without_built(self, kernel: Kernel) -> float:
        """The same; 0 for a kernel that has been built before."""
        seconds = self.predicted(kernel)
        if seconds and self._is_built(kernel):
            seconds = 0.0
            self._known[id(kernel)] = kernel, seconds
        return seconds


class Builds:
    """What one plan has built, kernel by kernel, and whether that stays inside the ``bound``."""

    def __init__(self, bound: BuildBound) -> None:
        self._bound = bound
        self._kernels: dict[int, Kernel] = {}
        self._seconds = 0.0

    def exceeded_with(self, kernel: Kernel) -> str | None:
        """Why the kernels so far and this one are not built in the foreground; None if they may
        be."""
        bound = self._bound
        if id(kernel) not in self._kernels:
            self._kernels[id(kernel)] = kernel
            self._seconds += bound.predicted(kernel)
        if bound.exceeded_by(self._seconds):
            self._seconds = sum(map(bound.without_built, self._kernels.values()))
        return bound.exceeded_by(self._seconds)


def slow_to_build(plans: Sequence[StagePlan], bound: BuildBound | None) -> str | None:
    """Why the launches ``plans`` are not built in the foreground; None if they may be."""
    if bound is None:
        return None
    builds = Builds(bound)
    reasons = [builds.exceeded_with(plan.kernel) for plan in plans]
    return reasons[-1]


def shorter(
    submissions: Sequence[Submission], stages: Sequence[Stage], reason: str
) -> tuple[Stage, ...]:
    """``stages``, one of which has several of the ``submissions``, cut so that none has more than
    half of the longest one's; with the ``reason`` where one is cut.  Where some run side by side,
    they do so no longer, first."""
    if any(stage.beside for stage in stages):
        return tuple(
            replace(stage, beside=False, boundary=reason) if stage.beside else stage
            for stage in stages
        )
    most = max(len(stage.members) for stage in stages) // 2
    found: list[Stage] = []
    for stage in stages:
        for start in range(0, len(stage.members), most):
            if len(stage.members) <= most:
                found.append(stage)
            else:
                found += _piece(
                    submissions, stage, stage.members[start : start + most], start, reason
                )
    return tuple(found)


def _piece(
    submissions: Sequence[Submission],
    stage: Stage,
    members: tuple[int, ...],
    start: int,
    reason: str,
) -> list[Stage]:
    """``members`` of ``stage`` as one; each by itself where they have no range among them over
    which their work-items meet as they did."""
    own = common_space([submissions[s] for s in members])
    meets = isinstance(own, ItemSpace) and (own.mode, own.ndim) == (
        stage.space.mode, stage.space.ndim,
    )  # fmt: skip
    if not meets and len(members) > 1:
        return [
            piece
            for n, s in enumerate(members)
            for piece in _piece(submissions, stage, (s,), start + n, reason)
        ]
    inside = set(members)
    crossing = tuple(d for d in stage.crossing if d.producer in inside and d.consumer in inside)
    # Where nothing that is left crosses work-items, groups need not have the size that held it.
    kept = stage.space if meets and crossing else None
    return [
        replace(
            stage,
            members=members,
            space=kept or space_of([submissions[s] for s in members]),
            boundary=reason if start else stage.boundary,
            crossing=crossing,
        )
    ]
