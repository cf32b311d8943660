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
from fusionq.benchmarks.gpu import by_events, is_gpu
from fusionq.benchmarks.results import Measurement, SpecialResult
from fusionq.benchmarks.timing import SETTLE_SECONDS, Sampler, Start, back_to_back
from fusionq.benchmarks.variants import Strategy, submit_chain

NAME = "profiling_overhead"
DESCRIPTION = "time of profiled launches over that of the same launches without records"
SAMPLE_SECONDS = 0.02
MOST_RUNS = 32
"""Launches in a sample, at most, and as many as there is room for records of: these are dropped
between the samples."""


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


LONG_ENOUGH_ON_GPUS = 10_000_000
"""Elements from which on a launch takes a GPU longer than the host."""


def cases_for(queue: fq.FusionQueue) -> list[Overhead]:
    """Those of ``CASES_MEASURED`` that the queue's device can measure: on a GPU a launch that
    records is no CUDA graph, so that a short one takes the host's time."""
    if not is_gpu(queue):
        return list(CASES_MEASURED)
    return [case for case in CASES_MEASURED if case.size >= LONG_ENOUGH_ON_GPUS]


def run_profiling_overhead(
    queue: fq.FusionQueue, rounds: int, cases: Sequence[Overhead] | None = None
) -> SpecialResult:
    """The median over ``rounds`` of ratios: a sample with records over the geometric mean of the
    two without that the round also has.

    ``_cpu``: of the process's CPU time instead of the clock on the wall; it says the same on a
    quiet machine, and more on a busy one.  On a GPU the first is by CUDA events, and the second of
    the host alone.
    """
    found = []
    for overhead in cases_for(queue) if cases is None else cases:
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

        sampler = by_events(queue) if is_gpu(queue) else back_to_back
        room = recorded.depth  # type: ignore[union-attr]  # a ProfiledRun
        samples = _interleaved((off, on, off), sampler, between, rounds, min(MOST_RUNS, room))
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
    starts: Sequence[Callable[[], fq.Event]],
    sampler: Callable[[Start], Sampler],
    between: Callable[[], None],
    rounds: int,
    most: int,
) -> np.ndarray[tuple[int, int, int], np.dtype[np.float64]]:
    """(round, start, wall and CPU seconds a run), in a new random order each round; a sample has
    ``most`` runs at most."""
    samplers = [sampler(start) for start in starts]
    began = time.perf_counter()
    starts[0]().wait()
    once = time.perf_counter() - began
    runs = max(1, min(most, round(SAMPLE_SECONDS / max(once, 1e-6))))
    samples = np.zeros((rounds, len(starts), 2))
    order = list(range(len(starts)))
    shuffle = random.Random(0).shuffle
    for round_ in range(rounds):
        shuffle(order)
        for which in order:
            between()
            time.sleep(SETTLE_SECONDS)
            starts[which]().wait()
            between()
            cpu = time.process_time()
            wall = samplers[which](runs)
            samples[round_, which] = wall, time.process_time() - cpu
    return samples / runs


def main() -> None:
    """Print the result for the default device."""
    parser = argparse.ArgumentParser(description=DESCRIPTION)
    parser.add_argument("cases", nargs="*", help="names of cases; default: all")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--device", help="as of `fusionq bench`; default: the default device")
    given = parser.parse_args()
    with fq.FusionQueue(given.device) as queue:
        for overhead in cases_for(queue):
            if given.cases and overhead.case not in given.cases:
                continue
            result = run_profiling_overhead(queue, given.rounds, [overhead])
            for m in result.measurements:
                sys.stdout.write(f"{m.name:50} {m.value:.3f}  {m.note}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
