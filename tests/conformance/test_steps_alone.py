"""Steps of trees in local memory: the bits of the reference backend."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq


@fq.kernel
def reversed_twice(item: fq.Item, x, y):
    i = item.get_id(0)
    y[x.shape[0] - 1 - i] = x[i] * 2


@fq.kernel
def sums(item: fq.NdItem, x, s, out):
    own, i = item.get_local_id(0), item.get_global_id(0)
    s[own] = x[i]
    fq.group_barrier(item.get_group())
    d = item.get_local_range(0) // 2
    while d > 0:
        if own < d:
            s[own] += s[own + d]
        fq.group_barrier(item.get_group())
        d //= 2
    out[i] = s[0]


@fq.kernel
def greatest(item: fq.NdItem, x, s, at, out, place):
    own, i = item.get_local_id(0), item.get_global_id(0)
    s[own] = x[i]
    at[own] = i
    fq.group_barrier(item.get_group())
    for k in range(6):
        d = 32 >> k
        if d > own and s[own + d] > s[own]:
            s[own], at[own] = s[own + d], at[own + d]
        fq.group_barrier(item.get_group())
    if own < 7:
        s[own + 7] = s[own] + own + i // 64
    fq.group_barrier(item.get_group())
    out[i] = s[own]
    place[i] = at[own]


@fq.kernel
def planes(item: fq.NdItem, x, s, n, out):
    own = item.get_local_linear_id()
    i, j = item.get_global_id(0), item.get_global_id(1)
    s[own] = x[i, j]
    fq.group_barrier(item.get_group())
    if own < n:
        a = s[own]
        b = s[own + 1]
        if own % 2 == 0:
            s[own], s[own + 1] = b, a
    fq.group_barrier(item.get_group())
    for k in range(n // 4):
        if own < n - 3 * k:
            s[own + n] = s[own] * k + s[own + n]
        fq.group_barrier(item.get_group())
    out[i, j] = s[own]


def run(queue: fq.FusionQueue, groups: int, strategy: str, check: bool) -> list[np.ndarray]:
    rng = np.random.default_rng(groups)
    n = groups * 64
    x = fq.Buffer(rng.standard_normal(n).astype(np.float32))
    y, total, best, place = (fq.Buffer(n, np.float32) for _ in range(4))
    matrix = fq.Buffer(rng.standard_normal((2 * groups, 16)))
    found = fq.Buffer((2 * groups, 16), np.float64)
    tile, at = fq.LocalAccessor(64, np.float32), fq.LocalAccessor(64, np.int64)
    of_plane = fq.LocalAccessor(32, np.float64)
    with fq.fusion(queue, strategy=strategy, check=check) as f:
        queue.submit(reversed_twice, n, x, y)
        queue.submit(sums, fq.NdRange(n, 64), y, tile, total)
        queue.submit(reversed_twice, n, total, x)
        queue.submit(greatest, fq.NdRange(n, 64), x, tile, at, best, place)
        queue.submit(planes, fq.NdRange((2 * groups, 16), (2, 16)), matrix, of_plane, 13, found)
    f.event.wait()
    return [np.array(a.numpy()) for a in (total, best, place, found)]


@pytest.mark.parametrize("groups", (1, 5, pytest.param(60, marks=pytest.mark.slow)))
@pytest.mark.parametrize("strategy", ("unfused", "fused", "megakernel"))
def test_bits_are_those_of_the_reference_backend(
    queue: fq.FusionQueue, groups: int, strategy: str
) -> None:
    with fq.FusionQueue("reference") as reference:
        expected = run(reference, groups, "unfused", False)
    for check in (False, True):
        for one, other in zip(run(queue, groups, strategy, check), expected, strict=True):
            np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))
