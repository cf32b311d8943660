"""What stage-level profiling costs: the same launches with records and without, interleaved."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import fusionq as fq
from fusionq.benchmarks.case import Workload
from fusionq.benchmarks.cases import CASES
from fusionq.benchmarks.results import Measurement, SpecialResult
from fusionq.benchmarks.timing import SETTLE_SECONDS
from fusionq.benchmarks.variants import Strategy, submit_chain

NAME = "profiling_overhead"
DESCRIPTION = "time of profiled launches over that of the same launches without records"
SAMPLE_SECONDS = 0.02
MOST_RUNS = 32
"""Launches in a sample; their records are dropped between the samples."""


@dataclass(frozen=True)
class Overhead:
    """A case to measure; ``strategy`` None: fused with promoted temporaries."""

    case: str
    size: int
    strategy: Strategy | None = None


CASES_MEASURED = (
    Overhead("seeds", 100_000_000),
    Overhead("seeds", 10_000_000),
    Overhead("seeds", 1_000_000),
    Overhead("activation_chain", 10_000_000),
    Overhead("group_neighbours", 16_777_216),
    *(
        Overhead(case.name, size, "megakernel")
        for case in CASES.values()
        if case.compare == "strategies"
        for size in case.sizes
    ),
)


def run_profiling_overhead(
    queue: fq.FusionQueue, rounds: int, cases: Sequence[Overhead] = CASES_MEASURED
) -> SpecialResult:
    """The median over ``rounds`` of ratios: a sample with records over the geometric mean of the
    two without that the round also has.

    ``_cpu``: of the process's CPU time instead of the clock on the wall; it says the same on a
    quiet machine, and more on a busy one.
    """
    found = []
    for overhead in cases:
        name = "_".join([overhead.case, str(overhead.size), *filter(None, [overhead.strategy])])
        wall, cpu, null, strategy = _measure(queue, overhead, rounds)
        found += [
            Measurement(f"{name}_ratio", wall, strategy),
            Measurement(f"{name}_cpu_ratio", cpu),
            Measurement(f"{name}_null_ratio", null, "no records in either sample"),
        ]
    return SpecialResult(NAME, DESCRIPTION, tuple(found))


def _measure(
    queue: fq.FusionQueue, overhead: Overhead, rounds: int
) -> tuple[float, float, float, str]:
    workload = Workload(CASES[overhead.case], overhead.size, queue)
    buffers = workload.promoted_buffers() if overhead.strategy is None else workload.buffers
    submit = submit_chain(workload, buffers)

    def fuse() -> fq.Fusion:
        with fq.fusion(queue, strategy=overhead.strategy or "auto") as fusion:
            submit()
        fusion.event.wait()
        return fusion

    plain = fuse()
    with fq.profile(queue, compare=False):
        profiled = fuse()
        for _ in range(2):  # the second time with as many records as are worth it
            profiled.replay().wait()
        profiler = queue._state.launcher.profiler
        recorded = profiled._list.run if profiled._list is not None else None
        queue._state.launcher.profiler = None  # what has been recorded is read between the samples

        def off() -> fq.Event:
            return plain.replay()

        def on() -> fq.Event:
            assert recorded is not None
            return fq.Event(recorded.launch(())[1])

        def between() -> None:
            recorded.discard()  # type: ignore[union-attr]  # a ProfiledRun

        samples = _interleaved((off, on, off), between, rounds)
        queue._state.launcher.profiler = profiler
    workload.spoil()
    plain.replay().wait()
    workload.check(bit_for_bit=True)
    (off, on, off_again), cpu = samples[..., 0].T, np.median(samples[..., 1], axis=0)
    return (
        float(np.median(on / np.sqrt(off * off_again))),
        float(cpu[1] / np.sqrt(cpu[0] * cpu[2])),
        float(np.median(off_again / off)),
        plain.report.strategy,
    )


def _interleaved(
    starts: Sequence[Callable[[], fq.Event]], between: Callable[[], None], rounds: int
) -> np.ndarray[tuple[int, int, int], np.dtype[np.float64]]:
    """(round, start, wall and CPU seconds a run), in a new random order each round."""
    began = time.perf_counter()
    starts[0]().wait()
    once = time.perf_counter() - began
    runs = max(1, min(MOST_RUNS, round(SAMPLE_SECONDS / max(once, 1e-6))))
    samples = np.zeros((rounds, len(starts), 2))
    order = list(range(len(starts)))
    shuffle = random.Random(0).shuffle
    for round_ in range(rounds):
        shuffle(order)
        for which in order:
            between()
            time.sleep(SETTLE_SECONDS)
            starts[which]().wait()
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(runs):
                event = starts[which]()
            event.wait()
            samples[round_, which] = time.perf_counter() - wall, time.process_time() - cpu
    return samples / runs


def main() -> None:
    """Print the result for the default device."""
    parser = argparse.ArgumentParser(description=DESCRIPTION)
    parser.add_argument("cases", nargs="*", help="names of cases; default: all")
    parser.add_argument("--rounds", type=int, default=31)
    given = parser.parse_args()
    with fq.FusionQueue() as queue:
        for overhead in CASES_MEASURED:
            if given.cases and overhead.case not in given.cases:
                continue
            result = run_profiling_overhead(queue, given.rounds, [overhead])
            for m in result.measurements:
                sys.stdout.write(f"{m.name:50} {m.value:.3f}  {m.note}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
