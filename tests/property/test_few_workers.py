"""Persistent kernels with as few workers as their work pays for give the unfused results."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.costs import Costs
from fusionq.execution import fitting_workers
from fusionq.megakernel.launch import PersistentLaunch
from fusionq.megakernel.schedule import Schedule
from tests.in_turn import is_whole
from tests.property.running import needs_device


@fq.kernel
def spread(item: fq.Item, rate: Any, a: Any, b: Any) -> None:
    i = item.get_id(0)
    if 0 < i < a.shape[0] - 1:
        b[i] = a[i] + rate * (a[i - 1] - 2 * a[i] + a[i + 1])
    else:
        b[i] = a[i]


@fq.kernel
def from_left(item: fq.Item, distance: Any, a: Any, b: Any) -> None:
    i = item.get_id(0)
    b[i] = a[i] + a[i - distance] if i >= distance else a[i]


@fq.kernel
def inner(item: fq.Item, a: Any, b: Any) -> None:
    i = item.get_id(0) + 1
    b[i] = a[i - 1] - a[i + 1]


@fq.kernel
def in_groups(item: fq.NdItem, a: Any, sums: Any) -> None:
    i = item.get_global_id(0)
    own = a[i] if i < a.shape[0] else 0.0
    total = fq.reduce_over_group(item.get_group(), own, "add")
    if item.get_local_id(0) == 0:
        sums[item.get_group().get_group_id(0)] = total


@fq.kernel
def of_groups(item: fq.Item, sums: Any, total: Any) -> None:
    value = sums[0]
    for k in range(1, sums.shape[0]):
        value += sums[k]
    total[item.get_id(0)] = value


@fq.kernel
def over(item: fq.Item, total: Any, a: Any, b: Any) -> None:
    i = item.get_id(0)
    b[i] = a[i] / (2.0 + np.abs(total[0]))


def steps(queue: fq.FusionQueue, n: int, a: Any, b: Any, *_: Any) -> None:
    for k in range(5):
        queue.submit(spread, n, 0.125 * (k % 2 + 1), a, b)
        a, b = b, a


def sums(queue: fq.FusionQueue, n: int, a: Any, b: Any, *_: Any) -> None:
    for distance in (1, 2, 4, 8, 16):
        queue.submit(from_left, n, distance, a, b)
        a, b = b, a


def interior(queue: fq.FusionQueue, n: int, a: Any, b: Any, *_: Any) -> None:
    for _ in range(5):
        queue.submit(inner, max(n - 2, 0), a, b)
        a, b = b, a


def normalised(queue: fq.FusionQueue, n: int, a: Any, b: Any, partial: Any, total: Any) -> None:
    whole = 32 * partial.shape[0]
    for _ in range(2):
        queue.submit(spread, n, 0.25, a, b)
        queue.submit(in_groups, fq.NdRange(whole, 32), b, partial)
        queue.submit(of_groups, 1, partial, total)
        queue.submit(over, n, total, b, a)


LISTS = (steps, sums, interior, normalised)
SIZES = (1, 1100, 33, 5000, 2, 20_000, 1025, 64, 1500)
"""From small to large and back; up to 1,024 work-items may be one work-group, and so one launch."""


@pytest.fixture(params=["reference", pytest.param(None, marks=needs_device, id="sycl")])
def queue(request: pytest.FixtureRequest) -> Iterator[fq.FusionQueue]:
    with fq.FusionQueue(request.param) as made:
        yield made


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another worker costs so little that some thousand work-items have several."""

    def costs(backend: Any) -> Costs:
        few = {"stage_seconds": 5e-7, "alone_seconds": 1e-8, "launch_seconds": 1e-7}
        return replace(backend.target.costs, **few)

    monkeypatch.setattr(fitting_workers, "known_costs", costs)


def arrays(n: int, seed: int) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    return [rng.random(n), rng.random(n), np.zeros(-(-n // 32)), np.zeros(1)]


def run(
    queue: fq.FusionQueue, submit: Callable[..., None], n: int, strategy: str, runs: int
) -> tuple[list[bytes], fq.Fusion]:
    buffers = [fq.Buffer(array) for array in arrays(n, n)]
    with fq.fusion(queue, strategy=strategy) as fusion:
        submit(queue, n, *buffers)
    for _ in range(runs - 1):
        fusion.replay()
    queue.wait()
    return [buffer.numpy().tobytes() for buffer in buffers], fusion


def schedules(fusion: fq.Fusion) -> list[Schedule]:
    assert fusion._list is not None
    run = fusion._list.run
    return [] if run is None else [made for made in run.schedules if made is not None]


@pytest.mark.parametrize("submit", LISTS)
def test_sizes_that_change_from_run_to_run(
    queue: fq.FusionQueue, submit: Callable[..., None], early: None
) -> None:
    most = queue._state.target.resident_workers
    had = set()
    interpreted = queue.device.kind == "reference"
    for n in (1100, 33, 2600) if interpreted else SIZES if is_whole() else SIZES[1::2]:
        runs = 1 if interpreted else 3
        expected, _ = run(queue, submit, n, "unfused", runs)
        found, fusion = run(queue, submit, n, "megakernel", runs)
        assert found == expected, n
        had |= {schedule.workers for schedule in schedules(fusion)}
    assert max(had) <= most
    if most > 1 and submit in (steps, sums):
        assert min(had) == 1 < max(had), "the sizes should ask for other numbers of workers"


def test_no_work_items(queue: fq.FusionQueue, early: None) -> None:
    for n in (2, 40, 2):
        expected, _ = run(queue, interior, n, "unfused", 2)
        assert run(queue, interior, n, "megakernel", 2)[0] == expected


def test_a_single_worker_waits_for_nobody_and_counts_nothing(queue: fq.FusionQueue) -> None:
    runs = 2 if queue.device.kind == "reference" else 100
    expected, _ = run(queue, steps, 1200, "unfused", runs)
    found, fusion = run(queue, steps, 1200, "megakernel", runs)
    assert found == expected
    assert fusion.report.strategy == "megakernel"
    for schedule in schedules(fusion):
        assert schedule.workers == 1
        assert all(c.first == c.total == -1 for c in schedule.counters)
        assert schedule.assigned.tolist() == list(range(len(schedule.stage)))


def test_any_number_of_workers(
    queue: fq.FusionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = random.Random(5)

    def some(kernel: object, bindings: object, target: Any) -> int:
        return generator.randint(1, target.resident_workers)

    monkeypatch.setattr(fitting_workers, "workers_for", some)
    for seed in range(4 if queue.device.kind == "reference" else 12):
        submit, n = LISTS[seed % len(LISTS)], generator.choice([1030, 1100, 1291])
        expected, _ = run(queue, submit, n, "unfused", 2)
        assert run(queue, submit, n, "megakernel", 2)[0] == expected


@needs_device
def test_launches_of_a_single_worker_serve_other_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporaries are made anew each time; scalars change, earlier lists are replayed later, and
    arrays that share memory in another way are another list."""
    made: list[int] = []
    init = PersistentLaunch.__init__

    def counted(self: Any, *arguments: Any, **options: Any) -> None:
        init(self, *arguments, **options)
        made.append(self.plan.workers)

    monkeypatch.setattr(PersistentLaunch, "__init__", counted)
    n, rounds = 1200, 12

    def rounds_by(strategy: str) -> list[bytes]:
        """Some lists are kept, and replayed while others have run."""
        found, kept = [], []
        with fq.FusionQueue() as queue:
            for k in range(rounds):
                a, b = (fq.Buffer(array) for array in arrays(n, k)[:2])
                whole = a if k % 4 == 3 else b
                with fq.fusion(queue, strategy=strategy) as fusion:
                    for rate in (0.125 * k, 0.5, 0.25):
                        queue.submit(spread, n, rate, a, b)
                        queue.submit(over, n, b, whole, a)
                if k % 3 == 0:
                    kept.append((fusion, a, b))
                elif k % 3 == 1:
                    kept[-1][0].replay()
                    found += [kept[-1][1].numpy().tobytes(), kept[-1][2].numpy().tobytes()]
                found += [a.numpy().tobytes(), b.numpy().tobytes()]
        return found

    expected = rounds_by("unfused")
    assert not made
    assert rounds_by("megakernel") == expected
    assert set(made) == {1}
    assert len(made) < rounds, "most lists take the launches of others"
