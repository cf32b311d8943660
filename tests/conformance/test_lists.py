"""Fused lists: every strategy and promotion gives the bits of the unfused run; caches, tuning,
replays and profiles work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.base import Backend
from fusionq.cache.plan_cache import PLANS
from tests.conformance.running import Launch
from tests.unit.codegen.built_kernels import fused_example

N, GROUP = 96, 16
SPACE = fq.NdRange(N, GROUP)
STRATEGIES = ("auto", "fused", "sequence", "unfused", "megakernel")


@fq.kernel
def scale(item: fq.NdItem, a: Any, factor: np.float32, out: Any) -> None:
    i = item.get_global_id(0)
    out[i] = a[i] * factor + np.float32(0.1)


@fq.kernel
def flip(item: fq.NdItem, a: Any, out: Any) -> None:
    """Reversed within its work-group."""
    i = item.get_global_id(0)
    k = item.get_local_id(0)
    out[i] = a[i - k + item.get_local_range(0) - 1 - k]


@fq.kernel
def blur(item: fq.NdItem, a: Any, out: Any) -> None:
    """Across work-groups."""
    i = item.get_global_id(0)
    if 0 < i < a.shape[0] - 1:
        out[i] = (a[i - 1] + a[i] + a[i + 1]) / np.float32(3)
    else:
        out[i] = a[i]


@pytest.fixture
def nothing_known(disk_cache: Path) -> Iterator[None]:
    """An empty disk cache, and a process that has planned nothing."""
    PLANS.clear()
    yield
    PLANS.clear()


class Lists:
    """Element-wise kernels, an exchange within work-groups and one across them."""

    def __init__(self) -> None:
        start = np.random.default_rng(3).random(N).astype(np.float32)
        self.a, self.out = fq.Buffer(start), fq.Buffer(N, np.float32)
        self.own = fq.Buffer(N, np.float32, promote_private=True)
        self.shared = fq.Buffer(N, np.float32, promote_local=True)
        self.kept = fq.Buffer(N, np.float32)

    def submit(self, queue: fq.FusionQueue, factor: float = 1.5) -> None:
        queue.submit(scale, SPACE, self.a, np.float32(factor), self.own)
        queue.submit(scale, SPACE, self.own, np.float32(0.5), self.shared)
        queue.submit(flip, SPACE, self.shared, self.kept)
        queue.submit(blur, SPACE, self.kept, self.out)
        queue.submit(scale, SPACE, self.out, np.float32(2), self.a)

    @property
    def results(self) -> list[bytes]:
        return [buffer.numpy().tobytes() for buffer in (self.a, self.out)]


def wanted(*factors: float) -> list[bytes]:
    """The bits of unfused runs on the reference backend, one after the other."""
    lists = Lists()
    with fq.FusionQueue("reference") as queue:
        for factor in factors:
            lists.submit(queue, factor)
    return lists.results


def fused(queue: fq.FusionQueue, lists: Lists, **options: Any) -> fq.Fusion:
    with fq.fusion(queue, **options) as f:
        lists.submit(queue)
    return f


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_gives_the_unfused_bits(queue: fq.FusionQueue, strategy: Any) -> None:
    if strategy == "megakernel" and not queue.device.persistent_kernels:
        pytest.skip("the backend does not run persistent kernels")
    lists = Lists()
    f = fused(queue, lists, strategy=strategy)
    assert lists.results == wanted(1.5)
    if strategy == "sequence":
        scopes = {p.buffer: p.scope for p in f.report.promotions}
        assert set(scopes.values()) == {"private", "local"}
        assert not lists.own.is_allocated
        assert not lists.shared.is_allocated


def test_replays_take_other_scalars(queue: fq.FusionQueue) -> None:
    lists = Lists()
    f = fused(queue, lists)
    f.replay()
    assert lists.results == wanted(1.5, 1.5)
    again = fused(queue, lists)
    assert again.report.cache == "memory"
    assert lists.results == wanted(1.5, 1.5, 1.5)


def test_what_was_planned_is_found_on_disk(target: str, nothing_known: None) -> None:
    lists = Lists()
    for outcome in ("miss", "disk"):
        with fq.FusionQueue(target) as queue:
            assert fused(queue, lists).report.cache == outcome
        PLANS.clear()
    assert lists.results == wanted(1.5, 1.5)


def test_kept_programs_are_restored(backend: Backend) -> None:
    if not backend.abilities.keeps_programs:
        pytest.skip("the backend's programs do not outlive the process")
    kernel = fused_example()
    program = backend.build(kernel, "strict")
    kept = backend.keep(program)
    assert kept is not None
    restored = backend.restore(kernel, "strict", kept)
    assert restored.source == program.source
    results = []
    for built in (program, restored):
        random = np.random.default_rng(4)
        inputs = [random.random(50).astype(np.float32) for _ in range(4)]
        out = np.zeros(50, np.float32)
        launch = Launch(backend, kernel, [*inputs, out, 47], 50, program=built)
        launch.launch().wait()
        launch.fetch()
        results.append(out.tobytes())
    assert results[0] == results[1]
    assert any(results[0])


def test_tuning_leaves_memory_alone(queue: fq.FusionQueue, nothing_known: None) -> None:
    lists = Lists()
    f = fused(queue, lists, tune=True)
    assert lists.results == wanted(1.5)
    assert "measured" in str(f.report.choice)


def test_a_profile_has_every_launch(queue: fq.FusionQueue) -> None:
    lists = Lists()
    with fq.profile(queue, compare=True) as p:
        f = fused(queue, lists)
        f.replay()
    assert lists.results == wanted(1.5, 1.5)
    ran = [launch for launch in p.timeline.launches if not launch.variant]
    assert len(ran) == 2 * len(f.report.stages)
    assert all(launch.end_ns >= launch.start_ns > 0 for launch in ran)
