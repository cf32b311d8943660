"""What planning long lists takes: seconds by part, and memory, by family and length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fusionq.benchmarks.child import run_child
from fusionq.benchmarks.planning_lists import FAMILIES
from fusionq.benchmarks.results import Measurement, SpecialResult

NAME = "planning"
DESCRIPTION = "planning long lists, without the device's compiler"
LENGTHS = (1_000, 10_000)

PARTS = {
    "submit_seconds": "frontend, checks and recording of all submissions",
    "analysis_seconds": "dependences, stages, in integer sets",
    "passes_seconds": "fusion, promotion, verification",
    "source_seconds": "IR → OpenCL C, of each kernel once",
    "planned_seconds": "all of these",
    "write_entry_seconds": "into the disk cache",
    "read_entry_seconds": "out of it, as a second process does",
    "entry_bytes": "in the disk cache",
    "report_seconds": "the report's text",
    "peak_growth_bytes": "of the process's resident memory, from before the first submission",
    "unfused_seconds": "the same list one by one, with the builds of its kernels",
    "launches": "of the plan",
    "kernels": "that differ",
}
"""What the child process measures, and what that is."""


def run_planning(
    device: str | None,
    lengths: Sequence[int] = LENGTHS,
    families: Sequence[str] = tuple(FAMILIES),
    doing: Callable[[str], object] = lambda what: None,
) -> Iterator[SpecialResult]:
    """A result for each family and length, in a process of its own; ``doing`` is told which one
    comes next."""
    for family in families:
        for length in lengths:
            what = f"{family}, {length:,} submissions"
            doing(what)
            arguments = [family, str(length), *([device] if device else [])]
            found = run_child("planning_child.py", *arguments)
            notes = {**PARTS, "launches": f"{PARTS['launches']}; strategy {found['strategy']}"}
            measured = [Measurement(name, found[name], note) for name, note in notes.items()]
            yield SpecialResult(NAME, what, tuple(measured))
