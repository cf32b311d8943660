"""Peak memory of the promoted run, in a process of its own."""

from __future__ import annotations

from fusionq.benchmarks.child import run_child
from fusionq.benchmarks.results import Measurement, SpecialResult

NAME = "peak_memory"
DESCRIPTION = "memory of the fused and promoted four-kernel example"
SIZE = 100_000_000


def run_peak_memory(device: str | None, size: int) -> SpecialResult:
    """Bytes that buffers have allocated, and the growth of the process's peak resident memory
    from before the first buffer, against four inputs and one output."""
    found = run_child("peak_memory_child.py", str(size), *([device] if device else []))
    needed = 5 * 4 * size
    return SpecialResult(
        NAME,
        f"{DESCRIPTION}, {size:,} elements",
        (
            Measurement("four_inputs_and_one_output_bytes", needed),
            Measurement("allocated_by_buffers_bytes", found["allocated_bytes"]),
            Measurement("temporaries_bytes", found["temporaries_bytes"], "promoted: none"),
            Measurement("peak_resident_growth_bytes", found["growth_bytes"], "whole process"),
            Measurement("growth_to_needed_ratio", found["growth_bytes"] / needed),
        ),
    )
