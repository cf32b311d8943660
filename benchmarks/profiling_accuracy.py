"""How right the profiler's times are: kernels made to take a known time.

Dependent arithmetic: each turn of a loop needs the result of the one before, so its time is its
number of turns times that of a turn, which is the processor's latency.  What a turn takes is
measured without the device: the same arithmetic in a C loop, by the host's clock, at two lengths,
whose difference holds nothing but turns.  In a second, less exact way the same kernels are timed
by the host's clock, not instrumented, alone on one worker, at three lengths.  All these and the
profiled launches take turns in random order, so that a machine that changes its speed changes all
of them.  Of each kind the least time counts: whatever else the machine does only adds to it.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import fusionq as fq
from fusionq.benchmarks.baselines.c_openmp import compiler
from fusionq.benchmarks.known_time import consume, produce, spin, uneven
from fusionq.benchmarks.timing import SETTLE_SECONDS
from fusionq.profiling.profiles import Profile
from fusionq.profiling.timeline import TILE_BITS, Intervals

DESCRIPTION = "times that the profiler gives against those that kernels were made to take"
LANES = 16
SHORT, LONG = 20_000, 100_000
"""Turns of a loop, for regions of some tens and some hundreds of microseconds: short enough to
find moments in which nothing else runs."""
LENGTHS = (1, 2, 3)
"""Of the launches without a profiler, in ``LONG`` turns, or in ``DELAY``."""
LOOP = """
typedef float lanes __attribute__((vector_size(64)));
float turns(long count, float x) {
    lanes v = {x};
    for (long k = 0; k < count; k++) v = v * 0.999f + 0.5f;
    return v[0];
}
"""
"""As many lanes as the kernels have: processors run at another speed with other vectors."""
LOOPS = 8
"""C loops of each length in a round, of ``SHORT`` and a quarter of that many turns."""
BATCH = 4
"""So many of them are timed together, since the end of a wait comes late by some microseconds."""
GROUPS = 8
ITEMS = 1 << 18
DELAY = 400_000
"""Turns of the delayed tile."""

Recording: TypeAlias = Callable[[], AbstractContextManager[None]]
Launch: TypeAlias = Callable[[], fq.Event]


@dataclass(frozen=True)
class Row:
    """A line of the result: what was asked for and what the profiler gave, in ``unit``, and by
    which part of the former they may differ; None: as the machine is busy."""

    name: str
    asked: float
    measured: float
    unit: str
    allowed: float | None

    @property
    def error(self) -> float:
        """The difference, as a part of what was asked for."""
        return abs(self.measured / self.asked - 1)

    @property
    def is_wrong(self) -> bool:
        """Whether they differ by more than is allowed."""
        return self.allowed is not None and self.error > self.allowed

    def __str__(self) -> str:
        verdict = f"  MORE THAN {self.allowed:.0%}" if self.is_wrong else ""
        numbers = f"{self.asked:>12,.1f} {self.measured:>12,.1f} {self.unit:5} {self.error:>7.2%}"
        return f"{self.name:44} {numbers}{verdict}"


# -------------------------------------------------------------------------------- measuring
@contextmanager
def _profile(queue: fq.FusionQueue) -> Any:
    """A profile that sees only what runs in blocks of the recording that is given."""
    launcher = queue._state.launcher
    with fq.profile(queue, compare=False, every=1) as p:
        profiler = launcher.profiler
        launcher.profiler = None

        @contextmanager
        def recording() -> Any:
            launcher.profiler = profiler
            try:
                yield
            finally:
                launcher.profiler = None

        try:
            yield p, recording
        finally:
            launcher.profiler = profiler


def _seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


@dataclass(frozen=True)
class Times:
    """``host``: seconds by the host's clock of each round of each run.  ``order``: the names of
    the runs, as they were made."""

    host: Mapping[str, npt.NDArray[np.float64]]
    order: Sequence[str]


def _interleaved(runs: Mapping[str, Callable[[], object]], rounds: int) -> Times:
    """Time each run once a round, in a new random order each round; and once before."""
    names = list(runs)
    made = list(runs)
    for run in runs.values():
        run()
    host: dict[str, list[float]] = {name: [] for name in runs}
    shuffle = random.Random(0).shuffle
    for _ in range(rounds):
        shuffle(names)
        for name in names:
            if "loop" not in name:
                time.sleep(SETTLE_SECONDS)
            host[name].append(_seconds(runs[name]))
        made += names
    return Times({name: np.array(values) for name, values in host.items()}, made)


def _batch(launch: Launch) -> Callable[[], None]:
    """``BATCH`` launches and a wait for the last."""

    def run() -> None:
        for _ in range(BATCH):
            event = launch()
        event.wait()

    return run


def _alone(launch: Callable[[int], fq.Event]) -> dict[str, Callable[[], None]]:
    """Batches of each of ``LENGTHS``."""
    return {f"alone {n}": _batch(partial(launch, n)) for n in LENGTHS}


def _host_loop() -> dict[str, Callable[[], object]]:
    """The arithmetic of the kernels as a C loop of two lengths."""
    with tempfile.TemporaryDirectory(prefix="fusionq-bench-") as folder:
        library = Path(folder) / "loop.so"
        flags = ("-O2", "-march=native", "-ffp-contract=off", "-shared", "-fPIC")
        command = [compiler(), *flags, "-x", "c", "-", "-o", str(library)]
        subprocess.run(command, input=LOOP, text=True, check=True)
        turns = ctypes.CDLL(str(library)).turns
    turns.argtypes, turns.restype = [ctypes.c_long, ctypes.c_float], ctypes.c_float
    lengths = {"short": SHORT // 4, "long": SHORT}
    return {
        f"{name} loop {k}": partial(turns, n, 1)
        for name, n in lengths.items()
        for k in range(LOOPS)
    }


def _turn_ns(times: Times) -> float:
    """Nanoseconds of a turn, from the C loop."""
    short, long = (
        min(float(times.host[f"{name} loop {k}"].min()) for k in range(LOOPS))
        for name in ("short", "long")
    )
    return (long - short) * 1e9 / (SHORT - SHORT // 4)


def _alone_rows(times: Times, turns: int) -> list[Row]:
    """What one of ``LENGTHS``, of ``turns``, takes more than the one before, by the host."""
    least = [times.host[f"alone {n}"].min() * 1e6 / BATCH for n in LENGTHS]
    asked = turns * _turn_ns(times) / 1e3
    return [
        Row(f"not profiled: {turns:,} turns more", asked, float(step), "µs", None)
        for step in np.diff(least)
    ]


def _recorded(p: Profile, times: Times, names: Sequence[str]) -> dict[str, list[int]]:
    """The positions of the launches of the recorded runs ``names``, but for the first of each,
    which touches code and memory for the first time."""
    launches = p.timeline.launches
    sequence = sorted(range(len(launches)), key=lambda k: launches[k].submitted_ns)
    made = [name for name in times.order if name in names]
    assert len(made) == len(sequence)
    found: dict[str, list[int]] = {name: [] for name in names}
    for name, position in zip(made, sequence, strict=True):
        found[name].append(position)
    return {name: positions[1:] for name, positions in found.items()}


def _of_launch(p: Profile, launch: int) -> Intervals:
    found: Intervals = p.timeline.intervals
    return np.compress(found["launch"] == launch, found)


def _durations(intervals: Intervals) -> npt.NDArray[np.int64]:
    durations: npt.NDArray[np.int64] = intervals["end"] - intervals["start"]
    return durations


# ------------------------------------------------------------------------------------ regions
def regions(queue: fq.FusionQueue, rounds: int) -> list[Row]:
    """Regions inside a work-item."""
    out = fq.Buffer(np.ones(LANES, np.float32))
    lengths = {"short": SHORT, "long": LONG}

    def launch(turns: int) -> fq.Event:
        return queue.submit(spin, LANES, turns, out)

    with _profile(queue) as (p, recording):

        def recorded(turns: int) -> None:
            with recording():
                launch(turns).wait()

        runs: dict[str, Callable[[], object]] = {
            name: partial(recorded, turns) for name, turns in lengths.items()
        }
        # A launch has four times as many turns as its first region.
        alone = _alone(lambda n: launch(n * LONG // 4))
        times = _interleaved({**_host_loop(), **alone, **runs}, rounds)
    turn_us = _turn_ns(times) / 1e3
    launches = _recorded(p, times, list(lengths))
    names = [r.name for r in p.timeline.regions]
    rows = _alone_rows(times, LONG)
    for length, turns in lengths.items():
        for name, factor in (("once", 1), ("three times", 3)):
            number = names.index(name)
            least = min(
                int(_durations(run[run["region"] == number])[0])
                for run in (_of_launch(p, k) for k in launches[length])
            )
            asked = factor * turns * turn_us
            rows.append(Row(f"region of {turns * factor:,} turns", asked, least / 1e3, "µs", 0.02))
    return rows


# ----------------------------------------------------------------------------- imbalanced tiles
def imbalanced(queue: fq.FusionQueue, rounds: int) -> list[Row]:
    """Work-groups of one launch that take 1 to GROUPS times as long."""
    out = fq.Buffer(np.ones(GROUPS * LANES, np.float32))

    def launch(turns: int, groups: int) -> fq.Event:
        return queue.submit(uneven, fq.NdRange((groups * LANES,), (LANES,)), turns, out)

    with _profile(queue) as (p, recording):

        def recorded(turns: int) -> None:
            with recording():
                launch(turns, GROUPS).wait()

        runs: dict[str, Callable[[], object]] = {
            "empty": lambda: recorded(0), "full": lambda: recorded(SHORT),
        }  # fmt: skip
        alone = _alone(lambda n: launch(n * LONG, 1))
        times = _interleaved({**_host_loop(), **alone, **runs}, rounds)
    unit_us = SHORT * _turn_ns(times) / 1e3
    full = _recorded(p, times, list(runs))["full"]
    rows = _alone_rows(times, LONG)
    for g in range(GROUPS):
        least = min(
            int(_durations(run[run["instance"] == g])[0])
            for run in (_of_launch(p, k) for k in full)
        )
        asked = unit_us * (g + 1)
        rows.append(Row(f"work-group of {SHORT * (g + 1):,} turns", asked, least / 1e3, "µs", 0.02))
    return [*rows, *_sums("imbalanced work-groups", p)]


def _sums(what: str, p: Profile) -> list[Row]:
    """Each worker's records, one after the other, against the makespans: they must not overlap,
    and the accounts must give each nanosecond once."""
    table, timeline = p.accounting.table, p.timeline
    accounted = timeline.accounted()
    makespan = float(sum(one.makespan_ns for one in timeline.launches)) / 1e3
    rows = []
    for worker in range(timeline.workers):
        mine = np.sort(accounted[accounted["worker"] == worker], order=["start", "end"])
        recorded = _durations(mine).sum() / 1e3
        gaps = 0.0
        for number, one in enumerate(timeline.launches):
            inside = mine[mine["launch"] == number]
            edges = np.concatenate(([one.start_ns], inside["end"]))
            following = np.concatenate((inside["start"], [one.end_ns]))
            gaps += np.maximum(following - np.maximum.accumulate(edges), 0).sum() / 1e3
        name = f"{what}: records and gaps of worker {worker}"
        rows.append(Row(name, makespan, float(recorded + gaps), "µs", 0.01))
        name = f"{what}: accounts of worker {worker}"
        rows.append(Row(name, makespan, float(table[worker].sum()) / 1e3, "µs", 0.01))
    return rows


# ----------------------------------------------------------------------------- delayed producer
def delayed_producer(queue: fq.FusionQueue, rounds: int) -> list[Row]:
    """A persistent kernel one of whose tiles takes long; everybody has to wait for it."""
    slow_item = ITEMS // 2 + 1000
    made, out = fq.Buffer(ITEMS, np.float32), fq.Buffer(ITEMS, np.float32)
    turns = {}
    for n in LENGTHS:
        one = np.zeros(ITEMS, np.int64)
        one[slow_item] = n * DELAY
        turns[n] = fq.Buffer(one)

    def fused(length: int) -> fq.Fusion:
        with fq.fusion(queue, strategy="megakernel") as fusion:
            queue.submit(produce, ITEMS, turns[length], made)
            queue.submit(consume, ITEMS, made, out)
        fusion.event.wait()
        assert fusion.report.strategy == "megakernel"
        return fusion

    fusions = {length: fused(length) for length in turns}

    with _profile(queue) as (p, recording):

        def recorded(length: int) -> None:
            with recording():
                fused(length)

        runs: dict[str, Callable[[], object]] = {
            f"recorded {n}": partial(recorded, n) for n in (1, 2)
        }
        alone = _alone(lambda n: fusions[n].replay())
        times = _interleaved({**_host_loop(), **alone, **runs}, rounds)
    delay_us = DELAY * _turn_ns(times) / 1e3
    kinds = np.array([r.kind for r in p.timeline.regions])
    everything = p.timeline.intervals
    rows = _alone_rows(times, DELAY)
    waits = right = 0
    for name, launches in _recorded(p, times, list(runs)).items():
        tiles: list[float] = []
        waited: list[tuple[float, float, float]] = []
        for run in (_of_launch(p, k) for k in launches):
            work, waiting = (run[kinds[run["region"]] == kind] for kind in ("stage", "wait"))
            producers = work[work["instance"] >> TILE_BITS == 0]
            tile = slow_item // -(-ITEMS // len(producers))
            (slow,) = producers[producers["instance"] == tile]
            usual = float(np.median(_durations(producers)))  # what it has to do besides
            tiles.append((float(slow["end"] - slow["start"]) - usual) / 1e3)
            begin = np.maximum(waiting["start"], slow["start"])
            end = np.minimum(waiting["end"], slow["end"])
            for wait in waiting[end - begin > delay_us * 1e3 / 4]:
                culprit = int(everything[wait["producer"]]["instance"])
                waits += 1
                right += culprit == tile
                left = float(slow["end"] - wait["start"])
                duration = float(wait["end"] - wait["start"])
                waited.append((duration - left, duration, left))
        delay = int(name[-1]) * delay_us
        rows.append(Row(f"tile delayed by {delay:,.0f} µs", delay, min(tiles), "µs", 0.02))
        if waited:
            _, duration, left = min(waited)
            rows.append(
                Row("… what was left, and the wait", left / 1e3, duration / 1e3, "µs", 0.02)
            )
    return [
        *rows,
        Row("waits during the delays, and by whose fault", waits, right, "", 0.01),
        *_sums("delayed producer", p),
    ]


CASES: dict[str, Callable[[fq.FusionQueue, int], Sequence[Row]]] = {
    "regions": regions,
    "imbalanced": imbalanced,
    "delayed_producer": delayed_producer,
}


def main() -> None:
    """Print the table for the default device; exit status 1 where an error is more than allowed."""
    parser = argparse.ArgumentParser(description=DESCRIPTION)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], help="default: all")
    parser.add_argument("--rounds", type=int, default=201)
    given = parser.parse_args()
    sys.stdout.write(f"{'':44} {'asked':>12} {'measured':>12} {'':5} {'error':>7}\n")
    wrong = False
    with fq.FusionQueue() as queue:
        for name in given.cases or CASES:
            for row in CASES[name](queue, given.rounds):
                sys.stdout.write(f"{row}\n")
                sys.stdout.flush()
                wrong |= row.is_wrong
    sys.exit(int(wrong))


if __name__ == "__main__":
    main()
