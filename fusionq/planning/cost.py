"""Whether a persistent kernel is faster than a launch for each stage: a model of both.

A launch costs ``launch_seconds`` or its work, whichever is longer, since the next one is enqueued
meanwhile.  A persistent kernel costs some launches, as its workers have to be there at once,
the work, and ``instruction_seconds`` for each tile.  The work of a stage is its memory traffic at
the bandwidth of the memory or, if everything fits there, of the caches.  Where tiles wait for few
others, a persistent kernel's traffic between stages stays in the caches even if the arrays do not
fit.  What it computes costs the same on both sides, but where conditions on ids are decided for the
inside of tiles, which no launch does.  All of that is coarse, so ``MARGIN`` asks for more than a
little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fusionq.base.target import Target

FEWEST_STAGES = 4
"""Launches; fewer leave too little to save for what it takes to compile a persistent kernel."""

MARGIN = 1.25
"""How much faster a persistent kernel has to be by the model before it is chosen."""


@dataclass(frozen=True, slots=True)
class StageWork:
    """A stage as the model sees it: work-items, bytes that they read and write, scalar operations
    in all, and whether conditions are decided for the inside of a persistent kernel's tiles."""

    items: int
    bytes: int
    operations: float
    decided: bool


@dataclass(frozen=True, slots=True)
class Estimate:
    """Predicted seconds for the stages as a ``sequence`` of launches and as one ``persistent``
    kernel."""

    sequence: float
    persistent: float

    @property
    def prefers_persistent(self) -> bool:
        """Whether the persistent kernel is faster by enough."""
        return self.persistent * MARGIN < self.sequence

    def __str__(self) -> str:
        ratio = self.sequence / self.persistent
        return (
            f"estimated {self.persistent * 1e6:.0f} µs as one persistent kernel against "
            f"{self.sequence * 1e6:.0f} µs as a sequence of launches ({ratio:.2f}x)"
        )


def estimate(
    stages: Sequence[StageWork],
    memory: int,
    pipelined: bool,
    target: Target,
) -> Estimate:
    """The model for ``stages`` over ``memory`` bytes of arrays in all; ``pipelined``: tiles wait
    for few others."""
    costs, workers = target.costs, target.resident_workers
    fits = memory <= target.kept_bytes
    apart = costs.cache_bandwidth if fits else costs.memory_bandwidth
    within = costs.cache_bandwidth if fits or pipelined else costs.memory_bandwidth
    rate = workers * costs.worker_operations
    sequence = sum(
        max(costs.launch_seconds, stage.bytes / apart, stage.operations / rate) for stage in stages
    )
    faster = costs.interior_speedup
    work = sum(
        max(stage.bytes / within, stage.operations / (rate * (faster if stage.decided else 1)))
        for stage in stages
    )
    if pipelined and not fits:
        work = max(work, 2 * memory / costs.memory_bandwidth)
    tiles = sum(max(min(workers, stage.items), 1) for stage in stages)
    waits = tiles * costs.instruction_seconds
    return Estimate(sequence, costs.start_launches * costs.launch_seconds + work + waits)
