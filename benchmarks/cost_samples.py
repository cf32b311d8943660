"""What the cost model is fitted to and judged by: lists measured as launches and as one persistent
kernel.

Lists of one program are measured in a process of their own, ``python -m`` this module ROUNDS NAME,
since a device's compiler may take minutes or take the process with it.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import fusionq as fq
from fusionq.analysis.questions import Questions
from fusionq.backends.registry import backend_for
from fusionq.base.options import Strategy
from fusionq.benchmarks.case import Workload
from fusionq.benchmarks.cases import CASES
from fusionq.benchmarks.corpus.program import HALVES, Half, WorkingSet
from fusionq.benchmarks.corpus.programs import PROGRAMS
from fusionq.benchmarks.corpus.workload import CorpusWorkload, Problem
from fusionq.benchmarks.timing import Sampler, back_to_back, time_interleaved
from fusionq.benchmarks.variants import submit_chain
from fusionq.cache.serialise import decode, encode
from fusionq.execution.candidates import launches_of
from fusionq.planning.cost import ListWork
from fusionq.planning.list_work import has_inside, list_work

ROUNDS = 7
SECONDS_OF_RUNS = 1.5
"""Of lists that take long; they have fewer rounds, at least ``FEWEST_ROUNDS``."""
FEWEST_ROUNDS = 2
SECONDS_FOR_ONE = 150
"""For planning, compiling and measuring a list."""
WORKING_SETS: tuple[WorkingSet, ...] = ("in cache", "out of cache")
FORMS = 2
"""Of a program of the corpus, at most."""
FEWEST_ELEMENTS = 1024
STRATEGIES: tuple[Strategy, ...] = ("unfused", "sequence", "megakernel")


@dataclass(frozen=True)
class Sample:
    """A measured list.

    ``seconds``: medians by strategy, without those that give the same launches as one before.
    ``work``: what it does as one persistent kernel; None where it does not become one.
    ``launches``: of the sequence.
    """

    name: str
    size: str
    launches: int
    seconds: Mapping[str, float]
    work: ListWork | None

    @property
    def sequence(self) -> float:
        """Seconds as launches, with what joins joined."""
        return self.seconds.get("sequence", self.seconds["unfused"])

    @property
    def persistent(self) -> float | None:
        """Seconds as one persistent kernel; None where there is none."""
        return self.seconds.get("megakernel")

    @property
    def half(self) -> Half:
        """By the name, as the corpus is halved."""
        return HALVES[hashlib.sha256(self.name.partition("/")[0].encode()).digest()[0] >> 7]


def lists() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names and sizes of the lists: the cases that compare strategies, and the corpus."""
    for case in CASES.values():
        if case.compare == "strategies":
            sizes = {size >> shift for size in case.sizes for shift in (0, 3, 6, 9, 12)}
            found = sorted(n for n in sizes if n >= FEWEST_ELEMENTS or n in case.sizes)
            yield case.name, tuple(map(str, found))
    for program in PROGRAMS.values():
        for form in program.forms[:FORMS]:
            yield f"{program.name}/{form.name}", WORKING_SETS


def measured_samples(
    known: Collection[tuple[str, str]], rounds: int, say: Callable[[str], object]
) -> Iterator[Sample]:
    """Every list that can be measured, but those with a ``known`` name and size; ``say`` is told of
    each."""
    for name, sizes in lists():
        for size in sizes:
            if (name, size) in known:
                continue
            command = [sys.executable, "-m", __name__, str(rounds), name, size]
            try:
                run = subprocess.run(
                    command, capture_output=True, text=True, timeout=SECONDS_FOR_ONE
                )
            except subprocess.TimeoutExpired:
                say(f"{name}, {size}: takes too long")
                continue
            if run.returncode:
                say(f"{name}, {size}: {(run.stderr.strip() or 'ended').splitlines()[-1]}")
                continue
            sample = from_json(json.loads(run.stdout))
            times = ", ".join(f"{s} {t * 1e6:.0f} µs" for s, t in sample.seconds.items())
            say(f"{name}, {size}: {times}")
            yield sample


def to_json(sample: Sample) -> dict[str, Any]:
    """``sample`` as data."""
    return {**vars(sample), "work": sample.work and encode(sample.work)}


def from_json(data: Mapping[str, Any]) -> Sample:
    """What ``to_json`` gave."""
    work = data["work"]
    return Sample(**{**data, "work": work and decode(ListWork, work)})


def measure(name: str, size: str, rounds: int) -> Sample:
    """Measure a list by each strategy; ``rounds`` of interleaved runs."""
    queue = fq.FusionQueue()
    submit, restoring = _submits(name, size, queue)
    runs: dict[str, fq.Fusion] = {}
    seen = set()
    work, inside = None, set[tuple[int, ...]]()
    launches = 0
    for strategy in STRATEGIES:
        with fq.fusion(queue, strategy=strategy, promote=_PROMOTE[name in CASES]) as run:
            submit()
        report = run.report
        stages = report.plan.stages
        if strategy == "sequence":
            launches = len(stages)
            apart = [stage.submissions for stage in stages]
            inside = {stage.submissions for stage in stages if has_inside(stage.kernel)}
        elif strategy == "megakernel":
            if len(stages) > 1 or not stages[0].inner:
                continue
            questions = Questions(report.submissions)
            target = backend_for(None).target
            work = list_work(questions, stages[0], apart, target, inside.__contains__)
        if (same := launches_of(report.plan)) not in seen:
            seen.add(same)
            runs[strategy] = run
    samplers = [restoring(back_to_back(run.replay)) for run in runs.values()]
    for sampler in samplers:
        sampler(1)
    once = sum(sampler(1) for sampler in samplers)
    rounds = min(rounds, max(round(SECONDS_OF_RUNS / once), FEWEST_ROUNDS))
    timings = time_interleaved(samplers, rounds) if rounds else ()
    seconds = {s: timing.median for s, timing in zip(runs, timings, strict=False)}
    return Sample(name, size, launches, seconds, work)


_PROMOTE: Mapping[bool, Any] = {True: "internal", False: "flagged"}
"""By whether it is a benchmark case; what the benchmarks ask for."""


def _submits(
    name: str, size: str, queue: fq.FusionQueue
) -> tuple[Callable[[], object], Callable[[Sampler], Sampler]]:
    if name in CASES:
        workload = Workload(CASES[name], int(size), queue)
        return submit_chain(workload, workload.internal_buffers()), lambda sample: sample
    program = PROGRAMS[name.partition("/")[0]]
    form = next(f for f in program.forms if f.name == name.partition("/")[2])
    extents = next(n for which, n in program.sizes.items() if which == size)
    of_corpus = CorpusWorkload(Problem(program, extents), form, queue)
    return of_corpus.submit, of_corpus.restoring


if __name__ == "__main__":
    print(json.dumps(to_json(measure(sys.argv[2], sys.argv[3], int(sys.argv[1])))))
