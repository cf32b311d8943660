"""A worker's work-items are one sub-group whatever the compiler thinks of vectors: it made none of
loops whose result is divided under a condition, and each work-item was a worker of its own."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq

ROWS, BLOCKS = 8, 64


@fq.kernel
def counted(item, labels, counts):
    i = item.get_id(0)
    counts[i] = labels[i] + 1


@fq.kernel
def moved(item, partial, counts, codes):
    i, j = item.get_id(0), item.get_id(1)
    total = 0.0
    for block in range(partial.shape[0]):
        total += partial[block, i, j]
    if counts[i] > 0:
        codes[i, j] = total / counts[i]


@fq.kernel
def summed(item, codes, out):
    i = item.get_id(0)
    total = 0.0
    for j in range(codes.shape[1]):
        total += codes[i, j] + codes[codes.shape[0] - 1 - i, j]
    out[i] = total


def run(target, width, strategy):
    arrays = (
        np.arange(ROWS) - 2,
        np.zeros(ROWS, np.int64),
        np.random.default_rng(1).random((BLOCKS, ROWS, width)),
        np.zeros((ROWS, width)),
        np.zeros(ROWS),
    )
    with fq.FusionQueue(target) as queue:
        labels, counts, partial, codes, out = buffers = [fq.Buffer(a) for a in arrays]
        with fq.fusion(queue, strategy=strategy):
            queue.submit(counted, fq.Range(ROWS), labels, counts)
            queue.submit(moved, fq.Range(ROWS, width), partial, counts, codes)
            queue.submit(summed, fq.Range(ROWS), codes, out)
        return [buffer.numpy().copy() for buffer in buffers]


@pytest.mark.parametrize("width", [16, 40])
def test_a_quotient_of_a_sum_under_a_condition(target, width):
    found, expected = (run(target, width, strategy) for strategy in ("megakernel", "unfused"))
    for one, other in zip(found, expected, strict=True):
        assert one.tobytes() == other.tobytes()
