"""From the start of a process to its first fusion's result, with an empty and with a filled disk
cache, split by phase."""

from __future__ import annotations

from statistics import median
from tempfile import TemporaryDirectory

from fusionq.benchmarks.first_fusion import PHASES, measure_in_child
from fusionq.benchmarks.results import Measurement, SpecialResult

NAME = "warm_start"
DESCRIPTION = (
    "process start to the first result, the four-kernel example at 1,000 elements: "
    "empty disk cache (cold), then the same again (warm)"
)

Sample = dict[str, float]


def run_warm_start(device: str | None, rounds: int) -> SpecialResult:
    """Medians over ``rounds`` pairs of fresh processes, each pair with a cache of its own.

    One more pair runs before, so that Python's bytecode and the system's file cache are there
    for all.
    """
    pairs = [_measure_pair(device) for _ in range(rounds + 1)][1:]
    measurements = []
    for phase in (*PHASES, "total"):
        for temperature in (0, 1):
            seconds = [pair[temperature][phase] for pair in pairs if phase in pair[temperature]]
            if seconds:
                name = f"{phase}_{('cold', 'warm')[temperature]}_seconds"
                measurements.append(Measurement(name, median(seconds), PHASES.get(phase, "")))
    ratios = [warm["total"] / cold["total"] for cold, warm in pairs]
    note = "median over the pairs"
    measurements.append(Measurement("warm_to_cold_ratio", median(ratios), note))
    return SpecialResult(NAME, DESCRIPTION, tuple(measurements))


def _measure_pair(device: str | None) -> tuple[Sample, Sample]:
    """The first process to use a cache directory, and the second."""
    with TemporaryDirectory(prefix="fusionq-warm-start-") as directory:
        environment = {"FUSIONQ_CACHE": "on", "FUSIONQ_CACHE_DIR": directory}
        return measure_in_child(device, environment), measure_in_child(device, environment)
