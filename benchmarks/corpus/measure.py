"""Measures forms of one program, in a process of its own: ``python -m`` this module REQUEST.

A device's compiler may take minutes or take the process with it; ``corpus.runner`` starts this
one, and ends it where it must.  Every line of standard output is an Event as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, get_args

import fusionq as fq
from fusionq.backends.registry import backend_for
from fusionq.base.options import Strategy
from fusionq.benchmarks.corpus.program import Form, WorkingSet
from fusionq.benchmarks.corpus.programs import PROGRAMS
from fusionq.benchmarks.corpus.results import (
    AUTO,
    LEARNING,
    NUMBA,
    UNFUSED,
    FormResult,
    Learning,
)
from fusionq.benchmarks.corpus.workload import CorpusWorkload, Problem
from fusionq.benchmarks.results import VariantResult
from fusionq.benchmarks.runner import measure
from fusionq.benchmarks.timing import (
    Sampler,
    Start,
    back_to_back,
    one_at_a_time,
    runs_per_sample,
)
from fusionq.benchmarks.variants import MissingVariant, Variant, launches
from fusionq.cache.plan_cache import PLANS
from fusionq.execution.candidates import launches_of
from fusionq.execution.device_costs import measured_target
from fusionq.execution.list_record import RECORDS

WARM_UP_RUNS = 8
"""Runs of auto before it is timed."""

MOST_LEARNING = 120.0
"""Seconds until auto has learned what is the fastest; most of it builds candidates."""

MOST_LATER = 5.0
"""Seconds from then on until it has compared that once more with each of the others."""


@dataclass(frozen=True)
class Request:
    """What to measure.

    ``learning_only``: only auto that learns, and its candidates, in the disk cache that is there.
    ``single``: each run is waited for.  ``replay``: the times are those of replays, of the
    unfused list too, which are CUDA graphs on a GPU.  ``skipped``: by form, the candidates that are
    not to be tried, and why.
    """

    program: str
    forms: tuple[str, ...]
    working_set: WorkingSet
    device: str | None
    rounds: int
    skipped: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    learning_only: bool = False
    single: bool = False
    replay: bool = False


@dataclass(frozen=True)
class Event:
    """A sign of life: what is being done now, or a form's result."""

    form: str
    candidate: str | None = None
    """Of which candidate, where it is one's first run."""
    doing: str = ""
    result: dict[str, Any] | None = None


Tell = Callable[[Event], object]


def strategies() -> tuple[Strategy, ...]:
    """The library's strategies, without auto and unfused."""
    return tuple(s for s in get_args(Strategy) if s not in (AUTO, UNFUSED))


def measure_forms(request: Request, tell: Tell) -> None:
    """Measure each of the forms; ``tell`` has the results."""
    program = PROGRAMS[request.program]
    size = program.sizes[request.working_set]
    tell(Event(request.forms[0], doing="making data"))
    problem = Problem(program, size)
    measured_target(backend_for(request.device, False))
    for form in program.forms:
        if form.name not in request.forms:
            continue
        blank = FormResult(
            program.name, form.name, program.half, request.working_set, size, problem.nbytes
        )
        try:
            with tempfile.TemporaryDirectory(prefix="fusionq-corpus-") as folder:
                found = _FormRun(problem, form, request, folder, tell).measured()
                result = FormResult(**{**vars(blank), **found})
        except AssertionError as error:
            result = FormResult(**{**vars(blank), "error": f"a result is wrong: {error}"})
        except fq.FusionqError as error:
            result = FormResult(**{**vars(blank), "error": f"{type(error).__name__}: {error}"})
        finally:
            fq.set_disk_cache()
        tell(Event(form.name, result=asdict(result)))


class _FormRun:
    """Everything that is measured of one form."""

    def __init__(
        self, problem: Problem, form: Form, request: Request, folder: str, tell: Tell
    ) -> None:
        self.request, self.form, self.folder, self._tell = request, form, folder, tell
        self.program = problem.program
        self.skipped = request.skipped.get(form.name, {})
        self.workload = CorpusWorkload(problem, form, fq.FusionQueue(request.device))
        self.learning: Learning | None = None

    def measured(self) -> dict[str, Any]:
        """The fields of the form's result."""
        self.tell("unfused", UNFUSED)
        submissions = self.unfused_run()
        first_calls = None if self.request.learning_only else self.first_calls()
        found = list(self.variants(submissions))
        ready = [v for v in found if isinstance(v, Variant)]

        def progress(doing: str, done: int, total: int) -> None:
            self.tell(f"{doing} {done}/{total}" if total else doing)

        results = measure(self.workload, ready, self.request.rounds, progress)
        missing = [v for v in found if isinstance(v, MissingVariant)]
        by_name = {r.name: r for r in results}
        by_name |= {v.name: VariantResult(v.name, v.group, unavailable=v.reason) for v in missing}
        return {
            "submissions": submissions,
            "first_calls": first_calls,
            "variants": tuple(by_name[v.name] for v in found),
            "learning": self.learning,
        }

    def tell(self, doing: str, candidate: str | None = None) -> None:
        self._tell(Event(self.form.name, candidate, doing))

    # -------------------------------------------------------------------------------- runs
    def unfused_run(self) -> int:
        """The run whose bits all others are compared with; the number of submissions."""
        workload = self.workload
        workload.submit()
        workload.queue.wait()
        workload.check(bit_for_bit=True)
        return len(self.fusion("unfused").report.submissions)

    def fusion(self, strategy: Strategy, adapt: bool = False) -> fq.Fusion:
        """A run by a strategy, to its end, from the beginning's contents."""
        self.workload.restore()
        fusion = self.fused(strategy, adapt)
        fusion.event.wait()
        return fusion

    def fused(self, strategy: Strategy, adapt: bool = False) -> fq.Fusion:
        """The list as a fusion, submitted; ``adapt``: auto learns from its runs."""
        with fq.fusion(self.workload.queue, strategy=strategy, adapt=adapt) as fusion:
            self.workload.submit()
        return fusion

    def first_calls(self) -> dict[str, float]:
        """Seconds of the unfused list and of auto's, with empty caches and the usual time to plan;
        kernels are lowered."""
        with _usual_planning():
            return self._first_calls()

    def _first_calls(self) -> dict[str, float]:
        seconds = {}
        for name in (UNFUSED, LEARNING, AUTO):
            if name in self.skipped:
                continue
            self.tell(f"first call, {name}", name)
            self.workload.restore()
            PLANS.clear()
            RECORDS.clear()
            fq.set_disk_cache(directory=os.path.join(self.folder, name))
            self.workload.queue = fq.FusionQueue(self.request.device)
            started = time.perf_counter()
            if name == UNFUSED:
                self.workload.submit()
                self.workload.queue.wait()
            else:
                self.fused("auto", adapt=name == LEARNING).event.wait()
            seconds[name] = time.perf_counter() - started
            self.workload.check(bit_for_bit=True)
        return seconds

    # ---------------------------------------------------------------------------- variants
    def variants(self, submissions: int) -> Iterator[Variant | MissingVariant]:
        """Unfused, the strategies, auto and Numba; lists with the same launches once."""
        yield self.variant(UNFUSED, self.unfused, submissions, None)
        learned: Variant | MissingVariant | None = None
        if LEARNING in self.skipped:
            learned = MissingVariant(LEARNING, "fusionq", self.skipped[LEARNING])
        elif self.request.learning_only:
            with _usual_planning():
                learned = self.learned()  # before there is a plan of any strategy
        seen: dict[object, str] = {}
        for strategy in strategies():
            yield self.candidate(strategy, seen)
        if AUTO in self.skipped:
            yield MissingVariant(AUTO, "fusionq", self.skipped[AUTO])
        elif not self.request.learning_only:
            for run in range(WARM_UP_RUNS):
                self.tell(f"warm-up {run + 1}/{WARM_UP_RUNS}")
                fusion = self.fusion("auto")
            yield self.variant_of(AUTO, fusion, lambda: self.fused("auto").event)
        yield learned or self.learned()
        if self.request.learning_only:
            return
        if NUMBA in self.skipped:
            yield MissingVariant(NUMBA, "baseline", self.skipped[NUMBA])
        elif self.program.loop is not None:
            self.tell("Numba", NUMBA)
            yield self.numba()

    @cached_property
    def unfused(self) -> Start:
        """Runs the list as its launches; gives what to wait for."""
        return self.fusion("unfused").replay if self.request.replay else self.submitted

    def submitted(self) -> fq.FusionQueue:
        """The list as its launches; what to wait for."""
        self.workload.submit()
        return self.workload.queue

    def candidate(self, strategy: Strategy, seen: dict[object, str]) -> Variant | MissingVariant:
        """A strategy, if it gives other launches than those ``seen`` before."""
        if strategy in self.skipped:
            return MissingVariant(strategy, "fusionq", self.skipped[strategy])
        self.tell(strategy, strategy)
        fusion = self.fusion(strategy)
        report = fusion.report
        if report.strategy == UNFUSED or (strategy == "megakernel" != report.strategy):
            reason = report.fallback or report.choice or "nothing joins"
            return MissingVariant(strategy, "fusionq", f"ran as {report.strategy}: {reason}")
        same = seen.setdefault(launches_of(report.plan), strategy)
        if same != strategy:
            return MissingVariant(strategy, "fusionq", f"the same launches as {same}")
        return self.variant_of(strategy, fusion, lambda: self.fused(strategy).event)

    def learned(self) -> Variant | MissingVariant:
        """Auto, when it has learned what is the fastest."""
        self.tell("learning", LEARNING)
        end = time.monotonic() + MOST_LEARNING
        unfused = self.sampler(self.unfused)
        runs = 1 if self.request.single else runs_per_sample(unfused)
        usual = min(unfused(runs) / runs for _ in range(3))
        sample = self.sampler(lambda: self.fused("auto", True).event)
        while True:
            sample(runs)
            record = RECORDS.latest
            if record is None:
                reason = "lists of this device learn nothing"
                return MissingVariant(LEARNING, "fusionq", reason)
            if record.trials.chosen is not None:
                break
            if time.monotonic() > end:
                reason = f"nothing was chosen within {MOST_LEARNING:.0f} s"
                return MissingVariant(LEARNING, "fusionq", reason)
            if record.making is not None:
                time.sleep(0.02)
        tried, cost = record.trials.tried, record.trials.costs.total / usual
        end = time.monotonic() + MOST_LATER
        while time.monotonic() < end and record.trials.is_open:
            sample(runs)
        fusion = self.fusion("auto", adapt=True)
        report = fusion.report
        self.learning = Learning(tried, cost, report.choice or report.fallback or "")
        return self.variant_of(LEARNING, fusion, lambda: self.fused("auto", True).event)

    def sampler(self, start: Start) -> Sampler:
        """Runs in the rhythm that was asked for, from the beginning's contents."""
        rhythm = one_at_a_time if self.request.single else back_to_back
        return self.workload.restoring(rhythm(start))

    def variant_of(self, name: str, fusion: fq.Fusion, block: Start) -> Variant:
        """What ``fusion`` ran, by blocks like its own or by its replays."""
        start, report = fusion.replay if self.request.replay else block, fusion.report
        return self.variant(name, start, launches(report), report.strategy)

    def variant(self, name: str, start: Start, count: int, strategy: str | None) -> Variant:
        sampler = self.sampler(start)
        return Variant(name, "fusionq", "unfused", start, lambda: count, strategy, sampler)

    def numba(self) -> Variant | MissingVariant:
        """The program's parallel loops."""
        try:
            import numba
        except ImportError:
            reason = "Numba is not installed: pip install numba"
            return MissingVariant(NUMBA, "baseline", reason)
        assert self.program.loop is not None
        loop = numba.njit(parallel=True)(self.program.loop(numba))
        arrays = tuple(self.workload.host.values())
        if not all(array.flags.writeable for array in arrays):
            return MissingVariant(NUMBA, "baseline", "the host does not see the device's memory")

        def start() -> None:
            loop(*self.workload.problem.size, *arrays)

        self.workload.restore()
        start()  # compiles
        sampler = self.sampler(start)
        return Variant(NUMBA, "baseline", "promoted", start, sampler=sampler)


@contextmanager
def _usual_planning() -> Iterator[None]:
    """Lists may be planned for as long as users wait for them."""
    planning = os.environ.pop("FUSIONQ_PLANNING_SECONDS", None)
    try:
        yield
    finally:
        if planning is not None:
            os.environ["FUSIONQ_PLANNING_SECONDS"] = planning


@contextmanager
def events_alone() -> Iterator[Tell]:
    """Standard output for events only: what else is written goes to standard error."""
    with os.fdopen(os.dup(1), "w") as events:
        os.dup2(2, 1)

        def tell(event: Event) -> None:
            print(json.dumps(asdict(event)), file=events, flush=True)

        yield tell


def main() -> None:
    """Serve the request in the first argument."""
    data = json.loads(sys.argv[1])
    with events_alone() as tell:
        measure_forms(Request(**{**data, "forms": tuple(data["forms"])}), tell)


if __name__ == "__main__":
    main()
