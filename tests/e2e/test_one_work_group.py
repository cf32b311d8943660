"""Lists whose indices depend on data, over ranges that are one work-group, are one kernel."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import fusionq as fq


@fq.kernel
def gather(item: fq.Item, places: Any, a: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = a[places[i]] + 1


@fq.kernel
def scatter(item: fq.Item, places: Any, a: Any, out: Any) -> None:
    i = item.get_id(0)
    out[places[i]] = a[i] * 3


@fq.kernel
def count(item: fq.Item, places: Any, out: Any) -> None:
    fq.AtomicRef(out, places[item.get_id(0)] // 2).fetch_add(1)


@fq.kernel
def in_turn(item: fq.Item, places: Any, a: Any) -> None:
    for k in range(len(places)):
        a[places[k]] = a[places[k]] + a[k]


@fq.kernel
def add(item: fq.Item, a: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] += a[i]


@fq.kernel
def chase(item: fq.Item, places: Any, a: Any, out: Any) -> None:
    i = item.get_id(0)
    k = places[i]
    total = a[i]
    while k != i:
        total += a[k]
        k = places[k]
    out[i] = total


def submit(queue: fq.FusionQueue, random: Random, places: fq.Buffer, arrays: list[fq.Buffer]):
    """Some of them, each at random."""
    n = places.shape[0]
    for _ in range(6):
        a, b = random.sample(arrays, 2)
        match random.randrange(6):
            case 0:
                queue.submit(scatter, n, places, a, b)
            case 1:
                queue.submit(count, n, places, b)
            case 2:
                queue.submit(in_turn, 1, places, a)
            case 3:
                queue.submit(add, n, a, b)
            case 4:
                queue.submit(chase, n, places, a, b)
            case _:
                queue.submit(gather, n, places, a, b)


@pytest.mark.parametrize("seed", range(8))
def test_random_lists(queue: fq.FusionQueue, seed: int) -> None:
    n = 2 + 9 * seed
    numbers = np.random.default_rng(seed)
    order, start = numbers.permutation(n), numbers.integers(0, 9, (3, n))
    found = []
    for strategy, require in (("unfused", False), ("fused", True), ("megakernel", False)):
        places, arrays = fq.Buffer(order.copy()), [fq.Buffer(a.copy()) for a in start]
        with fq.fusion(queue, strategy=strategy, require=require) as f:
            submit(queue, Random(seed), places, arrays)
        found.append([a.numpy().tolist() for a in arrays])
        if require:
            assert len(f.report.stages) == 1
    assert found[1:] == found[:1] * 2


def test_a_plan_for_one_work_group_is_not_taken_for_several(queue: fq.FusionQueue) -> None:
    for n in (60, 9000, 50):
        places = fq.Buffer(np.arange(n)[::-1].copy())
        a, middle, out = fq.Buffer(np.arange(n)), fq.Buffer(n, np.int64), fq.Buffer(n, np.int64)
        with fq.fusion(queue, strategy="fused") as f:
            queue.submit(gather, n, places, a, middle)
            queue.submit(gather, n, places, middle, out)
        assert np.array_equal(out.numpy(), np.arange(n) + 2)
        if n != 50:  # a plan that is for all sizes serves this one
            assert len(f.report.stages) == (1 if n == 60 else 2)
