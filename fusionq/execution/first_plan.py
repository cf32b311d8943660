"""What a list runs as the first time that it is seen: never later than each submission by itself
by more than a tenth, by the costs of builds, launches and memory.

What is built already runs.  Else the stages that may join run as one launch each where planning
and building those takes no longer than building the submissions one by one; buffers that are
flagged for promotion are worth the usual time of planning, since their memory need not even be
there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.backends.base import Backend
from fusionq.base.config import planning_seconds
from fusionq.base.errors import DeviceError
from fusionq.base.options import UNFUSED, FusionOptions
from fusionq.execution.compile import (
    finished_plan,
    is_built,
    plan_built,
    planned_in_time,
)
from fusionq.execution.planning_time import PlanningStopped, unfused_seconds
from fusionq.execution.trials import Candidate
from fusionq.ir.nodes import Kernel
from fusionq.planning.build_cost import build_work
from fusionq.planning.promotion import is_flagged
from fusionq.submission.pending import SubmissionList

if TYPE_CHECKING:
    from fusionq.report.model import CacheOutcome

SHARE = 0.1
"""By so much of the time that it takes unfused, the first result may be later."""

SHORTEST_PLANNING = 1e-3
"""Seconds in which no list is planned."""

LONG_RUN = 5.0
"""Seconds unfused from which on the list is what the cost model chooses: that may save more than it
takes to plan and build."""

clock: Callable[[], float] = time.thread_time


class FirstPlan:
    """The plan of a list's first run; ``outcome``: whether it was found in a cache, or made now."""

    def __init__(
        self,
        backend: Backend,
        pending: SubmissionList,
        submissions: tuple[Submission, ...],
        options: FusionOptions,
        timings: dict[str, float],
    ) -> None:
        self._backend, self._pending, self._submissions = backend, pending, submissions
        self._options, self._timings = options, timings
        self.outcome: CacheOutcome | None = None

    def candidate(self) -> Candidate:
        """What runs first, which is built then; ``unfused``: each submission by itself."""
        begun = clock()
        known: tuple[Candidate, ...] = ("auto", "sequence")
        for name in known:
            options = self._options._replace(strategy=name)
            found = finished_plan(self._backend, self._submissions, options, self._timings)
            if found is not None:
                self.outcome = found[1]
                return name
        run = unfused_seconds(self._submissions, self._backend.target.costs)
        name = "auto" if run >= LONG_RUN else "sequence"
        try:
            if self._is_promoting:
                self._build("sequence", None)
                return "sequence"
            unbuilt = _unbuilt(self._backend, self._pending)
            unfused = run + sum(_seconds(self._backend, kernel) for kernel in unbuilt)
            read = sum(self._pending.admission.values())  # which has happened
            allowed = SHARE * (read + unfused)
            if planning_seconds() == inf:
                return name if self._build(name, None) else "unfused"
            if allowed < SHORTEST_PLANNING:
                return "unfused"
            end = begun + allowed + unfused - run
            return name if self._build(name, allowed, end) else "unfused"
        except (PlanningStopped, DeviceError):
            return "unfused"

    @property
    def _is_promoting(self) -> bool:
        return any(
            isinstance(argument, ArrayArgument) and is_flagged(argument, self._options)
            for submission in self._submissions
            for argument in submission.arguments
        )

    def _build(self, name: Candidate, seconds: float | None, end: float = inf) -> bool:
        """Plan within ``seconds``, and build if that is done by ``end``, as far as known."""
        backend, options = self._backend, self._options._replace(strategy=name)
        plan = planned_in_time(
            backend, self._submissions, options, self._timings, seconds=seconds
        )
        kernels = {id(stage.kernel): stage.kernel for stage in plan.stages}
        unbuilt = [k for k in kernels.values() if not is_built(backend, k, options.fp)]
        if clock() + sum(_seconds(backend, kernel) for kernel in unbuilt) > end:
            return False
        plan_built(backend, self._submissions, options, plan, self._timings)
        self.outcome = "miss"
        return True


def _seconds(backend: Backend, kernel: Kernel) -> float:
    """What a kernel is predicted to take to build."""
    return build_work(kernel).seconds(backend.target.build)


def _unbuilt(backend: Backend, pending: SubmissionList) -> list[Kernel]:
    """The kernels that have to be built where each submission runs by itself."""
    found: dict[int, Kernel] = {}
    for entry, call in pending.calls():
        submission = entry.submission
        if entry.plain is None and id(submission.ir) not in found:
            alone = SubmissionList.of([entry], call).submissions()
            if finished_plan(backend, alone, UNFUSED, {}) is None:
                found[id(submission.ir)] = submission.ir
    return list(found.values())
