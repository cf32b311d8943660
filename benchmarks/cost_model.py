"""Fits those constants of the cost model that no microbenchmark shows, and says how good it is.

    python -m fusionq.benchmarks.cost_model measure samples.jsonl
    python -m fusionq.benchmarks.cost_model fit samples.jsonl
    python -m fusionq.benchmarks.cost_model report samples.jsonl

``measure`` runs lists as launches and as one persistent kernel, and goes on where it was ended.
``fit`` searches the constants by one half of the lists; it and ``report``, which takes them as they
are, say what the model chooses in each half.  What is fitted stands in
``base.assumptions``, what launches and memory cost is measured on the device each time.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.table import Table

from fusionq.backends.registry import backend_for
from fusionq.base.costs import Costs
from fusionq.base.target import Target
from fusionq.benchmarks.corpus.program import HALVES
from fusionq.benchmarks.cost_samples import ROUNDS, Sample, from_json, measured_samples, to_json
from fusionq.cache.serialise import decode, encode
from fusionq.execution.device_costs import measured_target
from fusionq.planning.cost import FEWEST_STAGES, MARGIN, ListWork, estimate

FITTED = {
    "access_efficiency": (0.3, 1.0),
    "function_seconds": (0.3e-9, 3e-9),
    "serial_seconds": (0.2e-9, 3e-9),
    "serial_slowdown": (1.0, 4.0),
    "start_launches": (1.0, 4.0),
    "interior_speedup": (1.0, 6.0),
    "affinity_speedup": (1.0, 4.0),
}
"""The constants that are searched, each between what makes sense of its description."""
LARGEST_ERROR = 1.5
"""Natural logarithm of the largest error that counts: a list that the model knows nothing of should
not move the others."""
SPREAD = 0.3
"""Of the model's ratios, as a logarithm."""
WEIGHT_OF_TIMES = 0.3
FIRST_STEP, LAST_STEP = 0.5, 0.01
"""Of the coordinate search, in natural logarithms."""


@dataclass(frozen=True)
class Compared:
    """What a sample's list does as one persistent kernel, and its median seconds as that and as
    launches."""

    sample: Sample
    work: ListWork
    sequence: float
    persistent: float


def compared(samples: Iterable[Sample]) -> list[Compared]:
    """The samples that became one persistent kernel."""
    return [
        Compared(s, s.work, s.sequence, s.persistent)
        for s in samples
        if s.work is not None and s.persistent is not None
    ]


def error(sample: Compared, target: Target) -> float:
    """How far the model is from what was measured, as a mean factor's logarithm."""
    found = estimate(sample.work, target)
    apart = math.log(found.sequence / sample.sequence)
    together = math.log(found.persistent / sample.persistent)
    return (min(abs(apart), LARGEST_ERROR) + min(abs(together), LARGEST_ERROR)) / 2


def likely_regret(sample: Compared, target: Target) -> float:
    """What the choice is likely to cost, as a factor's logarithm, if the ratio that the model
    gives is off by a logistic factor of scale ``SPREAD``: a choice that hangs by a hair is half
    wrong, so the search sees which way to go."""
    found = estimate(sample.work, target)
    lead = math.log(found.sequence / (MARGIN * found.persistent)) / SPREAD
    persistent = 1 / (1 + math.exp(-lead))
    gain = math.log(sample.sequence / sample.persistent)
    wrong = 1 - persistent if gain > 0 else persistent
    return wrong * min(abs(gain), LARGEST_ERROR)


def fitted(samples: Sequence[Compared], target: Target) -> Target:
    """``target`` with the constants that fit best, by coordinate search: the times count a little,
    the choices most."""
    asked = [sample for sample in samples if is_considered(sample)]

    def loss(costs: Costs) -> float:
        tried = replace(target, costs=costs)
        times = mean(error(sample, tried) for sample in asked)
        return WEIGHT_OF_TIMES * times + mean(likely_regret(sample, tried) for sample in asked)

    best, least = target.costs, loss(target.costs)
    steps = dict.fromkeys(FITTED, FIRST_STEP)
    while max(steps.values()) > LAST_STEP:
        for name, step in steps.items():
            for factor in (math.exp(step), math.exp(-step)):
                low, high = FITTED[name]
                value = min(max(getattr(best, name) * factor, low), high)
                tried = replace(best, **{name: value})
                if (found := loss(tried)) < least:
                    best, least = tried, found
                    break
            else:
                steps[name] = step * 0.7
    return replace(target, costs=best)


def regret(sample: Compared, target: Target) -> float:
    """How many times the better of the two times the one takes that the model chooses."""
    chosen = estimate(sample.work, target).prefers_persistent
    taken = sample.persistent if chosen and is_considered(sample) else sample.sequence
    return taken / min(sample.sequence, sample.persistent)


def is_considered(sample: Compared) -> bool:
    """Whether the model is asked at all."""
    return sample.sample.launches >= FEWEST_STAGES


def geometric_mean(values: Sequence[float]) -> float:
    """0 for none."""
    return math.exp(mean(map(math.log, values))) if values else 0.0


def summary(samples: Sequence[Compared], target: Target) -> Table:
    """How good the model is by half."""
    table = Table(title="The choice of the model")
    headings = "half", "lists", "error", "regret", "of launches", "of persistent", "wrong by 15 %"
    for heading in headings:
        table.add_column(heading, justify="right")
    for half in HALVES:
        mine = [s for s in samples if s.sample.half == half and is_considered(s)]
        found = [regret(s, target) for s in mine]
        launches = [s.sequence / min(s.sequence, s.persistent) for s in mine]
        persistent = [s.persistent / min(s.sequence, s.persistent) for s in mine]
        table.add_row(
            half, str(len(mine)), f"{mean(error(s, target) for s in mine):.2f}",
            f"{geometric_mean(found):.3f}", f"{geometric_mean(launches):.3f}",
            f"{geometric_mean(persistent):.3f}",
            str(sum(r > 1.15 for r in found)),
        )  # fmt: skip
    return table


def mistakes(samples: Sequence[Compared], target: Target) -> Table:
    """The lists for which the model chooses what takes 15 % longer."""
    table = Table(title="Wrong choices")
    for heading in ("list", "size", "half", "measured", "estimated"):
        table.add_column(heading)
    for sample in sorted(samples, key=lambda s: -regret(s, target)):
        if regret(sample, target) > 1.15:
            found = estimate(sample.work, target)
            table.add_row(
                sample.sample.name, sample.sample.size, sample.sample.half,
                f"{sample.sequence / sample.persistent:.2f}x",
                f"{found.sequence / found.persistent:.2f}x",
            )  # fmt: skip
    return table


def measure_to(path: Path, rounds: int) -> None:
    """Measure the lists that the file does not have; its first line has the device's costs."""
    if not path.exists():
        costs = measured_target(backend_for(None)).costs
        path.write_text(json.dumps(encode(costs)) + "\n", encoding="utf-8")
    lines = path.read_text("utf-8").splitlines()[1:]
    known = {(s.name, s.size) for s in map(from_json, map(json.loads, lines))}
    for sample in measured_samples(known, rounds, lambda text: print(text, file=sys.stderr)):
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(to_json(sample)) + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("command", choices=("measure", "fit", "report"))
    parser.add_argument("samples", type=Path)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args(arguments)
    console = Console()
    if given.command == "measure":
        measure_to(given.samples, given.rounds)
        return
    costs, *lines = given.samples.read_text("utf-8").splitlines()
    samples = compared(from_json(json.loads(line)) for line in lines)
    measured = decode(Costs, json.loads(costs))
    target = backend_for(None).target
    assumed = {name: getattr(target.costs, name) for name in FITTED}
    target = replace(target, costs=replace(measured, **assumed))
    if given.command == "fit":
        target = fitted([s for s in samples if s.sample.half == HALVES[0]], target)
    for name in FITTED:
        console.print(f"{name}: {getattr(target.costs, name):.3g}", markup=False)
    console.print(summary(samples, target), mistakes(samples, target))


if __name__ == "__main__":
    main()
