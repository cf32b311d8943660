"""What is known of the candidates of lists of one structure and size class: their trials, which of
them are being built in the background, and the runs whose times are still to come.

The table of records is the process's; what a record has learned is kept in the disk cache beside
the plans (``cache.learned``), by structure, size class, device and code version.
"""

from __future__ import annotations

import atexit
from collections import OrderedDict, deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from fusionq.analysis.item_space import global_range
from fusionq.analysis.submission import Submission
from fusionq.analysis.validity import largest_extent
from fusionq.backends.base import Backend, DeviceEvent
from fusionq.base.options import FusionOptions
from fusionq.cache.learned import keep_learned, kept_learned, learned_key
from fusionq.cache.plan_cache import PLANS, BuiltPlan
from fusionq.execution.background import BACKGROUND, BuildJob
from fusionq.execution.compile import plans_key
from fusionq.execution.run_times import TimedEvent, timed_launch
from fusionq.execution.trials import Candidate, Trials
from fusionq.memory.fusing_queues import LOCK
from fusionq.planning.structure import structure_text
from fusionq.submission.run import PreparedRun

CAPACITY = 1024
"""Records of a process; the least recently used beyond that go."""

MOST_REQUESTS = 6
"""Of one candidate: a plan may not hold for the integers of the next list."""

OTHER_SIZES = 16
"""Lists of the size class in a row that have other sizes than those compared, after which theirs
are compared."""

MOST_KEPT_AT_END = 64
"""Unfinished records that are written when the program ends."""


@dataclass(slots=True)
class ListRecord:
    """Of lists of one structure and size class."""

    trials: Trials
    key: str | None
    """Of its entry on disk."""
    sizes: tuple[Hashable, ...]
    """Of the lists whose times are compared."""
    kernels: str
    work_items: int
    device: str
    plans: dict[Candidate, list[BuiltPlan]] = field(default_factory=dict)
    """The candidates that this process has, the latest first."""
    jobs: dict[Candidate, BuildJob] = field(default_factory=dict)
    requests: dict[Candidate, int] = field(default_factory=dict)
    events: list[TimedEvent] = field(default_factory=list)
    """Of runs whose time nobody has been told yet."""
    reported: deque[tuple[Candidate, float | str | None]] = field(default_factory=deque)
    """What runs took, None where nobody knows, or why one did not end; from any thread."""
    seen: int = 0
    """How often such a list came."""
    others: int = 0
    """Lists in a row that had other sizes."""
    measured: bool = False
    """Whether the strategies were measured on copies, which goes before."""
    _kept: object = None

    def is_compared(self, submissions: Sequence[Submission]) -> bool:
        """Whether the times of ``submissions`` may be compared with others of the record."""
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

    def look(self) -> None:
        """Take over what runs took, and what the background has done."""
        if self.jobs:
            BACKGROUND.poll()
            for name, job in tuple(self.jobs.items()):
                if job.is_done:
                    del self.jobs[name]
                    if job.reason is None:
                        self.trials.ready(name, job.slowdown)
                    else:
                        self.trials.leave_out(name, job.reason)
        if self.events:
            self.events = [event for event in self.events if not event.look()]
        while self.reported:
            name, what = self.reported.popleft()
            if isinstance(what, float):
                if self.trials.chosen == name:
                    self.trials.sample(what)
                    if self.trials.chosen is None:
                        self.tell_queues(name)
                else:
                    self.trials.add(name, what)
            elif what is None:
                self.trials.missed(name)
            elif name in self.trials.contenders:
                self.trials.leave_out(name, what)
        if self.trials.chosen is not None:
            self.keep()

    def tell_queues(self, name: Candidate) -> None:
        """No queue uses again what it has prepared by the plans of ``name``."""
        for tell in PLANS.superseded:
            tell(self.plans.get(name, ()))

    def keep(self) -> None:
        """Write down what is known, if that is new."""
        state = (self.trials.chosen, self.trials.reopened)
        if self.key is not None and state != self._kept:
            self._kept = state
            keep_learned(
                self.key, self.trials.learned(self.kernels, self.work_items, self.device)
            )

    def is_kept(self) -> None:
        """The entry on disk says the same."""
        self._kept = (self.trials.chosen, self.trials.reopened)


class RunTimer:
    """Launches a run of candidate ``name``, and tells the record what it took."""

    __slots__ = ("_name", "_record")

    def __init__(self, record: ListRecord, name: Candidate) -> None:
        self._record, self._name = record, name

    def launch(
        self, run: PreparedRun, depends: Sequence[DeviceEvent], before: DeviceEvent | None
    ) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
        """As ``run.launch``; ``before`` is the event of what the queue launched before."""
        events, last = timed_launch(run, depends, before, self)
        if isinstance(last, TimedEvent):
            self._record.events.append(last)
        return events, last

    def took(self, seconds: float) -> None:
        """See ``run_times.Told``."""
        self._record.reported.append((self._name, seconds))

    def unknown(self) -> None:
        """See ``run_times.Told``."""
        self._record.reported.append((self._name, None))

    def stalled(self, reason: str) -> None:
        """See ``run_times.Told``."""
        self._record.reported.append((self._name, reason))


def sizes_of(submissions: Sequence[Submission]) -> tuple[Hashable, ...]:
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

    def keep_unfinished(self) -> None:
        """Write down what has been compared so far."""
        latest = list(self._records.values())[-MOST_KEPT_AT_END:]
        for record in latest:
            if record.trials.chosen is None and record.seen > 1:
                record.keep()


RECORDS = ListRecords()
"""Of the process."""

atexit.register(RECORDS.keep_unfinished)


def record_key(
    backend: Backend, submissions: tuple[Submission, ...], options: FusionOptions
) -> Hashable:
    """Under what the process keeps the record of lists like ``submissions``."""
    return plans_key(backend, submissions, options), largest_extent(submissions).bit_length()


def kept_record_key(
    backend: Backend, submissions: tuple[Submission, ...], options: FusionOptions
) -> str | None:
    """The same for the disk; None where a kernel's source is not known."""
    texts = tuple([s.text.digest for s in submissions if s.text is not None])
    if len(texts) < len(submissions):
        return None
    size_class = largest_extent(submissions).bit_length()
    structure = structure_text(submissions, options, backend.target)
    return learned_key((texts, structure, backend.keep_domain, size_class))


def new_record(
    backend: Backend,
    submissions: tuple[Submission, ...],
    options: FusionOptions,
    first: Candidate,
    awaited: Sequence[Candidate],
) -> ListRecord:
    """The record that is on disk, or one that begins with ``first``."""
    key = kept_record_key(backend, submissions, options)
    learned = None if key is None else kept_learned(key)
    record = ListRecord(
        Trials(first, awaited) if learned is None else Trials.of(learned),
        key,
        sizes_of(submissions),
        _names(submissions),
        largest_extent(submissions),
        backend.info.name,
    )
    if learned is not None:
        record.is_kept()
    return record


def was_measured(
    backend: Backend, submissions: tuple[Submission, ...], options: FusionOptions
) -> None:
    """The strategies of such lists were measured on copies: no queue uses again what was prepared
    by other plans."""
    with LOCK:
        record = RECORDS.find(record_key(backend, submissions, options))
        if record is not None:
            record.measured = True
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
