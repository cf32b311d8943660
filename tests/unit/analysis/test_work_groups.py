"""Which work-group size a plain range gets, so that what work-items exchange stays inside."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.item_space import ItemSpace
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.questions import Questions
from fusionq.analysis.work_groups import Tiles, candidates
from fusionq.base.target import target_of
from fusionq.planning.stages import SplitOptions, split
from tests.unit.lists import completed, submissions
from tests.unit.targets import REFERENCE, TWO_CORES, device


@fq.kernel
def twice(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i] * 2


@fq.kernel
def reverse_tiles(item: fq.Item, a, width, out):
    i = item.get_id(0)
    out[i] = a[i // width * width + width - 1 - i % width]


@fq.kernel
def next_in_96(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[min(i + 1, i // 96 * 96 + 95)]


@fq.kernel
def reverse_all(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[a.shape[0] - 1 - i]


@fq.kernel
def twice_2d(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = a[i, j] * 2


@fq.kernel
def transpose_tens(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = a[i // 10 * 10 + j % 10, j // 10 * 10 + i % 10]


@fq.kernel
def reverse_rows(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = a[i, a.shape[1] - 1 - j]


@fq.kernel
def reverse_columns(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = a[a.shape[0] - 1 - i, j]


def vector(n=4800):
    return np.zeros(n)


def chosen(*calls):
    """The work-group size of the stage that holds the whole list; None if there is none."""
    questions = Questions(submissions(*calls))
    options = SplitOptions(None, "required", TWO_CORES, lambda: TWO_CORES)
    dependences = completed(direct_dependences(questions))
    stages = completed(split(questions, dependences, options))
    return stages[0].space.local_range if len(stages) == 1 else None


@pytest.mark.parametrize(
    ("width", "local"),
    [(4, 256), (3, 252), (100, 200), (96, 192), (400, 800), (600, 600), (1000, 1000), (1024, 1024)],
)
def test_tiles_of_any_width(width, local):
    n = 3 * width * 16
    a, b, out = vector(n), vector(n), vector(n)
    size = chosen((twice, n, a, b), (reverse_tiles, n, b, width, out))
    assert size is not None and size[0] % width == 0, size
    assert size == (local,)


def test_a_tile_beyond_what_a_group_may_hold():
    n = 3 * 4100
    a, b, out = vector(n), vector(n), vector(n)
    assert chosen((twice, n, a, b), (reverse_tiles, n, b, 4100, out)) is None


def test_tiles_written_as_constants():
    a, b, out = vector(), vector(), vector()
    assert chosen((twice, 4800, a, b), (next_in_96, 4800, b, out)) == (192,)


def test_tiles_of_several_widths():
    a, b, c, out = (vector() for _ in range(4))
    size = chosen(
        (twice, 4800, a, b),
        (reverse_tiles, 4800, b, 60, c),
        (reverse_tiles, 4800, c, 40, out),
    )
    assert size is not None and size[0] % 120 == 0


def test_two_dimensions():
    a, b, out = (np.zeros((40, 300)) for _ in range(3))
    range_ = (40, 300)
    assert chosen((twice_2d, range_, a, b), (transpose_tens, range_, b, out)) == (10, 20)
    assert chosen((twice_2d, range_, a, b), (reverse_rows, range_, b, out)) == (1, 304)
    assert chosen((twice_2d, range_, a, b), (reverse_columns, range_, b, out)) == (40, 32)


def test_rows_of_a_linear_range():
    b = vector(12000)
    rows, out = b.reshape(40, 300), np.zeros((40, 300))
    size = chosen((twice, 12000, vector(12000), b), (reverse_rows, (40, 300), rows, out))
    assert size is not None and size[0] % 300 == 0


def test_one_group_for_all_only_if_it_is_small():
    for n, size in ((900, (1024,)), (1100, None)):
        a, b, out = vector(n), vector(n), vector(n)
        assert chosen((twice, n, a, b), (reverse_all, n, b, out)) == size


def test_an_explicit_size_is_the_only_candidate():
    space = ItemSpace("ids", 1, (4,))
    assert list(candidates((), space, (8,), REFERENCE)) == [(4,)]


def test_no_candidate_is_too_large_for_the_device():
    small = target_of(device(max_work_group_size=32))
    for space, extents in (
        (ItemSpace("ids", 1, None), (48,)),
        (ItemSpace("ids", 3, None), (3, 4, 4)),
    ):
        sizes = list(candidates((), space, extents, small))
        assert sizes and all(0 < np.prod(s) <= 32 for s in sizes)
        assert len(sizes) == len(set(sizes))


@pytest.mark.parametrize(("width", "local"), [(10, 10), (17, 32), (100, 112), (128, 128)])
def test_whole_rows_are_whole_vectors(width, local):
    """With what is left over of a vector, groups took 2 to 3 times as long."""
    space = ItemSpace("ids", 2, None)
    found = list(candidates([Tiles((False, True), (1, 1))], space, (40, width), TWO_CORES))
    assert (1, local) in found
    assert width == local or (1, width) not in found
    assert all(size[1] <= max(local, 16) for size in found if size[0] < 40)
