"""How right the profiler's times are: kernels made to take a known time.

Dependent arithmetic: each turn of a loop needs the result of the one before, so a loop of twice
as many turns takes twice as long, whatever the device.  A long loop, timed by the host, gives the
time of a turn; then regions of known numbers of turns must take what that predicts.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import fusionq as fq
from fusionq.benchmarks.results import Measurement, SpecialResult
from fusionq.kernels.library import Array

NAME = "profiling_accuracy"
DESCRIPTION = "errors of measured times on kernels that take a known time"
LANES = 16
SHORT, LONG = 20_000, 400_000
"""Turns of a loop, for a region of tens of microseconds and one of about a millisecond."""


@fq.kernel
def spin(item: fq.Item, turns: np.int64, out: Array) -> None:
    """``turns`` dependent operations in a region, then three times as many in another."""
    i = item.get_id(0)
    x = out[i]
    with fq.region("once"):
        for _ in range(turns):
            x = x * np.float32(0.999) + np.float32(0.5)
    with fq.region("three times"):
        for _ in range(3 * turns):
            x = x * np.float32(0.999) + np.float32(0.5)
    out[i] = x


@fq.kernel
def uneven(item: fq.NdItem, turns: np.int64, out: Array) -> None:
    """Work-group g takes g + 1 times ``turns``."""
    i = item.get_global_id(0)
    x = out[i]
    for _ in range(turns * (item.get_group().get_group_id(0) + 1)):
        x = x * np.float32(0.999) + np.float32(0.5)
    out[i] = x


def run_profiling_accuracy(queue: fq.FusionQueue, rounds: int) -> SpecialResult:
    """Relative errors; each is the median of ``rounds`` measurements, the least disturbed ones
    being as good as the clock is."""
    found = [*_regions(queue, rounds), *_groups(queue, rounds)]
    return SpecialResult(NAME, DESCRIPTION, tuple(found))


def _host_turn_ns(queue: fq.FusionQueue, rounds: int) -> float:
    """Nanoseconds of a turn, from the host's times of launches of many and few turns."""
    out = fq.Buffer(np.ones(LANES, np.float32))

    def seconds(turns: int) -> float:
        began = time.perf_counter()
        queue.submit(spin, LANES, turns, out).wait()
        return time.perf_counter() - began

    seconds(LONG)
    few, many = (min(seconds(n * LONG) for _ in range(rounds)) for n in (1, 2))
    return (many - few) * 1e9 / (4 * LONG)


def _regions(queue: fq.FusionQueue, rounds: int) -> list[Measurement]:
    turn_ns = _host_turn_ns(queue, rounds)
    out = fq.Buffer(np.ones(LANES, np.float32))
    found = [Measurement("turn_ns", turn_ns, "from the host's clock")]
    for name, turns in (("short", SHORT), ("long", LONG)):
        with fq.profile(queue, compare=False) as p:
            for _ in range(rounds):
                queue.submit(spin, LANES, turns, out)
        regions = {r.name: k for k, r in enumerate(p.timeline.regions)}
        intervals = p.timeline.intervals
        times = {
            key: (intervals["end"] - intervals["start"])[intervals["region"] == regions[key]]
            for key in ("once", "three times")
        }
        once, thrice = (float(np.min(times[key])) for key in ("once", "three times"))
        found += [
            Measurement(f"{name}_region_ns", once),
            Measurement(f"{name}_region_error_share", abs(once / (turns * turn_ns) - 1)),
            Measurement(f"{name}_proportion_error_share", abs(thrice / once / 3 - 1)),
        ]
    return found


def _groups(queue: fq.FusionQueue, rounds: int) -> list[Measurement]:
    """Work-groups of known proportions; what each worker did must add up to the makespan."""
    groups = 8
    out = fq.Buffer(np.ones(groups * LANES, np.float32))
    with fq.profile(queue, compare=False) as p:
        for _ in range(rounds):
            queue.submit(uneven, fq.NdRange((groups * LANES,), (LANES,)), SHORT, out)
    stages = p.timeline.of_kinds("stage")
    durations = stages["end"] - stages["start"]
    best = np.array([durations[stages["instance"] == g].min() for g in range(groups)])
    unit = best[-1] / groups
    errors = np.abs(best / (unit * np.arange(1, groups + 1)) - 1)
    host = [(launch.end_ns - launch.start_ns) for launch in p.timeline.launches]
    sums = p.accounting.table.sum(axis=1)
    path = p.critical_path
    assert path is not None
    return [
        Measurement("uneven_groups_worst_error_share", float(errors.max())),
        Measurement(
            "worker_sums_error_share", float(np.abs(sums / sum(host) - 1).max(initial=0.0))
        ),
        Measurement("critical_path_error_share", abs(path.error)),
    ]


def main() -> None:
    """Print the result for the default device."""
    parser = argparse.ArgumentParser(description=DESCRIPTION)
    parser.add_argument("--rounds", type=int, default=21)
    with fq.FusionQueue() as queue:
        for m in run_profiling_accuracy(queue, parser.parse_args().rounds).measurements:
            sys.stdout.write(f"{m.name:40} {m.value:.4g}  {m.note}\n")


if __name__ == "__main__":
    main()
