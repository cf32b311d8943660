"""Sums and products that one work-item combines in local memory, by vectors: the bits of the
reference backend, for any number of work-items and of reductions side by side."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.in_turn import is_whole


@fq.kernel
def statistics(item: fq.Item, a, t, total, product, squares):
    x = a[item.get_id(0)]
    if x > t:
        total += x
    product *= 1 + x * x * t
    squares += x * x


@fq.kernel
def halved(item: fq.Item, a):
    a[item.get_id(0)] *= 0.5


STRATEGIES: tuple[fq.Strategy, ...] = ("fused", "megakernel")
"""A type has one of them: a program with vectors takes the device's compiler a second."""


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 256, 257, 3001])
def test_reductions_have_the_bits_of_the_reference_backend(dtype, count):
    a = np.random.default_rng(count).standard_normal(count).astype(dtype)
    outputs = []
    for queue in (fq.FusionQueue("reference"), fq.FusionQueue()):
        with queue:
            results = [fq.Buffer(np.ones(1, dtype)) for _ in range(3)]
            buffer = fq.Buffer(a)
            for strategy in STRATEGIES if is_whole() else STRATEGIES[dtype == "float64" :][:1]:
                with fq.fusion(queue, strategy=strategy):
                    queue.submit(
                        statistics, count, buffer, np.dtype(dtype).type(1e-3),
                        fq.Reduction(results[0], "add"), fq.Reduction(results[1], "multiply"),
                        fq.Reduction(results[2], "add", initialize=True),
                    )  # fmt: skip
                    queue.submit(halved, 1, results[1])
            outputs.append([r.numpy().tobytes() for r in results])
    assert outputs[0] == outputs[1]
