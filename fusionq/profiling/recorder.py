"""Runs lists with instrumented kernels and keeps what they record."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from fusionq.analysis.submission import ArrayPlace
from fusionq.backends.base import (
    Allocation,
    ArrayBinding,
    Backend,
    Binding,
    DeviceEvent,
    JoiningLaunch,
    PreparedLaunch,
)
from fusionq.base.options import FusionOptions
from fusionq.base.target import LaunchShape
from fusionq.cache.plan_cache import BuiltPlan
from fusionq.execution.binding import bind
from fusionq.execution.programs import is_built, programs_of
from fusionq.megakernel.schedule import Schedule
from fusionq.profiling.calibration import Calibration
from fusionq.profiling.decoding import Decoded, Words, decode, prepare_words
from fusionq.profiling.instructions import LoweredPersistent, decode_instructions
from fusionq.profiling.instrumented_plan import RecordOptions, instrumented
from fusionq.profiling.lowering import Lowered
from fusionq.profiling.regions import WORD_BYTES, Region
from fusionq.profiling.sampling import worth_recording
from fusionq.profiling.text import joined
from fusionq.profiling.timeline import INTERVAL, Aggregate, Intervals, Launch, Variant
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun

_MOST_DEPTH = 64
"""Launches whose records one buffer holds at most before they are read."""


@dataclass
class Recorded:
    """What the launches so far have recorded.  Regions and intervals count over all of them."""

    regions: dict[Region, int] = field(default_factory=dict)
    launches: list[Launch] = field(default_factory=list)
    intervals: list[Intervals] = field(default_factory=list)
    aggregates: list[Aggregate] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    count: int = 0
    """Intervals so far."""


@dataclass
class _StageRecords:
    """The buffer of one launch of a run: ``depth`` launches' records of ``size`` words, one after
    the other; ``read`` gives what such words mean, of so many work-groups."""

    size: int
    depth: int
    memory: Allocation
    base: str
    """The kernel's parameter for the launch's first word."""
    timed: bool
    groups: int
    every: int
    of_range: bool
    """Of work-groups of a launch, some of which may record, not of tiles."""
    prepare: Callable[[Words], None]
    """Makes a launch's words ready to be written."""
    read: Callable[[Words, int], tuple[Decoded, tuple[Region, ...]]]

    def words(self, turn: int) -> Words:
        """The words of the ``turn``-th launch since the buffer was read, to be read only."""
        shared = self._shared(turn)
        if shared is not None:
            return shared
        words = np.empty(self.size, np.int64)
        self.memory.read(words.view(np.uint8), turn * self.size * WORD_BYTES)
        return words

    def reset(self, turn: int) -> None:
        """Make the words of the ``turn``-th launch ready to be written."""
        shared = self._shared(turn)
        words = np.empty(self.size, np.int64) if shared is None else shared
        self.prepare(words)
        if shared is None:
            self.memory.write(words.view(np.uint8), turn * self.size * WORD_BYTES)

    def _shared(self, turn: int) -> Words | None:
        view = self.memory.host_view()
        if view is None:
            return None
        return view.view(np.int64)[turn * self.size : (turn + 1) * self.size]


class ProfiledRun(PreparedRun):
    """A run whose launches record.  ``scratch``: it works on copies of the memory that it writes,
    by the arguments' storage tokens.  ``every``: of launch k one work-group in ``every[k]``
    records; None: as the options say, all if they leave it open (``sampling`` then says what is
    worth it)."""

    __slots__ = (
        "_backend",
        "_depth",
        "_headings",
        "_lowered",
        "_number",
        "_options",
        "_pending",
        "_records",
        "_runs",
        "_scratch",
        "_turn",
        "_variant",
        "every",
        "recorded",
        "work",
    )  # fmt: skip

    def __init__(
        self,
        backend: Backend,
        pending: SubmissionList,
        fusion_options: FusionOptions,
        options: RecordOptions,
        recorded: Recorded,
        work: int,
        variant: Variant = "",
        scratch: Callable[[ArrayPlace], int | None] | None = None,
        every: Sequence[int] | None = None,
    ) -> None:
        from fusionq.execution.device_costs import measured_target
        from fusionq.planning.planner import make_plan

        submissions = tuple(
            s if s.with_regions is None else replace(s, kernel=s.with_regions())
            for s in pending.submissions()
        )
        timings = dict(pending.admission)
        plan = make_plan(
            submissions,
            fusion_options,
            backend.target,
            measured=lambda: measured_target(backend),
            is_built=lambda kernel: is_built(backend, kernel, fusion_options.fp),
        )
        if every is None or len(every) != len(plan.stages):
            every = (options.every or 1,) * len(plan.stages)
        plan, lowered = instrumented(plan, submissions, backend.target, options, every)
        programs = programs_of(backend, plan, fusion_options, timings)
        super().__init__(BuiltPlan(plan, programs), lambda: submissions, "miss", timings)
        self.profiled = True
        self.recorded, self.work, self.every = recorded, work, tuple(every)
        self._backend, self._lowered, self._options = backend, lowered, options
        self._variant: Variant = variant
        self._scratch = scratch
        self._records: list[_StageRecords | None] = [None] * len(plan.stages)
        self._pending: list[tuple[int, int, int, DeviceEvent]] = []
        """Launches whose records have not been read: stage, turn, when the host submitted."""
        self._turn = self._runs = 0
        self._headings = tuple(
            tuple(f"{s}: {submissions[s].ir.name}" for s in stage.submissions)
            for stage in plan.stages
        )
        bind(backend, self, pending, fusion_options.fp)
        for records, launch in zip(self._records, self.launches, strict=True):
            if records is None or not records.of_range or not isinstance(launch, JoiningLaunch):
                continue
            records.groups = launch.work_groups
        depths = [records.depth for records in self._records if records is not None]
        self._depth = min(depths, default=_MOST_DEPTH)

    # ------------------------------------------------------------------------- binding
    def address_of(self, backend: Backend, place: ArrayPlace, held: object) -> int:
        """Where an array argument's memory is: its copy, if there is one."""
        copy = None if self._scratch is None else self._scratch(place)
        return super().address_of(backend, place, held) if copy is None else copy

    def extra_bindings(self, stage: int, shape: LaunchShape) -> Sequence[Binding]:
        """Memory for the records of ``stage``, which is launched in that shape."""
        lowered = self._lowered[stage]
        assert isinstance(lowered, Lowered)
        if not lowered.extra:
            return ()
        groups = prod(shape.global_range) // prod(shape.local_range)
        layout = lowered.layout
        rows = layout.rows(groups)
        regions = tuple(slot.region for slot in layout.slots)
        return self._buffer(
            stage,
            layout.words(rows),
            bool(layout.slots),
            groups,
            layout.every,
            True,
            lambda words: prepare_words(words, layout),
            lambda words, groups: (decode(words, layout, groups, rows), regions),
        )

    def extra_tiles(self, stage: int, schedule: Schedule) -> Sequence[Binding]:
        """Memory for the records of ``stage``, a persistent kernel."""
        lowered = self._lowered[stage]
        assert isinstance(lowered, LoweredPersistent)
        if not lowered.extra:
            return ()
        layout, stages = lowered.layout, len(schedule.stages)
        tiles = [tiled.tiles for tiled in schedule.stages]
        rows = layout.rows_within(stages, max(tiles), self._limit)
        bindings = self._buffer(
            stage,
            layout.words(stages, rows),
            lowered.body.records is not None,
            sum(tiles),
            1,
            False,
            lambda words: words.fill(0),
            lambda words, _: decode_instructions(words, lowered, schedule, rows),
        )
        return *bindings, rows

    @property
    def _limit(self) -> int:
        return self._options.buffer_bytes // WORD_BYTES

    def _buffer(
        self,
        stage: int,
        size: int,
        timed: bool,
        groups: int,
        every: int,
        of_range: bool,
        prepare: Callable[[Words], None],
        read: Callable[[Words, int], tuple[Decoded, tuple[Region, ...]]],
    ) -> Sequence[Binding]:
        depth = max(min(self._limit // size, _MOST_DEPTH), 1)
        memory = self._backend.allocate(WORD_BYTES * size * depth)
        base = self._lowered[stage].extra[1]
        records = _StageRecords(
            size, depth, memory, base, timed, groups, every, of_range, prepare, read
        )
        self._records[stage] = records
        for turn in range(depth):
            records.reset(turn)
        return ArrayBinding(memory.address, (size * depth,), (1,)), 0

    @property
    def depth(self) -> int:
        """Launches whose records there is room for, until they are read or discarded; the one
        behind them waits for that."""
        return self._depth

    # -------------------------------------------------------------------------- launching
    def launch(
        self, depends: Sequence[DeviceEvent]
    ) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
        """As ``PreparedRun.launch``; records are kept until they are read."""
        if self._turn >= self._depth:
            self.read()
        events: list[DeviceEvent | None] = []
        last = None
        for stage, launch in enumerate(self.launches):
            if launch is None:
                events.append(None)
                continue
            last = self._launch_stage(stage, launch, depends)
            events.append(last)
            depends = ()
        for event in depends:
            event.wait()
        self._turn += 1
        return events, last

    def _launch_stage(
        self, stage: int, launch: PreparedLaunch, depends: Sequence[DeviceEvent]
    ) -> DeviceEvent:
        records = self._records[stage]
        if records is not None:
            launch.set_scalar(records.base, self._turn * records.size)
        submitted = time.monotonic_ns()
        event = launch.launch(depends)
        self._pending.append((stage, self._turn, submitted, event))
        if records is None or not records.timed:  # no clock: the host's, around a wait
            event.wait()
            self._note_host(stage, submitted, time.monotonic_ns())
        return event

    # ---------------------------------------------------------------------------- reading
    def _name(self, stage: int) -> str:
        return joined(self._headings[stage])

    def _launched(self, stage: int, turn: int, submitted: int, start: int, end: int) -> Launch:
        records = self._records[stage]
        by_device = records is not None and records.timed
        return Launch(
            self._name(stage),
            self._headings[stage],
            self.work,
            self._runs + turn,
            self._variant,
            submitted,
            start,
            end,
            0 if records is None else records.groups,
            1 if records is None else records.every,
            "device" if by_device else "host",
        )

    def _note_host(self, stage: int, submitted: int, done: int) -> None:
        launch = self._launched(stage, self._turn, submitted, submitted, done)
        self.recorded.launches.append(launch)

    def read(self) -> None:
        """Wait for the launches and take over what they recorded."""
        for stage, turn, submitted, event in self._pending:
            event.wait()
            records = self._records[stage]
            if records is not None:
                self._take(stage, turn, submitted, records, records.words(turn))
                records.reset(turn)
        self._pending.clear()
        self._runs += self._turn
        self._turn = 0

    def _read(self, records: _StageRecords, words: Words) -> tuple[Decoded, tuple[Region, ...]]:
        """What ``words`` mean, in the host's nanoseconds."""
        found, regions = records.read(words, records.groups)
        clock = self._options.clock
        if clock is not None:
            for end in ("start", "end"):
                found.intervals[end] = clock.host_ns(found.intervals[end])
            found.aggregates = [
                _in_host_time(total, clock, regions[total.region].kind == "mark")
                for total in found.aggregates
            ]
        return found, regions

    def _take(
        self, stage: int, turn: int, submitted: int, records: _StageRecords, words: Words
    ) -> None:
        recorded = self.recorded
        found, regions = self._read(records, words)
        if not self._variant:
            for name, value in found.counters.items():
                recorded.counters[name] = recorded.counters.get(name, 0) + value
        if not records.timed:
            return
        numbers = np.array([recorded.regions.setdefault(r, len(recorded.regions)) for r in regions])
        intervals = found.intervals
        intervals["region"] = numbers[intervals["region"]]
        known = intervals["producer"] >= 0
        intervals["producer"][known] += recorded.count
        recorded.count += len(intervals)
        intervals["launch"] = len(recorded.launches)
        start = int(intervals["start"].min(initial=np.iinfo(np.int64).max))
        end = int(intervals["end"].max(initial=0))
        for total in found.aggregates:
            kept = replace(
                total,
                region=int(numbers[total.region]),
                launch=len(recorded.launches),
            )
            recorded.aggregates.append(kept)
            if regions[total.region].kind != "mark":
                start, end = min(start, kept.first), max(end, kept.last)
        if start > end:
            start = end = submitted
        for slot, missing in found.dropped.items():
            name = str(regions[slot])
            recorded.dropped[name] = recorded.dropped.get(name, 0) + missing
        recorded.intervals.append(intervals)
        recorded.launches.append(self._launched(stage, turn, submitted, start, end))

    def sampling(self) -> tuple[int, ...]:
        """What ``every`` should be, by what the launches recorded that have not been read."""
        every = list(self.every)
        for stage, turn, _, event in self._pending:
            records = self._records[stage]
            if turn == 0 and records is not None and records.timed and records.of_range:
                event.wait()
                found, regions = self._read(records, records.words(turn))
                record_ns = 0.0 if self._options.clock is None else self._options.clock.record_ns
                every[stage] = worth_recording(found, regions, records.groups, record_ns)
        return tuple(every)

    def discard(self) -> None:
        """Forget what the launches since the last reading have recorded."""
        for stage, turn, _, event in self._pending:
            event.wait()
            records = self._records[stage]
            if records is not None:
                records.reset(turn)
        self._pending.clear()
        self._turn = 0

    def forget(self) -> None:
        """Read what is left, and let the buffers go; the run must not be launched again."""
        self.read()
        self._records = [None] * len(self._records)
        self.launches = []


def _in_host_time(total: Aggregate, clock: Calibration, of_payloads: bool) -> Aggregate:
    """``total`` in nanoseconds, but for the sums of payloads."""
    first, last = (int(t) for t in clock.host_ns(np.array([total.first, total.last])))
    if of_payloads:
        return replace(total, first=first, last=last)
    sum_, min_, max_ = (round(n * clock.count_ns) for n in (total.sum, total.min, total.max))
    return replace(total, sum=sum_, min=min_, max=max_, first=first, last=last)


def no_intervals() -> Intervals:
    """An empty array."""
    return np.empty(0, INTERVAL)
