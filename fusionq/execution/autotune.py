"""Which strategy is the fastest for a list: measured on the device, and remembered.

Each strategy that the analysis allows runs the list alternately, on copies of the memory that it
writes, with the same contents each time.  What was measured is part of the fastest one's plan,
which is then the plan for lists of that structure, with those options, on that device, with sizes
of that order of magnitude; whoever asks for ``strategy="auto"`` finds it in the caches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from math import inf
from statistics import median
from typing import TYPE_CHECKING, TypeVar

from fusionq.analysis.submission import ArrayPlace, Submission
from fusionq.analysis.validity import for_this_order, largest_extent
from fusionq.backends.base import Backend
from fusionq.base.errors import DeviceError, FusionRefused, MegakernelStalled
from fusionq.base.options import FusionOptions
from fusionq.base.phases import timed
from fusionq.base.target import FloatMode
from fusionq.cache.plan_cache import BuiltPlan
from fusionq.execution.binding import bind
from fusionq.execution.candidates import launches_of, variants_of
from fusionq.execution.compile import built_plan, keep_measured, measured_plan
from fusionq.execution.contender import Candidate
from fusionq.execution.list_record import was_measured
from fusionq.execution.samples import FASTER
from fusionq.execution.scratch import Scratch, bytes_written
from fusionq.planning.plan import StrategyTime
from fusionq.planning.ring_sizes import slot_bytes
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun

if TYPE_CHECKING:
    from fusionq.report.model import CacheOutcome

T = TypeVar("T", bound=Hashable)

MOST_BYTES = 1 << 30
"""Of copies; a list that writes more is not measured."""

MOST_ROUNDS = 40
"""Each strategy runs once in a round."""

FEWEST_ROUNDS, SECONDS = 7, 0.5
"""After so many rounds no other begins when that time has passed, …"""

MOST_SECONDS = 2.0
"""… and when this has passed, however many there were."""

EARLIEST, CLEARLY_WORSE = 3, 1.3
"""From that round on a strategy takes no further part whose best time is so many times the median
of another."""


class NotMeasured(Exception):
    """The strategies are not measured; the text says why."""


def tuned_plan(
    backend: Backend,
    pending: SubmissionList,
    options: FusionOptions,
    timings: dict[str, float],
) -> tuple[BuiltPlan, CacheOutcome]:
    """The fastest plan for the list and its programs: remembered, or measured now.  Where it is
    not measured, the plan that ``auto`` takes, with the reason as its ``choice``.

    Adds the seconds by phase to ``timings``; those of measuring are ``tune``.  Raises what
    ``built_plan`` does.
    """
    submissions = pending.submissions()
    found = measured_plan(backend, submissions, options, timings)
    if found is not None:
        return found
    base, outcome = built_plan(backend, submissions, options, timings)
    try:
        built = _fastest(backend, pending, submissions, options, base, timings)
    except NotMeasured as reason:
        choice = "; ".join(filter(None, (f"not measured: {reason}", base.plan.choice)))
        return BuiltPlan(replace(base.plan, choice=choice), base.programs), outcome
    keep_measured(backend, submissions, options, built)
    was_measured(backend, submissions, options)
    return built, "miss"


def _fastest(
    backend: Backend,
    pending: SubmissionList,
    submissions: tuple[Submission, ...],
    options: FusionOptions,
    base: BuiltPlan,
    timings: dict[str, float],
) -> BuiltPlan:
    """The fastest of the strategies that the list allows, with what was measured in its plan."""
    if len(submissions) == 1:
        raise NotMeasured("one submission is one launch by every strategy")
    if largest_extent(submissions) == 0:
        raise NotMeasured("no submission has a work-item")
    needed = bytes_written(pending)
    if needed > MOST_BYTES:
        raise NotMeasured(
            f"the list writes to {needed:,} bytes of arrays, and measuring copies at most "
            f"{MOST_BYTES:,}"
        )
    candidates, notes = _candidates(backend, submissions, options, base, timings)
    if len(candidates) == 1:
        raise NotMeasured("; ".join(["every strategy gives the same launches", *notes]))
    with timed(timings, "tune"):
        seconds, more_notes = _measure(backend, pending, submissions, candidates, options.fp)
    chosen = choice(seconds)
    order = [chosen, *sorted(seconds.keys() - {chosen}, key=seconds.__getitem__)]
    plans = [candidates[k].plan for k in order]
    measured = tuple(
        StrategyTime(plan.strategy, seconds[k], slot_bytes(plan))
        for k, plan in zip(order, plans, strict=True)
    )
    built = candidates[chosen]
    plan = replace(
        built.plan,
        validity=for_this_order(built.plan.validity, submissions),
        measured=measured,
        choice="; ".join([_text(measured), *notes, *more_notes]),
    )
    return BuiltPlan(plan, built.programs)


def choice(seconds: Mapping[int, float]) -> int:
    """Which candidate is taken: the fastest, unless an earlier one is about as fast, of which the
    first is what ``auto`` takes.  Such a difference may be noise, or one between runs in turn with
    others and runs of the list alone."""
    fastest = min(seconds.values())
    return min(k for k, taken in seconds.items() if FASTER * taken <= fastest)


def _text(measured: Sequence[StrategyTime]) -> str:
    """In words; the first is what was chosen."""
    chosen, *others = measured
    against = [
        f"{m.seconds * 1e6:.0f} µs {_as(m)} ({m.seconds / chosen.seconds:.2f}x)" for m in others
    ]
    is_fastest = all(chosen.seconds <= m.seconds for m in others)
    place = "the fastest" if is_fastest else "about as fast as the fastest"
    first = f"{chosen.seconds * 1e6:.0f} µs {_as(chosen)}"
    return f"measured {first}, {place}, against {' and '.join(against) or 'nothing'}"


def _as(measured: StrategyTime) -> str:
    slots = f" with slots of {measured.slot_bytes:,} bytes" if measured.slot_bytes else ""
    return _AS[measured.strategy] + slots


_AS = {
    "fused": "as one launch",
    "megakernel": "as a megakernel",
    "overlap": "with halos computed anew",
    "sequence": "as a sequence of launches",
    "unfused": "unfused",
}


# ---------------------------------------------------------------------------- candidates
def _candidates(
    backend: Backend,
    submissions: tuple[Submission, ...],
    options: FusionOptions,
    base: BuiltPlan,
    timings: dict[str, float],
) -> tuple[list[BuiltPlan], list[str]]:
    """The plans to choose from, which differ in their launches; ``base`` is what ``auto`` takes.
    And why there is not one for each strategy."""
    found = {launches_of(base.plan): base}
    notes = []
    asked: list[Candidate] = [*variants_of(base.plan)]
    if base.plan.strategy not in ("fused", "sequence"):
        asked.append("fused")
    if base.plan.strategy != "megakernel" and len(base.plan.stages) > 1:
        asked.append("megakernel")
    kept = any(decision.scope != "private" for decision in base.plan.promotions)
    if base.plan.strategy != "overlap" and kept:
        asked.append("overlap")
    if not options.require:  # which is for one launch, or none
        asked.append("unfused")
    for strategy in asked:  # to which others are added
        wanted = options._replace(tune=False).of_candidate(strategy)
        try:
            built, _ = built_plan(backend, submissions, wanted, timings, may_fall_back=False)
        except (FusionRefused, DeviceError) as error:
            notes.append(f"strategy {strategy!r} is left out: {_first_line(error)}")
            continue
        found.setdefault(launches_of(built.plan), built)
        asked += (name for name in variants_of(built.plan) if name not in asked)
        if strategy == "megakernel" and built.plan.strategy != "megakernel":
            notes.append(f"no megakernel was measured: {built.plan.fallback}")
    return list(found.values()), notes


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


# ----------------------------------------------------------------------------- measuring
class _RunOnCopies(PreparedRun):
    """A run that works on copies of the memory that the list writes."""

    __slots__ = ("_backend", "_scratch", "stalled")

    def __init__(
        self,
        backend: Backend,
        built: BuiltPlan,
        submissions: tuple[Submission, ...],
        scratch: Scratch,
    ) -> None:
        super().__init__(built, lambda: submissions, "miss", {})
        self._backend = backend
        self._scratch = scratch
        self.stalled: str | None = None
        """How a wait inside a persistent kernel ran out."""

    def address_of(self, backend: Backend, place: ArrayPlace, held: object) -> int:
        """Where an array argument's memory is: its copy, if there is one."""
        copy = self._scratch(place)
        return super().address_of(backend, place, held) if copy is None else copy

    def seconds(self) -> float:
        """How long it takes to launch and run all, by the device's clock where that tells; infinite
        once it has stalled."""
        if self.stalled is not None:
            return inf
        self._scratch.restore()
        watch = self._backend.stopwatch(self.one)
        try:
            if watch is None:
                return self._backend.seconds(self._to_the_end)
            watch.start()
            self._to_the_end(watch.stop)
        except MegakernelStalled as error:
            self.stalled = _first_line(error)
            return inf
        self._backend.wait()
        taken = watch.seconds()
        assert taken is not None, "they have run"
        return taken

    def _to_the_end(self, launched: Callable[[], None] = lambda: None) -> None:
        """Launch, as a list is that comes again, and call ``launched``; wait only where that says
        how it ended."""
        _, last = self.launch(())
        launched()
        if self.is_persistent and last is not None:
            last.wait()


def _measure(
    backend: Backend,
    pending: SubmissionList,
    submissions: tuple[Submission, ...],
    candidates: Sequence[BuiltPlan],
    fp: FloatMode,
) -> tuple[dict[int, float], list[str]]:
    """Median seconds by candidate, and why one has none."""
    for event in pending.depends:
        event.wait()
    backend.wait()
    try:
        scratch = Scratch(backend, pending)
        runs = [_RunOnCopies(backend, built, submissions, scratch) for built in candidates]
        for run in runs:
            bind(backend, run, pending, fp)
            run.will_be_repeated()
    except DeviceError as error:
        raise NotMeasured(
            f"there is no memory for copies of the {bytes_written(pending):,} bytes of arrays that "
            f"the list writes to: {_first_line(error)}"
        ) from error
    for run in runs:
        run.seconds()  # the first touches memory and caches for the first time
    found = medians({k: run.seconds for k, run in enumerate(runs)})
    notes = [f"the megakernel is left out: {run.stalled}" for run in runs if run.stalled]
    return {k: seconds for k, seconds in found.items() if runs[k].stalled is None}, notes


def medians(
    runs: Mapping[T, Callable[[], float]], clock: Callable[[], float] = time.perf_counter
) -> dict[T, float]:
    """Each of ``runs`` gives the seconds that it took; the medians of calling them in turn, until
    one is left, or it has been often enough, or long enough."""
    times: dict[T, list[float]] = {name: [] for name in runs}
    racing = list(runs)
    started = clock()
    for rounds in range(1, MOST_ROUNDS + 1):
        first = rounds % len(racing)  # none always comes after the same one
        for name in racing[first:] + racing[:first]:
            times[name].append(runs[name]())
        if rounds >= EARLIEST:
            best = min(median(times[name]) for name in racing)
            racing = [name for name in racing if min(times[name]) <= CLEARLY_WORSE * best]
        elapsed = clock() - started
        enough = elapsed > (SECONDS if rounds >= FEWEST_ROUNDS else MOST_SECONDS)
        if enough or len(racing) == 1:
            break
    return {name: median(taken) for name, taken in times.items()}
