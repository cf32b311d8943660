"""What ``auto`` has built while the user waits: no more than a bound.

Who asks for a strategy by name, or for ``tune``, gets what that takes to build.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from fusionq.analysis.submission import Submission
from fusionq.base.target import Target
from fusionq.ir.nodes import Kernel
from fusionq.planning.build_cost import build_work
from fusionq.planning.plan import StagePlan
from fusionq.planning.stages import Stage

FOREGROUND_SECONDS = 0.5
"""That any list may take to build."""

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
        unfused = self._predicted(submission.ir for submission in submissions)
        self.seconds = max(FOREGROUND_SECONDS, UNFUSED_BUILDS * unfused)

    def exceeded(self, plans: Sequence[StagePlan]) -> str | None:
        """Why launches are not built in the foreground; None if they may be."""
        seconds = self._predicted(plan.kernel for plan in plans)
        if seconds > self.seconds:
            seconds = self._predicted(
                plan.kernel for plan in plans if not self._is_built(plan.kernel)
            )
        if seconds <= self.seconds:
            return None
        return (
            f"a build of {seconds:.1f} s is predicted, and strategy 'auto' waits for one of "
            f"{self.seconds:.1f} s at most"
        )

    def _predicted(self, kernels: Iterable[Kernel]) -> float:
        different = {id(kernel): kernel for kernel in kernels}
        return sum(build_work(kernel).seconds(self._costs) for kernel in different.values())


def shorter(stages: Sequence[Stage], reason: str) -> tuple[Stage, ...] | None:
    """``stages`` of which none has more than half of the longest one's submissions, with the
    ``reason`` where one is cut; None if each has one."""
    most = max(len(stage.members) for stage in stages) // 2
    if most == 0:
        return None
    return tuple(piece for stage in stages for piece in _pieces(stage, most, reason))


def _pieces(stage: Stage, most: int, reason: str) -> list[Stage]:
    if len(stage.members) <= most:
        return [stage]
    found = []
    for start in range(0, len(stage.members), most):
        members = stage.members[start : start + most]
        inside = set(members)
        crossing = tuple(
            d for d in stage.crossing if d.producer in inside and d.consumer in inside
        )
        boundary = reason if start else stage.boundary
        found.append(replace(stage, members=members, boundary=boundary, crossing=crossing))
    return found
