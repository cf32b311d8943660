"""The runs of a list by its candidates, prepared when each is wanted."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from fusionq.backends.base import Backend
from fusionq.base.errors import DeviceError
from fusionq.base.options import FusionOptions
from fusionq.base.phases import timed
from fusionq.cache.plan_cache import BuiltPlan
from fusionq.execution.binding import bind
from fusionq.execution.candidates import choice_text
from fusionq.execution.compile import finished_plan
from fusionq.execution.contender import Candidate
from fusionq.execution.list_record import UNTIL_WORTH, ListRecord
from fusionq.execution.moved_runs import MovedRuns
from fusionq.execution.planning_time import PlanningStopped
from fusionq.submission.known import KnownSubmission
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun, RunChooser

if TYPE_CHECKING:
    from fusionq.report.model import CacheOutcome


class CandidateRuns:
    """Of one list on one queue, for its ``chooser``; ``made``: where the plan comes from that was
    made for the first run."""

    def __init__(
        self,
        backend: Backend,
        options: FusionOptions,
        record: ListRecord,
        chooser: RunChooser,
        made: CacheOutcome | None,
    ) -> None:
        self._backend, self._options, self._record = backend, options, record
        self._chooser, self._made = chooser, made
        self._runs: dict[Candidate, tuple[tuple[KnownSubmission, ...], PreparedRun]] = {}
        """With the list that each was prepared for: others, of equal sizes, ask too
        (``PreparedRun.elsewhere``)."""
        self._moved = MovedRuns(backend)
        """The same for lists of temporaries."""

    def has(self, run: PreparedRun) -> bool:
        """Whether ``run`` is one of these, and no other's in other memory."""
        return any(run is own for _, own in self._runs.values())

    def keep_only(self, name: Candidate, run: PreparedRun, pending: SubmissionList) -> None:
        """No other is compared with ``name``, whose ``run`` is the latest."""
        self._runs = {name: ((*pending.entries,), run)}

    def run(
        self, name: Candidate, pending: SubmissionList, timings: dict[str, float]
    ) -> PreparedRun | None:
        """A run of candidate ``name`` with the list's values; None where it cannot run, which its
        record then knows."""
        entries, run = self._runs.get(name, ((), None))
        values = pending.values
        if (
            run is not None
            and entries == (*pending.entries,)
            and run.is_in_place()
            and (not values or run.rebind(values, pending.operands))
        ):
            if run.as_one is not None:
                run.will_be_repeated()
            return run
        ahead = self._bound_ahead(name, pending, timings)
        if ahead is not None:
            return ahead
        moved = self._moved.run_for(name, pending)
        plans = self._record.plans.get(name, ())
        if moved is not None and any(built is moved.built for built in plans):
            return moved
        trials = self._record.trials
        found = self._built(name, pending, timings)
        if found is None:
            return None
        built, outcome = found
        run = PreparedRun(built, pending.submitted(), outcome, timings)
        begun = perf_counter()
        try:
            with timed(timings, "prepare"):
                bind(self._backend, run, pending, self._options.fp)
        except DeviceError as error:
            if name == trials.first:
                raise
            trials.leave_out(name, next(iter(str(error).splitlines()), type(error).__name__))
            return None
        if name != trials.best:
            trials.prepared(perf_counter() - begun)
        self._runs[name] = (*pending.entries,), run
        self._moved.keep(name, run, pending)
        return run

    def _bound_ahead(
        self, name: Candidate, pending: SubmissionList, timings: dict[str, float]
    ) -> PreparedRun | None:
        """The run that was bound to these arguments on this queue before it was wanted."""
        arguments, run = self._record.bound.pop(name, (None, None))
        if (
            run is None
            or arguments is None
            or arguments.backend is not self._backend
            or arguments.entries != (*pending.entries,)
            or not run.is_in_place()
            or not run.rebind(pending.values, pending.operands)
        ):
            return None
        run.timings = timings
        self._runs[name] = arguments.entries, run
        return run

    def _built(
        self, name: Candidate, pending: SubmissionList, timings: dict[str, float]
    ) -> tuple[BuiltPlan, CacheOutcome] | None:
        record, trials = self._record, self._record.trials
        operands = pending.operands()
        for built in record.plans.get(name, ()):
            if built.plan.validity.holds(operands):
                return built, "memory"
        contender = trials.contenders[name]
        if contender.state == "left out":
            raise PlanningStopped(f"no strategy can run: {name} is left out, {contender.reason}")
        if name in (trials.first, trials.chosen) and name not in record.requests:
            record.requests[name] = 0
            options = self._options.of_candidate(name)
            found = finished_plan(self._backend, pending.submissions(), options, timings)
            if found is not None:
                own = record.add_plan(name, found[0])
                return None if own is None else (own, self._made or found[1])
        if name != "unfused":
            trials.await_again(name)
        if trials.contenders[trials.present].state == "awaited" or name == "unfused":
            chooser = self._chooser
            chooser.reason = self._why_unfused()
            raise PlanningStopped(chooser.reason, chooser)
        return None

    def _why_unfused(self) -> str:
        record = self._record
        if not record.is_worth_learning:
            return UNTIL_WORTH
        return choice_text(record.trials, "unfused", True)
