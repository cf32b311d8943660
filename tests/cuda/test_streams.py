"""Rows that come to workers by rings: long lists of products, whose tables leave one worker of a
multiprocessor, have the bits of the unfused run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from tests.unit.cuda.test_streams import product

STAGES = 256


@fq.kernel
def product_of_two(item: fq.NdItem, a, b, x, out):
    """Two loops of a work-group over the same vector, to another end each; of bfloat16."""
    row = item.get_global_id(0)
    one = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], 128):
        one += np.float32(a[row, k]) * x[k]
    total = fq.reduce_over_group(item.get_group(), one, "add")
    other = np.float32(0)
    for k in range(item.get_local_id(1), b.shape[1], 128):
        other += np.float32(b[row, k]) * x[k]
    total -= fq.reduce_over_group(item.get_group(), other, "add")
    if item.get_local_id(1) == 0:
        out[row] = total / (np.float32(1) + abs(total))  # never too large


def matrix(rng: np.random.Generator, rows: int, columns: int) -> Any:
    return (rng.standard_normal((rows, columns)) / columns**0.5).astype(np.float32)


@pytest.mark.parametrize("width", [1024, 1000, 1500, 4100, 96])
def test_products(queue: fq.FusionQueue, width: int) -> None:
    """Rows of whole slots, with a rest, of less than a slot; and such that begin where bulk copies
    cannot, which are read where they lie."""
    rng = np.random.default_rng(width)
    n = 2 * width
    weights = [fq.Buffer(matrix(rng, n, width)) for _ in range(4)]
    start = rng.standard_normal(width).astype(np.float32)
    results = []
    for strategy in ("unfused", "megakernel"):
        x, y = fq.Buffer(start), fq.Buffer(np.zeros(width, np.float32))
        with fq.fusion(queue, strategy=strategy, require=strategy == "megakernel") as f:
            for k in range(STAGES):
                queue.submit(
                    product, fq.NdRange((width, 128), (1, 128)), weights[k % 4], x, y
                )
                x, y = y, x
        for _ in range(3):
            f.replay()
        results.append((x.numpy().copy(), y.numpy().copy()))
    assert "fq_ring_full" in str(f.report.device_source)
    for one, other in zip(*results, strict=True):
        assert np.isfinite(one).all() and one.any()
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("widths", [(2048, 1024), (1032, 2056), (700, 1024)])
def test_loops_of_one_stage(queue: fq.FusionQueue, widths: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(widths))
    n = max(widths)
    pairs = [
        [fq.Buffer(matrix(rng, n, columns), fq.bfloat16) for columns in widths] for _ in range(3)
    ]
    start = rng.standard_normal(n).astype(np.float32)
    results = []
    for strategy in ("unfused", "megakernel"):
        x, y = fq.Buffer(start), fq.Buffer(np.zeros(n, np.float32))
        with fq.fusion(queue, strategy=strategy, require=strategy == "megakernel") as f:
            for k in range(STAGES):
                a, b = pairs[k % 3]
                queue.submit(product_of_two, fq.NdRange((n, 128), (1, 128)), a, b, x, y)
                x, y = y, x
        f.replay()
        results.append((x.numpy().copy(), y.numpy().copy()))
    for one, other in zip(*results, strict=True):
        assert np.isfinite(one).all() and one.any()
        np.testing.assert_array_equal(one, other)
