"""``strategy="auto"`` that learns from its runs.

The first time that a list is seen, the stages that may join run as one launch each (``sequence``)
if that is planned and built already; else each submission runs by itself, which is there the
earliest.  When the list is seen again, a worker process plans and builds the candidates into the
disk cache (``background``).  When all are there, the list's own runs try them in turn, timed where
somebody waits for them (``run_times``); what is clearly slower is dropped, the fastest stays
(``trials``).  From then on a run that is repeated costs what it costs without all this: the queue
has the prepared run of the candidate that was chosen.  One run in ``SAMPLED`` is timed, and where
these times drift, the candidates are compared anew.

Every candidate gives the same bits.  A list whose buffers are promoted is not tried without: their
memory may not even be there.  ``fp="fast"`` allows other bits, so nothing is tried there.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.analysis.submission import Submission
from fusionq.analysis.validity import largest_extent
from fusionq.backends.base import Backend, DeviceEvent
from fusionq.base.config import debug_level
from fusionq.base.errors import DeviceError
from fusionq.base.options import FusionOptions
from fusionq.base.phases import timed
from fusionq.cache.plan_cache import BuiltPlan
from fusionq.execution.background import BACKGROUND, unavailable
from fusionq.execution.binding import bind
from fusionq.execution.candidates import as_auto, choice_text, need_not_be_made, superfluous
from fusionq.execution.compile import built_plan, finished_plan, measured_plan
from fusionq.execution.list_record import (
    MOST_REQUESTS,
    RECORDS,
    ListRecord,
    RunTimer,
    new_record,
    record_key,
)
from fusionq.execution.planning_time import PlanningStopped, unfused_seconds
from fusionq.execution.trials import Candidate
from fusionq.memory.fusing_queues import LOCK
from fusionq.report.model import CacheOutcome
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun

LONG_RUN = 1.0
"""Seconds that a list takes unfused, by the model, from which on its first run already is what the
model chooses: that may save more than it takes to build."""

SAMPLED = 257
"""One run in so many is timed of a list whose strategy was chosen by such times."""

SLOW = 2e-3
"""Seconds of a run from which on each is watched for drift."""


def adaptive_list(
    backend: Backend, submissions: tuple[Submission, ...], options: FusionOptions
) -> AdaptiveList | None:
    """What chooses among the candidates of a list by ``auto`` of several submissions; None where
    the cost model alone does."""
    if (
        options.require
        or options.fp != "strict"
        or debug_level() >= 2  # nothing is read from the disk then
        or unavailable(backend) is not None
        or largest_extent(submissions) == 0
    ):
        return None
    key = record_key(backend, submissions, options)
    record = RECORDS.find(key)
    if record is None:
        first: Candidate = (
            "auto"
            if unfused_seconds(submissions, backend.target.costs) >= LONG_RUN
            else "sequence"
        )
        record = new_record(backend, submissions, options, first, _others(backend))
        record.measured = measured_plan(backend, submissions, options, {}) is not None
        RECORDS.add(key, record)
    if record.measured or record.trials.is_over:
        return None
    return AdaptiveList(backend, options, record)


def _others(backend: Backend) -> list[Candidate]:
    others: list[Candidate] = ["sequence", "unfused", "fused", "overlap"]
    device = backend.target.device
    if device.persistent_kernels and device.chooses_persistent:
        others.append("megakernel")
    return others


class AdaptiveList:
    """Gives the runs of one list on one queue: of the candidate that is to run next."""

    def __init__(self, backend: Backend, options: FusionOptions, record: ListRecord) -> None:
        self._backend = backend
        self._options = options
        self._record = record
        self._runs: dict[Candidate, PreparedRun] = {}
        self.untimed = SAMPLED
        """Launches until one is timed."""

    def next_run(self, pending: SubmissionList, timings: dict[str, float]) -> PreparedRun:
        """The run of the list that is next; PlanningStopped where no candidate can run yet, and
        what preparing one raises."""
        record, trials = self._record, self._record.trials
        record.look()
        record.seen += 1
        if trials.first in record.jobs:
            raise PlanningStopped(IN_BACKGROUND)
        submissions = pending.submissions()
        if record.seen > 1:
            self._await(submissions)
        compared = record.is_compared(submissions)
        while True:
            name, is_timed = trials.next() if compared else (trials.present, False)
            try:
                run = self._run(name, pending, submissions, timings)
            except BaseException:
                trials.missed(name)
                raise
            if run is not None:
                break
            if record.seen > 1:
                self._await(submissions)
        run.adaptive = self
        run.is_trial = trials.chosen is None and not trials.waits
        if is_timed:
            self.untimed = 0
        elif trials.waits:  # looks whether all are there, ever more rarely
            self.untimed = min(record.seen, SAMPLED)
        else:
            self.untimed = self._until_sample(name)
        if trials.chosen is not None:
            self._runs = {name: run}
        return run

    def _until_sample(self, name: Candidate) -> int:
        """Launches of what was chosen between two that are timed; slow ones all are."""
        is_slow = min(self._record.trials.contenders[name].seconds, default=0.0) >= SLOW
        return 0 if is_slow else SAMPLED

    def launch(
        self, run: PreparedRun, depends: Sequence[DeviceEvent], before: DeviceEvent | None
    ) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
        """As ``run.launch``, with its time taken.  Where the choice is open by now, or another
        one, the list asks again from then on."""
        record = self._record
        name = self._candidate(run)
        if not run.is_trial:
            record.look()
            if name is None or name != record.trials.chosen:
                run.is_trial, self.untimed = True, SAMPLED
                if name is not None:
                    record.tell_queues(name)
                return run.launch(depends)
            self.untimed = self._until_sample(name)
        else:
            self.untimed = SAMPLED
        if name is None:
            return run.launch(depends)
        timer = RunTimer(record, name)
        try:
            return timer.launch(run, depends, before)
        except BaseException:
            timer.unknown()
            raise

    def _candidate(self, run: PreparedRun) -> Candidate | None:
        """Which candidate ``run`` is."""
        plans = self._record.plans.items()
        return next((n for n, known in plans if any(b is run.built for b in known)), None)

    # ---------------------------------------------------------------------- candidates
    def _await(self, submissions: tuple[Submission, ...]) -> None:
        """Ask the background for the candidates that are missing."""
        record, trials = self._record, self._record.trials
        first = record.plans.get(trials.first)
        missing: list[Candidate] = []
        for name in trials.awaited:
            if name in record.jobs:
                continue
            reason = first and need_not_be_made(name, trials.first, first[0].plan)
            if reason:
                trials.leave_out(name, reason)
                continue
            record.requests[name] = record.requests.get(name, 0) + 1
            if record.requests[name] <= MOST_REQUESTS:
                missing.append(name)
            else:
                trials.leave_out(name, "its plans do not hold for the next list")
        if not missing:
            return
        jobs = BACKGROUND.build(self._backend, submissions, self._options, missing)
        if jobs is None:
            for name in missing:
                trials.leave_out(name, "it cannot be built in the background")
        else:
            record.jobs.update(zip(missing, jobs, strict=True))

    def _run(
        self,
        name: Candidate,
        pending: SubmissionList,
        submissions: tuple[Submission, ...],
        timings: dict[str, float],
    ) -> PreparedRun | None:
        """A run of candidate ``name`` with the list's values; None where it cannot run, which its
        record then knows."""
        run = self._runs.get(name)
        values = pending.values
        if run is not None and run.is_in_place() and (
            not values or run.rebind(values, lambda: submissions)
        ):
            if run.as_one is not None:
                run.will_be_repeated()
            return run
        trials = self._record.trials
        found = self._built(name, submissions, timings)
        if found is None:
            return None
        built, outcome = found
        run = PreparedRun(built, lambda: submissions, outcome, timings)
        try:
            with timed(timings, "prepare"):
                bind(self._backend, run, pending, self._options.fp)
        except DeviceError as error:
            if name == trials.first:
                raise
            trials.leave_out(name, next(iter(str(error).splitlines()), type(error).__name__))
            return None
        self._runs[name] = run
        return run

    def _built(
        self, name: Candidate, submissions: tuple[Submission, ...], timings: dict[str, float]
    ) -> tuple[BuiltPlan, CacheOutcome] | None:
        record = self._record
        known = record.plans.setdefault(name, [])
        for built in known:
            if built.plan.validity.holds(submissions):
                return built, "memory"
        contender = record.trials.contenders[name]
        if contender.state == "left out":
            raise PlanningStopped(f"no strategy can run: {name} is left out, {contender.reason}")
        options = self._options._replace(strategy=name)
        found = finished_plan(self._backend, submissions, options, timings)
        if found is None and name == "auto" and not known:
            found = built_plan(self._backend, submissions, options, timings)
        if found is None:
            record.trials.await_again(name)
            if name == record.trials.first:
                raise PlanningStopped(IN_BACKGROUND)
            return None
        built, outcome = found
        plan = built.plan
        if name != record.trials.first:
            others = {n: known[0].plan for n, known in record.plans.items() if n != name and known}
            reason = superfluous(plan, others, record.trials.first)
            if reason is not None:
                record.trials.leave_out(name, reason)
                return None
        built = BuiltPlan(as_auto(plan), built.programs)
        known.insert(0, built)
        del known[16:]
        return built, outcome

    # -------------------------------------------------------------------------- report
    def text(self, run: PreparedRun) -> str:
        """On what grounds ``run`` ran, and what is known of the candidates so far."""
        record = self._record
        with LOCK:
            record.look()
        name = self._candidate(run) or record.trials.present
        return choice_text(record.trials, name, bool(record.jobs))


IN_BACKGROUND = (
    "such lists run unfused until they are planned and built, which happens in the background when "
    "they are seen again"
)
