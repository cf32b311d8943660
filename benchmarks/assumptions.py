"""How much the assumed values of a target matter: times with half and twice of each.

    python -m fusionq.benchmarks.assumptions [FIELD]...

For each field, the cases run as persistent kernels with the assumed value divided and multiplied by
two and by four; interleaved, as parts of the time that the assumed value gives.  Where nothing
changes, the value does not matter for these cases; where a column is well below 1, another value
would be better.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.table import Table

import fusionq as fq
from fusionq.base.assumptions import ASSUMED
from fusionq.base.target import Target
from fusionq.benchmarks.case import Workload
from fusionq.benchmarks.cases import CASES
from fusionq.benchmarks.timing import back_to_back, time_interleaved
from fusionq.benchmarks.variants import submit_chain

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
ROUNDS = 7
LISTS = (
    ("stencil_1d", 1 << 22), ("stencil_2d", 1 << 22), ("stencil_3d", 1 << 22),
    ("stencil_1d_in_cache", 1 << 14), ("stencil_2d_in_cache", 1 << 18),
    ("stencil_2d_in_cache", 1 << 20), ("stencil_3d_in_cache", 1 << 18),
    ("softmax", 1 << 22), ("rms_norm", 1 << 24), ("layer_norm", 1 << 20), ("mlp_vector", 1024),
)  # fmt: skip
TILES = (
    "worker_cache_bytes", "cache_bytes", "smallest_tile", "pipelined_tile", "unequal_tile",
    "largest_tile", "small_stage", "tiles_per_worker", "shortest_block",
)  # fmt: skip
"""The fields that tiling reads."""


def scaled(target: Target, field: str, factor: float) -> Target:
    """``target`` with another value of a field."""
    value = getattr(target, field) * factor
    return replace(target, **{field: max(round(value), 1)})


def sweep(field: str) -> Table:
    """The times by factor for each list."""
    table = Table(title=f"{field}: time with so many times the assumed value")
    for heading in ("list", "size", *(f"{factor:g}" for factor in FACTORS)):
        table.add_column(heading, justify="right")
    for name, size in LISTS:
        ratios = times(name, size, field)
        table.add_row(name, f"{size:,}", *(f"{ratio:.2f}" for ratio in ratios))
    return table


def times(name: str, size: int, field: str) -> list[float]:
    """Median times of a case by factor, as parts of that by 1."""
    with fq.FusionQueue() as queue:
        backend = queue._state.launcher.backend
        target = backend.target
        workload = Workload(CASES[name], size, queue)
        chain = submit_chain(workload, workload.internal_buffers())
        fusions = []
        for factor in FACTORS:
            backend.target = scaled(target, field, factor)
            with fq.fusion(queue, strategy="megakernel", promote="internal") as fusion:
                chain()
            fusions.append(fusion)
        backend.target = target
        samplers = [back_to_back(fusion.replay) for fusion in fusions]
        medians = [timing.median for timing in time_interleaved(samplers, ROUNDS)]
    return [seconds / medians[FACTORS.index(1.0)] for seconds in medians]


def main(fields: Sequence[str]) -> None:
    """A table for each field."""
    unknown = [field for field in fields if field not in ASSUMED]
    if unknown:
        sys.exit(f"nothing is assumed of {', '.join(unknown)}")
    for field in fields or TILES:
        Console().print(sweep(field))


if __name__ == "__main__":
    main(sys.argv[1:])
