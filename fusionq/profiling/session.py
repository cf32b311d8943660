"""Takes a profile: gives queues runs that record, and keeps what they were made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fusionq.analysis.submission import Submission
from fusionq.analysis.traffic import Traffic, traffic
from fusionq.backends.base import Backend
from fusionq.base.changes import CHANGES
from fusionq.base.errors import DeviceError
from fusionq.base.options import UNFUSED, FusionOptions
from fusionq.execution.prepare import prepare
from fusionq.execution.scratch import Scratch, bytes_written
from fusionq.memory.storage import Storage
from fusionq.planning.plan import Plan
from fusionq.profiling.calibration import Calibration, calibrate
from fusionq.profiling.instrumented_plan import RecordOptions
from fusionq.profiling.recorder import ProfiledRun, Recorded, no_intervals
from fusionq.profiling.timeline import Timeline, Variant, assign_workers
from fusionq.runtime.launcher import Launcher
from fusionq.submission.known import KnownSubmission
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun

ROUNDS = 5
"""How often the fused and the unfused form of a list are compared; the first warms up."""


@dataclass
class ProfiledList:
    """A list of submissions that ran in the profile.  ``compared``: None, or why it was not
    compared with its unfused form."""

    number: int
    plan: Plan
    submissions: tuple[Submission, ...]
    compared: str | None = "comparison was not asked for"

    @property
    def headings(self) -> tuple[str, ...]:
        """The submissions as reports name them."""
        return tuple(f"{k}: {s.ir.name}" for k, s in enumerate(self.submissions))

    def traffic(self) -> tuple[Traffic, Traffic]:
        """Bytes that the list moves as it ran, and submission by submission."""
        from fusionq.analysis.list_analysis import analyse

        analysis = analyse(self.submissions)
        promoted = {
            (place.group, place.view)
            for p in self.plan.promotions
            if p.scope != "global"
            for place in (analysis.place[p.submission, p.argument],)
        }
        fused = [traffic(analysis, stage.submissions, promoted) for stage in self.plan.stages]
        unfused = [traffic(analysis, [s]) for s in range(len(self.submissions))]
        return _sum(fused), _sum(unfused)


def _sum(parts: list[Traffic]) -> Traffic:
    return Traffic(
        sum(p.read_bytes for p in parts),
        sum(p.written_bytes for p in parts),
        all(p.exact for p in parts),
    )


@dataclass(frozen=True)
class SessionOptions:
    """What ``profile`` was asked for."""

    record: RecordOptions
    compare: bool
    compare_bytes: int


class QueueSession:
    """The profile of one queue; it stands in the queue's launcher while it is taken."""

    def __init__(
        self,
        launcher: Launcher,
        options: SessionOptions,
        recorded: Recorded,
        works: list[ProfiledList],
    ) -> None:
        clock = calibrate(launcher.backend)
        self.clock = clock if isinstance(clock, Calibration) else None
        self.no_clock = clock if isinstance(clock, str) else None
        self._launcher = launcher
        self._options = replace(options, record=replace(options.record, clock=self.clock))
        self._recorded = recorded
        self._works = works
        self._runs: dict[tuple[object, ...], PreparedRun] = {}
        self._known: dict[tuple[object, ...], ProfiledList] = {}
        self._every: dict[tuple[object, ...], tuple[int, ...]] = {}
        """Of the launches of each list, one in how many work-groups records."""
        self._outer, launcher.profiler = launcher.profiler, self
        CHANGES.latest = object()

    @property
    def backend(self) -> Backend:
        """Where the kernels run."""
        return self._launcher.backend

    def run_for(self, pending: SubmissionList, options: FusionOptions) -> PreparedRun:
        """A run of the list that records; one that does not, where its kernels cannot be built
        with records."""
        key: tuple[KnownSubmission | FusionOptions, ...] = (options, *pending.entries)
        run = self._runs.get(key)
        if isinstance(run, ProfiledRun) and key not in self._every:
            self._every[key] = self._worth(run)
        is_current = not isinstance(run, ProfiledRun) or run.every == self._every[key]
        if (
            run is not None
            and is_current
            and (not Storage.moves or run.is_in_place())
            and (not pending.values or run.rebind(pending.values, pending.operands))
        ):
            return run
        work = self._known.get(key)
        new = work is None
        number = len(self._works) if work is None else work.number
        failure: str | None = None
        try:
            run = self._run(pending, options, number, every=self._every.get(key))
        except DeviceError as error:
            run = prepare(self.backend, pending, options)
            failure = f"it could not be built with records, and was not measured: {error}"
        if key in self._every and isinstance(run, ProfiledRun):  # a new plan may have other stages
            self._every[key] = run.every
        if work is None:
            work = ProfiledList(number, run.built.plan, run.submissions)
            self._works.append(work)
            self._known[key] = work
        old = self._runs.pop(key, None)
        if isinstance(old, ProfiledRun):
            old.forget()
        self._runs[key] = run
        if failure is not None:
            work.compared = failure
            return run
        for held in pending.memory:
            if isinstance(held, Storage):
                held.watch(self._launcher.cache.stale)
        if new and self._options.compare and len(pending.entries) > 1:
            work.compared = self._compare(pending, options, work, key)
            if isinstance(run, ProfiledRun) and run.every != self._every.get(key, run.every):
                return self.run_for(pending, options)
        return run

    def _worth(self, run: ProfiledRun) -> tuple[int, ...]:
        """One in how many work-groups should record, by what ``run`` has just recorded."""
        return run.sampling() if self._options.record.every is None else run.every

    def _run(
        self,
        pending: SubmissionList,
        options: FusionOptions,
        number: int,
        variant: Variant = "",
        scratch: Scratch | None = None,
        every: Sequence[int] | None = None,
    ) -> ProfiledRun:
        return ProfiledRun(
            self.backend, pending, options, self._options.record, self._recorded, number,
            variant, scratch, every,
        )  # fmt: skip

    # ------------------------------------------------------------------------ comparison
    def _compare(
        self,
        pending: SubmissionList,
        options: FusionOptions,
        work: ProfiledList,
        key: tuple[object, ...],
    ) -> str | None:
        """Run the list fused and unfused alternately, on copies of what it writes; why not."""
        if all(len(stage.submissions) == 1 for stage in work.plan.stages):
            return "it ran unfused"
        needed, limit = bytes_written(pending), self._options.compare_bytes
        if needed > limit:
            return f"it writes {needed:,} bytes, more than compare_bytes={limit:,}"
        self.backend.wait()
        number = work.number
        try:
            scratch = Scratch(self.backend, pending)
            forms: list[tuple[Variant, FusionOptions]] = [("unfused", UNFUSED), ("fused", options)]
            runs = [self._run(pending, how, number, form, scratch) for form, how in forms]
        except DeviceError as error:
            return f"there is no memory for a copy of what it writes: {error}"
        for round_ in range(ROUNDS):
            for run in runs:
                scratch.restore()  # what it left may not be what the list can run on
                run.launch(())
                self.backend.wait()
            if round_ == 0:  # the first touches memory and caches for the first time
                for place, (form, how) in enumerate(forms):
                    every = self._worth(runs[place])
                    runs[place].discard()
                    if every != runs[place].every:
                        runs[place].forget()
                        runs[place] = self._run(pending, how, number, form, scratch, every)
                self._every[key] = runs[-1].every
        for run in runs:
            run.forget()
        return None

    # ------------------------------------------------------------------------------- end
    def close(self) -> None:
        """Read what is left; the queue goes on as it was before."""
        self._launcher.profiler = self._outer
        CHANGES.latest = object()
        self.backend.wait()
        for run in self._runs.values():
            if isinstance(run, ProfiledRun):
                run.forget()
        self._runs.clear()


def timeline_of(recorded: Recorded, clock: Calibration | None, no_clock: str | None) -> Timeline:
    """All that was recorded, in order of time, with workers."""
    intervals = np.concatenate(recorded.intervals) if recorded.intervals else no_intervals()
    intervals["end"] = np.maximum(intervals["end"], intervals["start"])
    if (intervals["worker"] < 0).any():
        assign_workers(intervals)
    return Timeline(
        tuple(recorded.regions),
        tuple(recorded.launches),
        intervals,
        tuple(recorded.aggregates),
        dict(recorded.counters),
        dict(recorded.dropped),
        clock,
        no_clock,
    )
