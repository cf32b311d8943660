"""What is known of the candidates of lists of one structure and size class: their trials, which of
them are being built in the background, and the runs whose times are still to come.

The table of records is the process's; what a record has learned is kept in the disk cache beside
the plans (``cache.learned``), by structure, size class, device and code version.
"""

from __future__ import annotations

import atexit
import os
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from math import inf
from typing import TYPE_CHECKING

from fusionq.analysis.item_space import global_range
from fusionq.analysis.submission import Sized, Submission
from fusionq.analysis.validity import largest_extent
from fusionq.backends.base import Backend, DeviceEvent, Stopwatch
from fusionq.base.frozen import dataclass
from fusionq.base.options import FusionOptions
from fusionq.cache.learned import keep_learned, kept_learned, learned_key
from fusionq.cache.list_keys import structure_digest
from fusionq.cache.plan_cache import PLANS, BuiltPlan
from fusionq.execution.candidates import as_auto, need_not_be_made, superfluous, variants_of
from fusionq.execution.compile import plans_key
from fusionq.execution.contender import Candidate
from fusionq.execution.learned_trials import learned_of, trials_of
from fusionq.execution.planning_time import unfused_seconds
from fusionq.execution.run_timer import RunTimer
from fusionq.execution.run_times import Sample, TimedEvent, WatchedRun, WatchedSample
from fusionq.execution.trials import Trials
from fusionq.memory.fusing_queues import LOCK
from fusionq.planning.plan import Plan
from fusionq.submission.run import PreparedRun

if TYPE_CHECKING:
    from fusionq.execution.bind_ahead import ArgumentsAhead
    from fusionq.execution.candidate_plans import CandidatePlan

CAPACITY = 1024
"""Records of a process; the least recently used beyond that go."""

WORTH_LEARNING = 0.1
"""Seconds that the runs of a list have taken together from which on others are tried: who has run
for so long is likely to go on, and a worker process takes a few times as long to start."""

WORTH_RUNS, WORTH_LIFE = 32, 0.25
"""Or runs, in a program that has had such lists for so many seconds: it does other things between
its runs, and will go on to do so."""

UNTIL_WORTH = (
    "to plan and build it takes longer than to run it unfused; that is done in the background when "
    f"such lists have run for {WORTH_LEARNING:g} seconds together, or {WORTH_RUNS} times in "
    f"{WORTH_LIFE:g} seconds or more"
)

clock: Callable[[], float] = time.monotonic

LEFT_TO_MODEL = "no candidate could be built in the background: the cost model chooses from now on"

UNPLANNED = 1e-5
"""Seconds of the host that a submission of a list takes longer in trials that run it by itself
without a plan: 115 µs where the same launches of a plan took 54, for four of them."""

POLL_SECONDS = 0.02
"""Seconds of runs after which the record of a list that nobody compares now is polled again."""

MOST_REQUESTS = 6
"""Of one candidate: a plan may not hold for the integers of the next list."""

OTHER_SIZES = 16
"""Lists of the size class in a row that have other sizes than those compared, after which theirs
are compared."""

MOST_UNTIMED = 257
"""Launches in a row without a poll."""

MOST_KEPT_AT_END = 64
"""Unfinished records that are written when the program ends."""


@dataclass(slots=True, eq=False)
class ListRecord:
    """Of lists of one structure and size class."""

    trials: Trials
    key: str
    """Of its entry on disk."""
    sizes: tuple[Hashable, ...]
    """Of the lists whose times are compared."""
    kernels: str
    work_items: int
    device: str
    plans: dict[Candidate, list[BuiltPlan]] = field(default_factory=dict)
    """The candidates that this process has, the latest first."""
    making: tuple[Candidate, CandidatePlan] | None = None
    """The candidate that is on its way."""
    requests: dict[Candidate, int] = field(default_factory=dict)
    bound: dict[Candidate, tuple[ArgumentsAhead, PreparedRun]] = field(default_factory=dict)
    """Launches that were bound before one was wanted."""
    events: list[TimedEvent | WatchedRun | WatchedSample] = field(default_factory=list)
    """Of runs whose time nobody has been told yet."""
    reported: deque[tuple[Candidate, float | str | None, int]] = field(default_factory=deque)
    """What runs took, None where nobody knows, or why one did not end, and how many of a sample
    they were, 0: of none; from any thread."""
    is_unseen: bool = False
    """Whether nobody waited for a run whose time was wanted."""
    is_among_others: bool = False
    """Whether the device has other work between the runs of the list."""
    broken: int = 0
    """Samples in a row between whose runs it had."""
    latest: DeviceEvent | None = None
    """Of the last run, if that was timed and part of no sample, until samples are taken."""
    listened: int = 0
    """Runs before the first sample that told in what rhythm the program runs the list."""
    run_seconds: float = 0.0
    """What a run takes, as far as known."""
    runs: int = 0
    """How often such a list ran, about."""
    since: float = field(default_factory=lambda: clock())
    """When it was seen first."""
    others: int = 0
    """Lists in a row that had other sizes."""
    is_left_to_model: bool = False
    """Whether nothing is chosen by runs: the strategies were measured on copies, which goes before,
    or what the cost model chooses cannot be built in the background."""
    _kept: object = None

    def is_compared(self, submissions: Sequence[Sized]) -> bool:
        """Whether the times of ``submissions`` may be compared with others."""
        sizes = sizes_of(submissions)
        if sizes == self.sizes:
            self.others = 0
            return True
        self.others += 1
        if self.others > OTHER_SIZES and self.trials.chosen is None:
            self.sizes, self.others = sizes, 0
            self.trials.restart()
            return True
        return False

    def count(self, runs: int) -> None:
        """So many runs have happened."""
        self.runs += runs
        self.trials.costs.taken += runs * self.run_seconds

    @property
    def is_worth_learning(self) -> bool:
        """Whether others are tried: the list has taken as long together as that costs, or comes
        again and again in a program that takes longer."""
        if self.trials.costs.taken >= WORTH_LEARNING:
            return True
        return self.runs >= WORTH_RUNS and clock() - self.since >= WORTH_LIFE

    @property
    def until_next_poll(self) -> int:
        """Launches until the record is polled again while nothing is compared: ever more."""
        most = self.runs
        if self.run_seconds > 0:
            left = (
                POLL_SECONDS if self.is_worth_learning else WORTH_LEARNING - self.trials.costs.taken
            )
            most = min(most, int(left / self.run_seconds) + 1)
        return max(1, min(most, MOST_UNTIMED))

    def make(self, name: Candidate, plan: CandidatePlan) -> None:
        """Candidate ``name`` is on its way."""
        self.making = name, plan
        self._poll_candidate()

    def _poll_candidate(self) -> None:
        """Take over the candidate that is on its way, if it has come."""
        if self.making is None or not self.making[1].poll():
            return
        (name, made), self.making = self.making, None
        if made.built is None and self.trials.chosen is not None:
            self.trials.contenders[name].again = inf  # it is not looked at again in this process
        elif made.built is None:
            if made.is_unserved and sum(self.requests.values()) <= 1:
                self.is_left_to_model = True
            elif name != self.trials.first or name != "unfused":
                self.trials.leave_out(name, made.reason or "it was not built")
        elif (built := self.add_plan(name, made.built)) is not None:
            if made.run is not None and made.arguments is not None:
                made.run.built = built
                self.bound[name] = made.arguments, made.run
            self.trials.ready(name, made.slowdown)
            if name == self.trials.first:  # which ran without a plan until now
                self.trials.compare_again(name)

    def add_plan(self, name: Candidate, built: BuiltPlan) -> BuiltPlan | None:
        """Candidate ``name``'s plan, as one of a list that asked for no strategy; None if it is not
        tried, and left out."""
        known = self.plans.setdefault(name, [])
        if name != self.trials.first:
            others = {n: k[0].plan for n, k in self.plans.items() if n != name and k}
            reason = superfluous(built.plan, others, self.trials.first)
            if reason is not None:
                self.trials.leave_out(name, reason)
                return None
        else:
            self._leave_out_superfluous(built.plan)
        became: Candidate = built.plan.strategy
        if name == "auto" and became in ("megakernel", "overlap") and became in self.trials.awaited:
            self.trials.leave_out(became, "it is what auto becomes")
        built = BuiltPlan(as_auto(built.plan), built.programs)
        inner = [stage.inner for stage in built.plan.stages]
        self.trials.contenders[name].is_persistent = any(inner)
        self.trials.here.add(name)
        if built.plan.other_slots:
            self.trials.variants[name] = variants_of(built.plan)
        known.insert(0, built)
        del known[16:]
        return built

    def _leave_out_superfluous(self, plan: Plan) -> None:
        """Of the candidates that are not made yet, where ``plan`` is what runs first."""
        for name in self.trials.awaited:
            reason = need_not_be_made(name, self.trials.first, plan)
            if reason is not None:
                self.trials.leave_out(name, reason)

    def poll(self) -> None:
        """Take over what runs took and the background has done."""
        self._poll_candidate()
        if self.events:
            self.events = [event for event in self.events if not event.poll()]
        while self.reported:
            name, what, runs = self.reported.popleft()
            if isinstance(what, float):
                if name == self.trials.best:
                    self.run_seconds = what
                if name == self.trials.first:
                    self.trials.costs.usual = what
                if runs:
                    self._add(name, what, runs)
                elif self.trials.chosen == name:
                    reopened = self.trials.reopened
                    self.trials.sample(what)
                    if self.trials.reopened > reopened:
                        self.is_unseen = self.is_among_others = False
                        self.broken = 0
            elif what is None:
                if runs:
                    self.trials.missed(name)
            elif name in self.trials.contenders:
                self.trials.leave_out(name, what)
        self.trials.in_batches = self.is_unseen and not self.is_among_others
        is_new = self.trials.tried or self.requests or self.trials.later.count
        if self.trials.chosen is not None and is_new:
            self.keep()

    def _add(self, name: Candidate, seconds: float, runs: int) -> None:
        """A sample of ``name``, by which another candidate may be chosen."""
        before = self.trials.chosen
        if runs > 1:
            self.broken = 0
        self.trials.add(name, seconds, runs)
        if before not in (None, self.trials.chosen):
            assert before is not None, "what was chosen"
            self.tell_queues(before)

    def sample(self, name: Candidate, runs: int) -> Sample:
        """So many runs of ``name``, whose time together is wanted."""
        self.latest = None
        return Sample(runs, RunTimer(self, name, runs), self.is_unseen)

    def watched(self, name: Candidate, runs: int, watch: Stopwatch) -> Sample:
        """The same, timed by the device."""
        self.trials.by_device = True
        sample = WatchedSample(runs, RunTimer(self, name, runs), watch)
        self.events.append(sample)
        return sample

    @property
    def is_told_later(self) -> bool:
        """Whether the device will tell of a sample that is launched: it runs behind all that was
        launched before, however far the host is ahead."""
        return any(isinstance(event, WatchedSample) and not event.left for event in self.events)

    def tell_queues(self, name: Candidate) -> None:
        """No queue uses again what it has prepared by the plans of ``name``."""
        for tell in PLANS.superseded:
            tell(self.plans.get(name, ()))

    def keep(self) -> None:
        """Write down what is known, if that is new."""
        state = self._state
        if state != self._kept:
            self._kept = state
            keep_learned(
                self.key, learned_of(self.trials, self.kernels, self.work_items, self.device)
            )

    @property
    def is_known(self) -> bool:
        """Whether there is an entry on disk."""
        return self._kept is not None

    def is_kept(self) -> None:
        """The entry on disk says the same."""
        self._kept = self._state

    @property
    def _state(self) -> tuple[Candidate | None, int, int, bool]:
        """What an entry on disk is written anew for."""
        trials = self.trials
        return trials.chosen, trials.reopened, trials.later.count, self.is_worth_learning


def sizes_of(submissions: Sequence[Sized]) -> tuple[Hashable, ...]:
    """The ranges."""
    return tuple([global_range(submission) for submission in submissions])


class ListRecords:
    """The records of the process, by structure and size class."""

    def __init__(self) -> None:
        self._records: OrderedDict[Hashable, ListRecord] = OrderedDict()

    def find(self, key: Hashable) -> ListRecord | None:
        """The record of a list."""
        record = self._records.get(key)
        if record is not None:
            self._records.move_to_end(key)
        return record

    def add(self, key: Hashable, record: ListRecord) -> None:
        """Remember a record."""
        self._records[key] = record
        if len(self._records) > CAPACITY:
            self._records.popitem(last=False)

    @property
    def latest(self) -> ListRecord | None:
        """The record that was asked for last."""
        return next(reversed(self._records.values()), None)

    def clear(self) -> None:
        """Forget all."""
        self._records.clear()

    def forget_making(self) -> None:
        """In a forked process: nobody works on what is on its way."""
        for record in self._records.values():
            record.making = None

    def keep_unfinished(self) -> None:
        """Write down what has been compared so far."""
        latest = list(self._records.values())[-MOST_KEPT_AT_END:]
        for record in latest:
            if record.trials.chosen is None and record.is_worth_learning:
                record.keep()


RECORDS = ListRecords()
"""Of the process."""

atexit.register(RECORDS.keep_unfinished)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=RECORDS.forget_making)


def record_key(of_plans: Hashable, largest: int) -> Hashable:
    """Under what the process keeps the record of lists whose ``plans_key`` is ``of_plans``, and the
    largest extent ``largest``."""
    return of_plans, largest.bit_length()


def kept_record_key(
    backend: Backend, submissions: tuple[Submission, ...], options: FusionOptions
) -> str | None:
    """The same for the disk; None where nothing about a kernel is kept there."""
    try:
        structure = structure_digest(submissions, backend.target)
    except (TypeError, OSError):
        return None
    if structure is None:
        return None
    size_class = largest_extent(submissions).bit_length()
    return learned_key((structure, options.of_plan, backend.keep_domain, size_class))


def new_record(
    backend: Backend,
    submissions: tuple[Submission, ...],
    options: FusionOptions,
    first: Callable[[Candidate | None], Candidate],
    awaited: Sequence[Candidate],
) -> ListRecord | None:
    """The record that is on disk, or one that begins with what ``first`` gives, which is told what
    the list began with in an earlier process; None where nothing about a kernel is kept on disk, so
    that the worker process cannot hand over what it builds."""
    key = kept_record_key(backend, submissions, options)
    if key is None:
        return None
    learned = kept_learned(key)
    before: Candidate | None = None
    if learned is not None and learned.is_new:
        before, learned = learned.first, None
    record = ListRecord(
        Trials(first(before), awaited) if learned is None else trials_of(learned),
        key,
        sizes_of(submissions),
        _names(submissions),
        largest_extent(submissions),
        backend.info.name,
        run_seconds=unfused_seconds(submissions, backend.target.costs),
    )
    record.trials.unplanned = UNPLANNED * len(submissions)
    if learned is not None:
        record.is_kept()
    return record


def was_measured(
    backend: Backend, submissions: tuple[Submission, ...], options: FusionOptions
) -> None:
    """The strategies of such lists were measured on copies: no queue uses again what was prepared
    by other plans."""
    with LOCK:
        key = plans_key(backend, submissions, options)
        record = RECORDS.find(record_key(key, largest_extent(submissions)))
        if record is not None:
            record.is_left_to_model = True
            for name in record.plans:
                record.tell_queues(name)


def _names(submissions: Sequence[Submission]) -> str:
    """Such as ``blur ×3, sharpen``."""
    counted: list[list[int | str]] = []
    for submission in submissions:
        if counted and counted[-1][0] == submission.name:
            counted[-1][1] = int(counted[-1][1]) + 1
        elif len(counted) < 6:
            counted.append([submission.name, 1])
        else:
            return f"{_joined(counted)}, … ({len(submissions)})"
    return _joined(counted)


def _joined(counted: Sequence[Sequence[int | str]]) -> str:
    return ", ".join(f"{name} ×{n}" if n != 1 else f"{name}" for name, n in counted)
