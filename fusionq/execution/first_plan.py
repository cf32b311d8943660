"""What a list runs as the first time that it is seen: never later than each submission by itself
by more than a tenth or ``LEAST``, by the costs of builds, launches and memory.

What is built already runs.  Else the stages that may join run as one launch each, where planning
and building those is predicted to be done in time; planning ends at the first dependence that
nothing can join.  What the submissions take to build by themselves counts whether they are built
or not: so a list becomes the same whatever ran before.  Lists whose runs take longer than that all
are what the cost model chooses, within the same bound; buffers that are flagged for promotion are
worth the usual time of planning, since their memory need not even be there.

On a GPU a list is what the cost model chooses from the first run on, within the usual time, where
that is predicted to take no more than ``LONGER_ON_GPUS`` longer to build than its submissions: its
launches take microseconds, so that it would run unfused ten thousand times before learning begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING

from fusionq.analysis.item_space import global_range
from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.backends.base import Backend
from fusionq.base.config import planning_seconds
from fusionq.base.errors import DeviceError
from fusionq.base.options import FusionOptions
from fusionq.base.phases import timed
from fusionq.execution.compile import (
    finished_plan,
    plan_built,
    planned_in_time,
)
from fusionq.execution.contender import Candidate
from fusionq.execution.planning_time import PlanningStopped, unfused_seconds
from fusionq.execution.programs import is_built
from fusionq.ir.nodes import Kernel
from fusionq.planning.flags import is_flagged
from fusionq.submission.pending import SubmissionList

if TYPE_CHECKING:
    from fusionq.planning.build_cost import BuildWork
    from fusionq.planning.plan import Plan
    from fusionq.planning.planner import Planning
    from fusionq.report.model import CacheOutcome

SHARE, LEAST = 0.1, 0.03
"""By so much of the time that it takes unfused, or so many seconds if that is more, the first
result may be later."""

LONGER_ON_GPUS = 0.3
"""Seconds that the first builds may take more there: about what it takes to begin to use a GPU."""

STEP = 2e-3
"""Seconds of planning a submission, about."""

LONG_RUN = 1.0
"""Seconds unfused from which on the list is what the cost model chooses: that may save more than it
takes to plan and build, also for those who run it twice."""

clock: Callable[[], float] = time.thread_time


class FirstPlan:
    """The plan of a list's first run; ``outcome``: whether it was found in a cache, or made now;
    ``was_weighed``: whether what it takes was compared with what the list takes unfused."""

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
        self.was_weighed = False
        self._is_crossing = False
        """Whether planning has found a dependence between work-groups."""
        self._crossing_end = inf
        """When planning ends where it has."""
        self._works: dict[int, tuple[Kernel, BuildWork]] = {}
        """What there is to do for each kernel, which many submissions may have."""

    def candidate(self, before: Candidate | None = None) -> Candidate:
        """What runs first, which is built then; ``unfused``: each submission by itself.
        ``before``: what it was in an earlier process, where that is known."""
        known: tuple[Candidate, ...] = ("auto", "sequence")
        if before in known:
            known = (before, *(name for name in known if name != before))
        for name in known:
            options = self._options.of_candidate(name)
            found = finished_plan(self._backend, self._submissions, options, self._timings)
            if found is not None:
                self.outcome = found[1]
                return name
        try:
            if planning_seconds() == inf:
                return self._build("auto", None)
            if self._backend.target.device.kind == "gpu":
                self.was_weighed = True
                builds = self._unfused_builds()
                longest = builds + max(SHARE * builds, LONGER_ON_GPUS)
                return self._build("auto", None, longest=longest)
            if self._is_promoting:
                return self._build("sequence", None)
            return "unfused" if before == "unfused" else self._in_time()
        except PlanningStopped:
            return "unfused"
        except DeviceError:
            self.was_weighed = False
            return "unfused"

    def _in_time(self) -> Candidate:
        """What runs first, by what it takes unfused; raises what planning and building it does."""
        self.was_weighed = True
        begun = clock()
        builds = self._unfused_builds()
        run = unfused_seconds(self._submissions, self._backend.target.costs)
        unfused = sum(self._pending.admission.values()) + builds + run
        later = SHARE * unfused
        most = builds + (later if run >= LONG_RUN else max(later, LEAST))
        left = begun + most - clock() - self._joined_seconds()
        if run < LONG_RUN and left < STEP * len(self._submissions):
            return "unfused"
        before = clock()
        with timed(self._timings, "import"):  # unfused, each needs a plan by itself
            import fusionq.planning.planner  # noqa: F401  # which takes a while
        begun += clock() - before
        if run >= LONG_RUN:
            return self._build("auto", later, begun + most, run)
        self._crossing_end = begun + later
        return self._build("sequence", left, begun + most)

    def _unfused_builds(self) -> float:
        """What each submission takes to build by itself."""
        kernels = {id(s.ir): s.ir for s in self._submissions}.values()
        return sum(self._seconds(kernel) for kernel in kernels)

    @property
    def _is_promoting(self) -> bool:
        return any(
            isinstance(argument, ArrayArgument) and is_flagged(argument, self._options)
            for submission in self._submissions
            for argument in submission.arguments
        )

    def _joined_seconds(self) -> float:
        """What one kernel of all submissions takes to build, about."""
        return self._together_seconds([s.ir for s in self._submissions])

    def _build(
        self,
        name: Candidate,
        seconds: float | None,
        end: float = inf,
        run: float | None = None,
        longest: float = inf,
    ) -> Candidate:
        """``name`` if it is planned within ``seconds`` and built by ``end``, as far as known, or
        later by what it saves of a ``run``, in no longer than ``longest``; else ``unfused``."""
        backend, options = self._backend, self._options.of_candidate(name)
        is_short = seconds is not None and run is None
        plan = planned_in_time(
            backend, self._submissions, options, self._timings, seconds=seconds,
            stops=self._is_hopeless if is_short else lambda planning: False,
            measures=planning_seconds() == inf,
        )  # fmt: skip
        kernels = {id(stage.kernel): stage.kernel for stage in plan.stages}
        unbuilt = [k for k in kernels.values() if not is_built(backend, k, options.fp)]
        takes = self._together_seconds(unbuilt)
        ended = clock() + takes
        late = ended > end and (run is None or ended > end + run - self._predicted(plan))
        if late or takes > longest:
            return "unfused"
        plan_built(backend, self._submissions, options, plan, self._timings)
        self.outcome = "miss"
        return name

    def _predicted(self, plan: Plan) -> float:
        """Seconds of a run by the cost model."""
        from fusionq.execution.device_costs import known_target
        from fusionq.planning.predicted import predicted_seconds

        return predicted_seconds(self._submissions, plan, known_target(self._backend))

    def _is_hopeless(self, planning: Planning) -> bool:
        """Whether planning has found a dependence that no work-group can hold: between more
        work-items than one has, of equal dimensions and without divisions, as in a stencil; or one
        that it might, and has taken the time that all lists have."""
        if not planning.dependences:
            return False
        largest = self._backend.target.largest_barrier_group
        for found in planning.dependences[-1]:
            if found.scope in ("GLOBAL", "UNKNOWN"):
                self._is_crossing = True
                pair = self._submissions[found.producer], self._submissions[found.consumer]
                spaces = [global_range(submission) for submission in pair]
                if spaces[0].ndim == spaces[1].ndim and not any(
                    space.size <= largest or self._work(submission.ir).divisions
                    for space, submission in zip(spaces, pair, strict=True)
                ):
                    return True
        return self._is_crossing and clock() >= self._crossing_end

    def _together_seconds(self, kernels: Sequence[Kernel]) -> float:
        """What kernels are predicted to take to build at once."""
        program = self._backend.target.build.build_program
        bodies = [max(self._seconds(kernel) - program, 0.0) for kernel in kernels]
        return (program if bodies else 0.0) + sum(bodies)

    def _seconds(self, kernel: Kernel) -> float:
        """What a kernel is predicted to take to build."""
        return self._work(kernel).seconds(self._backend.target.build)

    def _work(self, kernel: Kernel) -> BuildWork:
        from fusionq.planning.build_cost import build_work  # what is in the caches needs it not

        known = self._works.get(id(kernel))
        if known is None:
            known = self._works[id(kernel)] = kernel, build_work(kernel)
        return known[1]
