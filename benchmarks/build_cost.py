"""Fits the model of what the device's compiler takes for a kernel, and says how good it is.

    python -m fusionq.benchmarks.build_cost measure samples.jsonl
    python -m fusionq.benchmarks.build_cost fit samples.jsonl
    python -m fusionq.benchmarks.build_cost report samples.jsonl

``measure`` builds the kernels of ``benchmarks.build_samples`` and goes on where it was ended.
``fit`` finds the costs, none below zero, whose squared relative errors over one half of the
samples
are the least; it and ``report``, which takes the costs as they stand in ``base.assumptions``, say
how
far predictions are from what each half took.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from fusionq.backends.registry import backend_for
from fusionq.base.costs import BuildCosts
from fusionq.benchmarks.build_samples import BuildSample, measured_samples
from fusionq.benchmarks.corpus.program import HALVES
from fusionq.cache.serialise import decode, encode

NEGLIGIBLE = 0.02
"""Seconds whose relative error does not matter."""

ROUNDS = 3000
"""Of the coordinate descent."""

Numbers = npt.NDArray[np.float64]


def fitted(samples: Sequence[BuildSample]) -> BuildCosts:
    """The costs that fit best: least squares with no cost below zero, by coordinate descent."""
    names = [f.name for f in fields(BuildCosts)]
    units = [BuildCosts(**{n: float(n == name) for n in names}) for name in names]
    measured: Numbers = np.array([sample.seconds for sample in samples])
    weights = 1 / (measured + NEGLIGIBLE)
    matrix: Numbers = np.array([[s.work.seconds(unit) for unit in units] for s in samples])
    matrix *= weights[:, np.newaxis]
    gram, target = matrix.T @ matrix, matrix.T @ (measured * weights)
    costs = np.zeros(len(names))
    for _ in range(ROUNDS):
        for k in range(len(names)):
            if gram[k, k]:
                costs[k] = max(costs[k] - (gram[k] @ costs - target[k]) / gram[k, k], 0.0)
    return BuildCosts(**dict(zip(names, costs.tolist(), strict=True)))


def factors(samples: Sequence[BuildSample], costs: BuildCosts) -> Numbers:
    """How many times a prediction is the measured seconds, or they it, whichever is more."""
    predicted: Numbers = np.array([s.work.seconds(costs) for s in samples])
    measured: Numbers = np.array([s.seconds for s in samples])
    return np.maximum(predicted / measured, measured / predicted)


def summary(samples: Sequence[BuildSample], costs: BuildCosts) -> Table:
    """How far predictions are off, by half and kind of sample."""
    table = Table(title="Predicted against measured, or the other way round, times")
    for heading in ("half", "kernels of", "kernels", "median", "90 %", "most"):
        table.add_column(heading)
    for half in HALVES:
        for kind in ("all", *dict.fromkeys(s.kind for s in samples)):
            mine = [s for s in samples if s.half == half and kind in ("all", s.kind)]
            if mine:
                off = factors(mine, costs)
                numbers = np.median(off), np.quantile(off, 0.9), off.max()
                table.add_row(half, kind, str(len(mine)), *(f"{n:.2f}" for n in numbers))
    return table


def cost_table(costs: BuildCosts) -> Table:
    """The costs by name."""
    table = Table(title="Seconds")
    for heading in ("cost", "seconds"):
        table.add_column(heading)
    for field in fields(costs):
        table.add_row(field.name, f"{getattr(costs, field.name):.3g}")
    return table


def read(path: Path) -> list[BuildSample]:
    """The samples of a file; none where there is no file."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [decode(BuildSample, json.loads(line)) for line in lines]


def measure_to(path: Path) -> None:
    """Measure the samples that the file does not have."""
    known = {sample.name for sample in read(path)}
    for sample in measured_samples(known, lambda text: print(text, file=sys.stderr)):
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(encode(sample)) + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("command", choices=("measure", "fit", "report"))
    parser.add_argument("samples", type=Path)
    given = parser.parse_args(arguments)
    if given.command == "measure":
        measure_to(given.samples)
        return
    samples = read(given.samples)
    costs = backend_for(None).target.build
    console = Console()
    if given.command == "fit":
        costs = fitted([sample for sample in samples if sample.half == "fit"])
        console.print(cost_table(costs))
    console.print(summary(samples, costs))


if __name__ == "__main__":
    main()
