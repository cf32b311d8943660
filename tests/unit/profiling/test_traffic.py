"""Bytes from access relations."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.list_analysis import analyse
from fusionq.analysis.traffic import traffic
from tests.unit.lists import submission
from tests.unit.profiling.kernels import mul, sub

N = 1000


@fq.kernel
def every_other(item: fq.Item, a, out):
    i = item.get_id(0)
    out[2 * i] = a[2 * i]


@fq.kernel
def inner(item: fq.Item, a, out):
    i, j = item.get_id(0), item.get_id(1)
    if i > 0 and j > 0:
        out[i, j] = a[i - 1, j] + a[i, j - 1]


@fq.kernel
def gather(item: fq.Item, a, places, out):
    i = item.get_id(0)
    out[i] = a[places[i]]


@fq.kernel
def below(item: fq.Item, out):
    i, j = item.get_id(0), item.get_id(1)
    if j <= i:
        out[i, j] = 1.0


def f32(*shape: int):
    return np.zeros(shape, np.float32)


def of(*submissions, members=None, promoted=()):
    analysis = analyse([s for s in submissions])
    return traffic(analysis, range(len(submissions)) if members is None else members, promoted)


def test_a_chain_reads_what_it_has_not_written() -> None:
    a, b, t, out = f32(N), f32(N), f32(N), f32(N)
    first = submission(mul, N, a, b, t)
    second = submission(sub, N, t, b, out, index=1)
    alone = of(first, second, members=[0]), of(first, second, members=[1])
    assert [(x.read_bytes, x.written_bytes) for x in alone] == [(8 * N, 4 * N)] * 2
    both = of(first, second)
    assert (both.read_bytes, both.written_bytes, both.exact) == (8 * N, 8 * N, True)
    analysis = analyse([first, second])
    place = analysis.place[0, 2]
    promoted = traffic(analysis, [0, 1], {(place.group, place.view)})
    assert (promoted.read_bytes, promoted.written_bytes) == (8 * N, 4 * N)


def test_elements_count_once() -> None:
    a = f32(N)
    assert of(submission(mul, N, a, a, a)).bytes == 8 * N


def test_strides() -> None:
    found = of(submission(every_other, N // 2, f32(N), f32(N)))
    assert (found.read_bytes, found.written_bytes, found.exact) == (2 * N, 2 * N, True)


def test_unions_of_boxes() -> None:
    found = of(submission(inner, (10, 20), f32(10, 20), f32(10, 20)))
    # Rows 0…8 of columns 1…19, and rows 1…9 of columns 0…18.
    union = {(i, j) for i in range(9) for j in range(1, 20)}
    union |= {(i, j) for i in range(1, 10) for j in range(19)}
    assert (found.read_bytes, found.written_bytes) == (4 * len(union), 4 * 9 * 19)
    assert found.exact


def test_what_is_no_box_is_counted() -> None:
    found = of(submission(below, (30, 30), f32(30, 30)))
    assert (found.written_bytes, found.exact) == (4 * 30 * 31 // 2, True)


def test_indirect_accesses_are_bounded() -> None:
    found = of(submission(gather, 10, f32(N), np.zeros(10, np.int64), f32(10)))
    assert (found.read_bytes, found.written_bytes) == (4 * N + 80, 40)
    assert not found.exact


@pytest.mark.parametrize("shift", [0, 1, 500])
def test_views_that_overlap(shift: int) -> None:
    whole = f32(N)
    half = N // 2
    found = of(submission(mul, half, whole[:half], whole[shift : shift + half], f32(half)))
    assert found.read_bytes == 4 * (half + shift)
