"""Scalars by which a fusion divides, shifts and masks are constants of its kernel: lists of other
steps, over other memory and of other sizes, in turn, compute what plain submits do."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq


@fq.kernel
def exchange(item: fq.Item, k, j, x):
    pair = item.get_id(0)
    i = pair // j * (2 * j) + pair % j
    low, high = min(x[i], x[i + j]), max(x[i], x[i + j])
    ascending = i // k % 2 == 0
    x[i] = low if ascending else high
    x[i + j] = high if ascending else low


@fq.kernel
def exchange_by_bits(item: fq.Item, k, j, x):
    i = item.get_id(0)
    other = i ^ j
    if other > i and (x[i] > x[other]) == ((i & k) == 0):
        lower = x[other]
        x[other] = x[i]
        x[i] = lower


@fq.kernel
def spread(item: fq.Item, places, x):
    """Work-items by themselves, at elements that shifts find."""
    i = item.get_id(0)
    x[(i << places >> places) ^ 1] += i >> places


STEPS = [
    [(2, 1), (4, 2), (4, 1)],
    [(2, 1), (4, 2), (4, 1)],
    [(4, 2), (4, 1), (8, 4)],
    [(8, 4), (8, 2), (8, 1)],
    [(16, 8), (16, 4), (16, 2)],
    [(4, 2), (4, 1), (8, 4)],
    [(32, 16), (32, 8), (32, 4)],
    [(2, 1), (4, 2), (4, 1)],
]


@pytest.mark.parametrize("strategy", ["fused", "auto", "megakernel"])
@pytest.mark.parametrize("kernel", [exchange, exchange_by_bits], ids=lambda k: k.__name__)
def test_steps_of_sorts_in_turn(queue, kernel: fq.KernelFunction, strategy: str) -> None:
    rng = np.random.default_rng(3)
    kept = fq.Buffer(256, np.int32)
    for number, steps in enumerate(STEPS):
        n = (256, 256, 512)[number % 3]
        data = rng.integers(0, 1000, n, dtype=np.int32)
        found = []
        for fused in (False, True):
            x = kept if n == 256 and number % 2 else fq.Buffer(n, np.int32)
            x.write(data)
            items = n // 2 if kernel is exchange else n
            if fused:
                with fq.fusion(queue, strategy=strategy):
                    for k, j in steps:
                        queue.submit(kernel, items, k, j, x)
            else:
                for k, j in steps:
                    queue.submit(kernel, items, k, j, x)
            queue.wait()
            found.append(x.numpy().copy())
        np.testing.assert_array_equal(found[0], found[1])


def test_replays_with_other_steps(queue) -> None:
    """Scalars of a replay are put in, or the list is planned again."""
    data = np.random.default_rng(4).integers(0, 1000, 64, dtype=np.int64)
    x, y = fq.Buffer(data), fq.Buffer(data)
    with fq.fusion(queue, strategy="fused") as f:
        queue.submit(spread, 64, 2, x)
        queue.submit(spread, 64, 2, x)
    for _ in range(2):
        queue.submit(spread, 64, 2, y)
    for places in (2, 3, 3, 1, 4, 2):
        f.replay(places=places)
        for _ in range(2):
            queue.submit(spread, 64, places, y)
        queue.wait()
        np.testing.assert_array_equal(x.numpy(), y.numpy())
