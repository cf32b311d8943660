"""Persistent kernels whose stages have conditions that are the same for all lanes, after loops."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.in_turn import one_in


@fq.kernel
def scaled(item: fq.Item, partial, table):
    b = item.get_id(0)
    r = item.get_id(1)
    c = item.get_id(2)
    partial[b, r, c] = table[r, c] * 0.5 + float(b)


@fq.kernel
def moved(item: fq.Item, partial, counts, table):
    r = item.get_id(0)
    c = item.get_id(1)
    total = 0.0
    for block in range(partial.shape[0]):
        total = total + partial[block, r, c]
    if counts[r] > 0:
        table[r, c] = total / float(counts[r])


@pytest.mark.parametrize("width", one_in(2, [16, 4, 33, 20]))
def test_a_uniform_condition_behind_a_loop(queue: fq.FusionQueue, width: int) -> None:
    """Intel's compiler gave up sub-groups for this, and workers took their first tile for ever."""
    blocks, rows = 64, 8
    counts = np.arange(rows) % 3
    start = np.random.default_rng(5).random((rows, width))
    results = []
    for strategy in ("unfused", "megakernel"):
        partial = fq.Buffer((blocks, rows, width), np.float64)
        table, counted = fq.Buffer(start.copy()), fq.Buffer(counts)
        with fq.fusion(queue, strategy=strategy) as fused:
            for _ in range(3):
                queue.submit(scaled, (blocks, rows, width), partial, table)
                queue.submit(moved, (rows, width), partial, counted, table)
        fused.event.wait()
        assert fused.report.strategy == strategy
        results.append(table.numpy().copy())
    np.testing.assert_array_equal(*results)
