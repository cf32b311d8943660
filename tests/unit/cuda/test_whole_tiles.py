"""Tiles that are inside of all bounds, on GPUs: compiled, and as deep as they are worth."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.cache.plan_cache import PLANS
from fusionq.kernels import heat_1d, heat_2d
from tests.unit.cuda.compile_only import ARCHITECTURES, TARGET, compiling_queue

STEPS = 8


@pytest.mark.parametrize(
    "kernel, shape, launches", [(heat_1d, (1 << 24,), 4), (heat_2d, (4096, 2048), 4)]
)
def test_steps_of_stencils(
    monkeypatch: pytest.MonkeyPatch, kernel: fq.Kernel, shape: tuple[int, ...], launches: int
) -> None:
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "inf")
    monkeypatch.setenv("FUSIONQ_CACHE", "0")
    with compiling_queue(ARCHITECTURES, in_turn=True) as (queue, backend):
        a, b = fq.Buffer(shape, np.float32), fq.Buffer(shape, np.float32)
        with fq.fusion(queue, strategy="overlap") as f:
            for source, into in [(a, b), (b, a)] * (STEPS // 2):
                queue.submit(kernel, shape, np.float32(0.125), source, into)
    stages = f.report.plan.stages
    assert len(stages) == launches
    assert all(stage.tiling is None or "is_whole" in str(stage.kernel) for stage in stages)
    assert any(stage.tiling is not None for stage in stages)
    assert all(r.spill_stores == 0 for r in backend.resources.values())


@pytest.mark.parametrize("size, fewer", [(69_000_000, True), (1 << 20, False)])
def test_steps_of_a_launch(monkeypatch: pytest.MonkeyPatch, size: int, fewer: bool) -> None:
    """More of them where tiles have code of their own, which the model counts as faster."""
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "inf")
    monkeypatch.setenv("FUSIONQ_CACHE", "0")
    found = []
    for speedup in (1.0, TARGET.costs.whole_tile_speedup):
        monkeypatch.setattr(PLANS, "_plans", OrderedDict())
        with compiling_queue([]) as (queue, backend):
            costs = replace(TARGET.costs, whole_tile_speedup=speedup)
            backend.target = replace(TARGET, costs=costs)
            a, b = fq.Buffer(size, np.float32), fq.Buffer(size, np.float32)
            with fq.fusion(queue, strategy="overlap") as f:
                for source, into in [(a, b), (b, a)] * 8:
                    queue.submit(heat_1d, size, np.float32(0.125), source, into)
        found.append(len(f.report.plan.stages))
    assert (found[1] < found[0]) is fewer, found
