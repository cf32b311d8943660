"""Reductions of a work-group that are done together on a GPU have the bits of each alone."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq


@fq.kernel
def together(item: fq.NdItem, a, out):
    i, group = item.get_global_id(0), item.get_group()
    n = a.shape[1]
    p, q, r, s, t = a[0, i], a[1, i], a[2, i], a[3, i], a[4, i]
    first = fq.reduce_over_group(group, p, "add")
    second = fq.reduce_over_group(group, q, "add")
    third = fq.reduce_over_group(group, r, "add")
    fourth = fq.reduce_over_group(group, s, "add")
    fifth = fq.reduce_over_group(group, t, "add")
    least = fq.reduce_over_group(group, p, "min")
    low = fq.reduce_over_group(group, q, "min")
    out[0, n - 1 - i] = first
    out[1, n - 1 - i] = second + least
    out[2, n - 1 - i] = third + low
    out[3, n - 1 - i] = fourth
    out[4, n - 1 - i] = fifth


@fq.kernel
def each_alone(item: fq.NdItem, a, out):
    """What is loaded in the call stays in its place."""
    i, group = item.get_global_id(0), item.get_group()
    n = a.shape[1]
    first = fq.reduce_over_group(group, a[0, i], "add")
    second = fq.reduce_over_group(group, a[1, i], "add")
    third = fq.reduce_over_group(group, a[2, i], "add")
    fourth = fq.reduce_over_group(group, a[3, i], "add")
    fifth = fq.reduce_over_group(group, a[4, i], "add")
    least = fq.reduce_over_group(group, a[0, i], "min")
    low = fq.reduce_over_group(group, a[1, i], "min")
    out[0, n - 1 - i] = first
    out[1, n - 1 - i] = second + least
    out[2, n - 1 - i] = third + low
    out[3, n - 1 - i] = fourth
    out[4, n - 1 - i] = fifth


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.int64])
@pytest.mark.parametrize("size", [1, 20, 32, 64, 100, 128, 250, 256, 300, 1000])
@pytest.mark.parametrize("strategy", ["unfused", "megakernel"])
def test_bits_are_the_same(queue: fq.FusionQueue, dtype, size, strategy) -> None:
    """Whole warps and others; as many values as fit into the memory for it, and more."""
    n = 3 * size
    rng = np.random.default_rng(size)
    values = rng.standard_normal((5, n)) * 100
    found = []
    for kernel in (each_alone, together):
        a, b, c = (
            fq.Buffer(values.astype(dtype)),
            fq.Buffer((5, n), dtype),
            fq.Buffer((5, n), dtype),
        )
        with fq.fusion(queue, strategy=strategy):
            for _ in range(2):
                queue.submit(kernel, fq.NdRange(n, size), a, b)
                queue.submit(kernel, fq.NdRange(n, size), b, c)
                queue.submit(kernel, fq.NdRange(n, size), c, a)
        found.append([np.array(x.numpy()).tobytes() for x in (a, b, c)])
    assert found[0] == found[1]
