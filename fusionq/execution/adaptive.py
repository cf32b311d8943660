"""``strategy="auto"`` that learns from its runs.

The first time that a list is seen, what is there the earliest runs (``first_plan``).  Nothing else
happens until the list's runs have taken as long together as learning costs (``list_record``).  Then
a worker process plans and builds one candidate after the other into the disk cache
(``candidate_plans``), and the list's own runs try each, in turn with the best so far and timed
where somebody waits for them (``run_times``); what is clearly slower is dropped, the fastest stays
(``trials``).  From then on a run that is repeated costs what it costs without all this: the queue
has the prepared run of the candidate that was chosen.  One run in ``SAMPLED`` is timed, and where
these times drift, and at growing distances (``later_comparisons``), the others are looked at again.

Every candidate gives the same bits.  A list whose buffers are promoted is not tried without: their
memory may not even be there.  ``fp="fast"`` allows other bits, so nothing is tried there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from fusionq.analysis.validity import largest_extent
from fusionq.backends.base import Backend, DeviceEvent, PreparedLaunch
from fusionq.base.config import debug_level
from fusionq.base.options import FusionOptions
from fusionq.base.recursion import room_for_recursion
from fusionq.execution.background_support import unavailable
from fusionq.execution.candidate_runs import CandidateRuns
from fusionq.execution.candidates import choice_text
from fusionq.execution.compile import measured_plan
from fusionq.execution.contender import Candidate
from fusionq.execution.first_plan import FirstPlan
from fusionq.execution.list_record import (
    LEFT_TO_MODEL,
    MOST_REQUESTS,
    RECORDS,
    ListRecord,
    new_record,
    record_key,
)
from fusionq.execution.machine_load import is_busy
from fusionq.execution.planning_time import PlanningStopped
from fusionq.execution.run_timer import RunTimer
from fusionq.execution.run_times import Launch, Sample
from fusionq.execution.standing import CANDIDATES, PERSISTENT_LAST
from fusionq.memory.fusing_queues import LOCK
from fusionq.submission.known import KnownSubmission
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun, RunChooser

if TYPE_CHECKING:
    from fusionq.report.model import CacheOutcome

LISTENED = 2
"""Runs before a list's first sample, the second of which finds the first one running where the
program does not wait for each."""

SAMPLED = 257
"""One run in so many is timed of a list whose strategy was chosen by such times."""

SLOW = 2e-3
"""Seconds of a run from which on they are watched for drift by time, not by their number."""

UNTIMED = 0.015
"""Seconds of such runs without one that is timed: that begins later, since it takes another way
through the host.  On an H100's a replay takes 130 to 160 µs more, which is 3 % of a list of 5 ms
that is waited for each time."""

MOST_UNTIMED = 0.05
"""Seconds of shorter runs without one that is timed."""

UNFUSED_UNTIMED = 0.03
"""Seconds of such runs without one that is timed, where each submission runs by itself: they begin
while the list is recorded (``eager_launches``), which tells no time of the list."""


def adaptive_list(
    backend: Backend,
    pending: SubmissionList,
    plans_key: Hashable,
    options: FusionOptions,
    timings: dict[str, float],
    before: RunChooser | None = None,
) -> AdaptiveList | None:
    """What chooses among the candidates of a list by ``auto`` of several submissions, which has
    that ``plans_key``; None where the cost model alone does.  ``before``: what does so for another
    such list of its size class on the same queue, which goes on with this one."""
    largest = largest_extent(pending.operands())
    if (
        options.require
        or options.fp != "strict"
        or debug_level() >= 2  # nothing is read from the disk then
        or largest == 0
    ):
        return None
    key = record_key(plans_key, largest)
    record = RECORDS.find(key)
    if record is None:
        return _new_list(backend, pending, key, options, timings)
    if record.is_left_to_model or record.trials.is_over:
        return None
    if isinstance(before, AdaptiveList) and before._record is record:
        return before
    return AdaptiveList(backend, options, record)


@room_for_recursion("a kernel of the list")
def _new_list(
    backend: Backend,
    pending: SubmissionList,
    key: Hashable,
    options: FusionOptions,
    timings: dict[str, float],
) -> AdaptiveList | None:
    """As ``adaptive_list``, where there is no record by the ``key`` yet."""
    if unavailable(backend) is not None:
        return None
    submissions = pending.submissions()
    if measured_plan(backend, submissions, options, {}) is not None:
        return None
    first = FirstPlan(backend, pending, submissions, options, timings)
    device = backend.target.device
    order = CANDIDATES if device.chooses_persistent else PERSISTENT_LAST
    record = new_record(backend, submissions, options, first.candidate, order)
    if record is None:
        return None
    if not (device.persistent_kernels or record.is_known):
        record.trials.leave_out("megakernel", "the device runs no persistent kernels")
    if first.was_weighed and record.trials.first == "unfused":
        record.keep()  # so that the next process need not plan to find that out
    RECORDS.add(key, record)
    return AdaptiveList(backend, options, record, first.outcome)


class AdaptiveList:
    """Gives the runs of one list on one queue: of the candidate that is to run next."""

    def __init__(
        self,
        backend: Backend,
        options: FusionOptions,
        record: ListRecord,
        made: CacheOutcome | None = None,
    ) -> None:
        self._backend = backend
        self._options = options
        self._record = record
        self._runs = CandidateRuns(backend, options, record, self, made)
        self._compared: tuple[tuple[KnownSubmission, ...], object] = (), None
        """The list last compared with others, and the record's sizes then."""
        self._sample: tuple[Candidate, Sample] | None = None
        """Of which candidate a sample is being taken of this list's runs."""
        self._listens = False
        """Whether the run that is next shows in what rhythm the program runs the list."""
        self._set = 0
        """What ``untimed`` was when it was last set."""
        self.untimed = 0
        """Launches until one is timed."""
        self.reason = ""
        """Why the list runs unfused, where it does."""
        self.is_open = False
        """Whether this has to be asked which run is next: lists that differ in memory and sizes
        alone have launches of their own, which know nothing of it."""

    @property
    def seconds(self) -> float:
        """Of the shortest run of what was chosen; 0 where that is not known."""
        trials = self._record.trials
        contender = None if trials.chosen is None else trials.contenders[trials.chosen]
        return min(contender.seconds, default=0.0) if contender else 0.0

    def next_run(self, pending: SubmissionList, timings: dict[str, float]) -> PreparedRun:
        """The run of the list that is next; PlanningStopped where no candidate can run yet, and
        what preparing one raises."""
        record, trials = self._record, self._record.trials
        self._count()
        sample = self._sample
        if sample is not None and not (sample[1].left or sample[1].close()):
            record.is_unseen = True  # and from now on the last run's launch waits for it
        record.poll()
        if record.is_left_to_model:
            self.is_open = False
            raise PlanningStopped(LEFT_TO_MODEL)
        compared = self._is_compared(pending)
        while True:
            name = self._next(compared, pending)
            try:
                run = self._runs.run(name, pending, timings)
            except PlanningStopped as stopped:
                if stopped.chooser is None or not self._is_sampled("unfused"):
                    self._end_sample()  # else the launches tell what they take
                self._rest(self._until_asked)
                raise
            except BaseException:
                self._end_sample()
                raise
            if run is not None:
                break
            self._end_sample()
        run.adaptive = self
        is_open = trials.is_compared_again or (trials.chosen is None and not trials.waits)
        run.is_trial = self.is_open = is_open or self._sample is not None
        self._rest(self._until_asked)
        if trials.chosen is not None and not trials.is_compared_again:
            self._runs.keep_only(name, run, pending)
        return run

    @property
    def _until_asked(self) -> int | None:
        """How many runs it is until the trials are asked again; None: as the record says."""
        is_asked = self._sample is not None or self._listens or self._record.trials.leads
        return 0 if is_asked else None

    def _is_compared(self, pending: SubmissionList) -> bool:
        """Whether the times of the list may be compared with others of the record."""
        record, entries = self._record, (*pending.entries,)
        if self._compared == (entries, record.sizes):
            record.others = 0
            return True
        is_compared = record.is_compared(pending.operands())
        self._compared = (entries, record.sizes) if is_compared else ((), None)
        return is_compared

    def _next(self, is_compared: bool, pending: SubmissionList) -> Candidate:
        """Which candidate runs next: that of which a sample is being taken, or by the trials."""
        record = self._record
        if self._sample is not None and self._sample[1].left:
            if is_compared:
                return self._sample[0]
            self._end_sample()
        self._sample = None
        if record.is_worth_learning:
            self._make_next(pending)
        self._listens = is_compared and self._listens_first()
        if self._listens or not is_compared or record.is_told_later:
            return record.trials.present
        name, runs = record.trials.next(is_busy)
        if runs:
            self._sample = name, record.sample(name, runs)
        return name

    def _listens_first(self) -> bool:
        """Count a run before the first sample; whether the next run shows whether the program waits
        for each: a sample that is begun without that is of no use where it does not."""
        record = self._record
        if record.trials.tried or record.is_unseen or not record.trials.compares:
            return False
        record.listened += 1
        return record.listened <= LISTENED

    def _is_sampled(self, name: Candidate | None) -> bool:
        """Whether the next run of candidate ``name`` is one of the sample's."""
        sample = self._sample
        return sample is not None and sample[0] == name and sample[1].left > 0

    def _end_sample(self) -> None:
        """No sample is taken."""
        if self._sample is not None:
            self._sample[1].unknown(False)
            self._sample = None
            self._record.poll()

    def _count(self, more: int = 0) -> None:
        """Tell the record of the launches since it was last told, and of ``more``."""
        self._record.count(self._set - self.untimed + more)
        self._set = self.untimed

    def _rest(self, untimed: int | None = None) -> None:
        """No launch is timed for a while."""
        if untimed is None:
            record = self._record
            chosen = record.trials.chosen
            if chosen is None:
                untimed = record.until_next_poll
            else:
                seconds = self.seconds
                untimed = SAMPLED
                if seconds >= SLOW:
                    between = UNFUSED_UNTIMED if chosen == "unfused" else UNTIMED
                    untimed = int(between / seconds)
                elif seconds > 0:
                    untimed = min(untimed, int(MOST_UNTIMED / seconds))
        self._set = self.untimed = untimed

    def launch(
        self, run: PreparedRun, depends: Sequence[DeviceEvent], before: DeviceEvent | None
    ) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
        """As ``run.launch``, with its time taken.  Where the choice is open by now, or another
        one, the list asks again from then on."""
        record = self._record
        name = self._candidate(run)
        prepared, run.prepared_in = run.prepared_in, 0.0
        self._count(1)
        if self._is_sampled(name):
            if not depends:
                self._may_become_one(run, prepared)
                self._let_device_tell(run.one)
            return self._sampled(run.launch, depends, before, prepared)
        rest = SAMPLED if run.is_trial else None
        if not run.is_trial:
            record.poll()
            trials = record.trials
            if name is None or name != trials.chosen:
                run.is_trial = self.is_open = True  # so that it asks, with what it has prepared
                rest = SAMPLED
                if name is not None and (trials.chosen is not None or name != trials.present):
                    record.tell_queues(name)
            elif trials.compares_again():
                run.is_trial = self.is_open = True
                rest = 0
                if not self._runs.has(run):  # lists in other memory have launches of their own
                    record.tell_queues(name)
        self._rest(rest)
        if name is None:
            return run.launch(depends)
        timer = RunTimer(record, name)
        try:
            if not depends:
                self._may_become_one(run, prepared)
                watch = self._backend.stopwatch(run.one)
                if watch is not None:
                    return timer.watched(run.launch, watch, before, prepared)
            return timer.launch(run.launch, depends, before, prepared)
        except BaseException:
            timer.unknown()
            raise

    def _may_become_one(self, run: PreparedRun, prepared: float) -> None:
        """Let a run that is timed be launched as it will be: as one, unless the next list has
        launches of its own again, for which the host has ``prepared`` these."""
        if not prepared:
            run.become_one(self._backend)

    def launch_unfused(
        self, launch: Callable[[], DeviceEvent | None], before: DeviceEvent | None
    ) -> DeviceEvent | None:
        """The event of what ``launch`` launches: each submission by itself, timed; but not where
        their kernels are still to be built."""
        self._count(1)
        is_sampled = self._is_sampled("unfused")
        if self._record.runs == 1 and not is_sampled:
            return launch()

        def one_by_one(
            depends: Sequence[DeviceEvent],
        ) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
            return (), launch()

        if is_sampled:
            self._let_device_tell(None)
            return self._sampled(one_by_one, (), before)[1]
        timer, watch = RunTimer(self._record, "unfused"), self._backend.stopwatch(None)
        if watch is not None:
            return timer.watched(one_by_one, watch)[1]
        return timer.launch(one_by_one, (), before)[1]

    def _let_device_tell(self, launch: PreparedLaunch | None) -> None:
        """Have the device time a sample that begins now, if it does: of ``launch``, or of what is
        launched."""
        assert self._sample is not None, "the caller has seen that there is one"
        name, sample = self._sample
        if sample.has_begun:
            return
        watch = self._backend.stopwatch(launch if sample.left == 1 else None)
        if watch is not None:
            self._sample = name, self._record.watched(name, sample.left, watch)

    def _sampled(
        self,
        launch: Launch,
        depends: Sequence[DeviceEvent],
        before: DeviceEvent | None,
        prepared: float = 0.0,
    ) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
        """As ``launch``, of the next run of the sample, ``prepared`` in so many seconds."""
        assert self._sample is not None, "the caller has seen that there is one"
        sample = self._sample[1]
        self._rest(0)
        try:
            return sample.launch(launch, depends, before, prepared)
        except BaseException:
            sample.unknown(False)
            raise

    def _candidate(self, run: PreparedRun) -> Candidate | None:
        """Which candidate ``run`` is."""
        plans = self._record.plans.items()
        return next((n for n, known in plans if any(b is run.built for b in known)), None)

    # ---------------------------------------------------------------------- candidates
    def _make_next(self, pending: SubmissionList) -> None:
        """Have the next candidate made in the background, if nothing is compared now; last of all
        the launches of each submission by itself, where those stay or are close, but first of all
        where such run without a plan and the host would launch all of them at once with one."""
        from fusionq.execution.bind_ahead import ArgumentsAhead  # few processes need these
        from fusionq.execution.candidate_plans import CandidatePlan

        record, trials = self._record, self._record.trials
        while record.making is None:
            has_no_plan = not (record.requests.get("unfused") or record.plans.get("unfused"))
            runs_without = has_no_plan and trials.present == "unfused"
            if trials.wanted is not None:
                name = trials.wanted
            elif runs_without and self._backend.abilities.launches_lists:
                name = "unfused"
            elif trials.waits and trials.awaited:
                name = trials.awaited[0]
            elif has_no_plan and trials.might_stay_unfused:
                name = "unfused"
            else:
                return
            is_spent = trials.chosen is None and trials.costs.is_spent
            if is_spent and name not in (trials.present, "unfused"):
                return  # until the list has run for longer
            record.requests[name] = record.requests.get(name, 0) + 1
            if record.requests[name] > MOST_REQUESTS:
                trials.leave_out(name, "its plans do not hold for the next list")
            else:
                there = {trials.first, *(n for n, plans in record.plans.items() if plans)}
                others = sorted(there - {name}, key=lambda n: n != trials.first)
                submissions = pending.submissions()
                plan = CandidatePlan(
                    self._backend, submissions, self._options, name, others,
                    ArgumentsAhead(self._backend, pending),
                )  # fmt: skip
                record.make(name, plan)

    # -------------------------------------------------------------------------- report
    def text(self, run: PreparedRun) -> str:
        """On what grounds ``run`` ran, and what is known of the candidates so far."""
        record = self._record
        with LOCK:
            record.poll()
        name = self._candidate(run) or record.trials.present
        return choice_text(record.trials, name, record.is_worth_learning)
