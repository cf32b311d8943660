"""Whether a persistent kernel is faster than a launch for each stage: a model of both.

A launch costs ``launch_seconds`` or its work, whichever is longer, since the next one is enqueued
meanwhile.  A persistent kernel costs one launch, the work, and ``instruction_seconds`` for each
tile.  The work of a stage is its memory traffic at the bandwidth of the memory or, if everything
fits there, of the caches.  Where tiles wait for few others, a persistent kernel's traffic between
stages stays in the caches even if the arrays do not fit.  What it computes costs the same on both
sides.  All of that is coarse, so ``MARGIN`` asks for more than a little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fusionq.ir.nodes import Binary, Const, Expr, For, Kernel, Param, Stmt, While
from fusionq.ir.walk import nested_bodies, statement_expressions, subexpressions

FEWEST_STAGES = 4
"""Launches; fewer leave too little to save for what it takes to compile a persistent kernel."""

OPERATIONS_A_SECOND = 4e10
"""Of one worker, vectors counted by their lanes."""

UNKNOWN_TRIPS = 32.0

MARGIN = 1.25
"""How much faster a persistent kernel has to be by the model before it is chosen."""


@dataclass(frozen=True, slots=True)
class DeviceCosts:
    """What launches and memory cost on a device, measured once (``calibration``): seconds, and
    bytes a second from memory and from the caches."""

    launch_seconds: float
    instruction_seconds: float
    memory_bandwidth: float
    cache_bandwidth: float
    cache_bytes: int


@dataclass(frozen=True, slots=True)
class StageWork:
    """A stage as the model sees it: work-items, bytes that they read and write, and
    scalar operations in all."""

    items: int
    bytes: int
    operations: float


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
    workers: int,
    costs: DeviceCosts,
) -> Estimate:
    """The model for ``stages`` over ``memory`` bytes of arrays in all; ``pipelined``: tiles wait
    for few others."""
    fits = memory <= costs.cache_bytes
    apart = costs.cache_bandwidth if fits else costs.memory_bandwidth
    within = costs.cache_bandwidth if fits or pipelined else costs.memory_bandwidth
    rate = workers * OPERATIONS_A_SECOND
    sequence = sum(
        max(costs.launch_seconds, stage.bytes / apart, stage.operations / rate) for stage in stages
    )
    work = sum(max(stage.bytes / within, stage.operations / rate) for stage in stages)
    if pipelined and not fits:
        work = max(work, 2 * memory / costs.memory_bandwidth)
    tiles = sum(max(min(workers, stage.items), 1) for stage in stages)
    waits = tiles * costs.instruction_seconds
    return Estimate(sequence, costs.launch_seconds + work + waits)


def operations(kernel: Kernel, values: Mapping[str, int]) -> float:
    """Scalar operations of one work-item: every expression once, those in loops as often as the
    loops run where ``values``, of the integer parameters, tell, else ``UNKNOWN_TRIPS`` times."""
    return _operations(kernel.body, values)


def _operations(body: Sequence[Stmt], values: Mapping[str, int]) -> float:
    total = 0.0
    for stmt in body:
        total += sum(1 for e in statement_expressions(stmt) for _ in subexpressions(e))
        trips = 1.0
        if isinstance(stmt, For):
            ends = [_known(e, values) for e in (stmt.start, stmt.stop, stmt.step)]
            start, stop, step = ends
            if start is None or stop is None or not step:
                trips = UNKNOWN_TRIPS
            else:
                trips = len(range(start, stop, step))
        elif isinstance(stmt, While):
            trips = UNKNOWN_TRIPS
        total += trips * sum(_operations(inner, values) for inner in nested_bodies(stmt))
    return total


def _known(expr: Expr, values: Mapping[str, int]) -> int | None:
    match expr:
        case Const():
            return int(expr.value)
        case Param():
            return values.get(expr.name)
        case Binary(_, "add" | "sub" | "mul" | "floordiv" as op, lhs, rhs):
            a, b = _known(lhs, values), _known(rhs, values)
            if a is None or b is None or (op == "floordiv" and b == 0):
                return None
            return {"add": a + b, "sub": a - b, "mul": a * b, "floordiv": a // (b or 1)}[op]
    return None
