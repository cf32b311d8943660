"""Which stages have as much to do in each part of their range, and who does their tiles then."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.ir.nodes import Persistent
from fusionq.megakernel.assignment import assigned_lists
from fusionq.megakernel.even_work import is_even
from fusionq.megakernel.tiling import Tiling, choose_tiling
from fusionq.planning.planner import make_plan
from tests.unit.lists import submissions
from tests.unit.targets import TWO_CORES

N = 600


@fq.kernel
def relaxed(item: fq.Item, k, a, b):
    i, j = item.get_id(0), item.get_id(1)
    if 0 < i < a.shape[0] - 1 and j > 0:
        total = a[i, j]
        for d in range(-1, 2):
            total += a[i + d, j - 1]
        b[i, j] = total


@fq.kernel
def coloured(item: fq.Item, k, a, b):
    i, j = item.get_id(0), item.get_id(1)
    if 0 < i < a.shape[0] - 1 and (i + j) % 2 == k % 2:
        b[i, j] = a[i - 1, j] + a[i + 1, j]


@fq.kernel
def sum_of_row(item: fq.Item, k, a, b):
    i, j = item.get_id(0), item.get_id(1)
    for c in range(a.shape[1]):
        b[i, j] += a[(i + 1) % a.shape[0], c]


@fq.kernel
def by_memory(item: fq.Item, k, a, b):
    i, j = item.get_id(0), item.get_id(1)
    if a[i, j] > 0:
        b[i, j] = a[(i + 1) % a.shape[0], j]


@fq.kernel
def triangle(item: fq.Item, k, a, b):
    i, j = item.get_id(0), item.get_id(1)
    for c in range(i):
        b[i, j] += a[c, j]


@fq.kernel
def half(item: fq.Item, k, a, b):
    i, j = item.get_id(0), item.get_id(1)
    if j <= i:
        for c in range(9):
            b[i, j] += a[(i + c) % a.shape[0], j]


@fq.kernel
def shrinking(item: fq.Item, k, a, b):
    i, j = item.get_id(0), item.get_id(1)
    first = k + 1
    if i >= first:
        b[i, j] = a[i - 1, j]


@fq.kernel
def until_memory_says(item: fq.Item, k, a, b):
    i, j = item.get_id(0), item.get_id(1)
    n = 0
    while n < 50 and a[(i + n) % a.shape[0], j] > 0:
        n += 1
    b[i, j] = n


@fq.kernel
def as_often_as_memory_says(item: fq.Item, k, a, b):
    i, j = item.get_id(0), item.get_id(1)
    most = 3
    if a[i, j] > 0:
        most = 9
    for c in range(most):
        b[i, j] += a[(i + c) % a.shape[0], j]


def persistent(kernel) -> Persistent:
    a, b = np.zeros((N, N), np.float32), np.zeros((N, N), np.float32)
    calls = [(kernel, (N, N), k, *(a, b)[:: 1 - k % 2 * 2]) for k in range(4)]
    made = make_plan(submissions(*calls), FusionOptions(strategy="megakernel"), TWO_CORES)
    (stage,) = made.stages
    (body,) = stage.kernel.body
    assert isinstance(body, Persistent)
    return body


@pytest.mark.parametrize(
    "kernel", (relaxed, coloured, sum_of_row, by_memory), ids=lambda k: k.__name__
)
def test_even(kernel) -> None:
    assert is_even(persistent(kernel))


@pytest.mark.parametrize(
    "kernel",
    (triangle, half, shrinking, until_memory_says, as_often_as_memory_says),
    ids=lambda k: k.__name__,
)
def test_not_even_or_not_known(kernel) -> None:
    assert not is_even(persistent(kernel))


def test_shares_where_memory_stays_in_the_caches() -> None:
    extents, nbytes = ((N, N),) * 4, [8] * 4

    def assignment(memory: int, even: bool, stages=extents) -> str:
        return choose_tiling(stages, nbytes, memory, False, TWO_CORES, even=even).assignment

    held = TWO_CORES.held_bytes
    assert assignment(held, True) == "shares"
    assert assignment(held, False) == "tickets"
    assert assignment(held + 1, True) == "tickets"
    assert assignment(held, True, ((9, 9),) * 4) == "turns"


def test_each_worker_has_tiles_side_by_side() -> None:
    counts = 8, 2, 9
    stage = np.repeat(np.arange(3), counts)
    tile = np.concatenate([np.arange(n) for n in counts])
    tiling = Tiling(((1,),) * 3, 1, "shares")
    starts, assigned = assigned_lists(stage, tile, tiling, 3, [])
    lists = [assigned[a:b] for a, b in pairwise(starts)]
    shares = [[tile[own][stage[own] == k].tolist() for k in range(3)] for own in lists]
    assert shares == [
        [[0, 1, 2], [0], [0, 1, 2]],
        [[3, 4, 5], [1], [3, 4, 5]],
        [[6, 7], [], [6, 7, 8]],
    ]
    assert all((np.diff(own) > 0).all() for own in lists)
