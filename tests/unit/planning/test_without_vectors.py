"""Submissions that are done without vectors of work-items on CPUs do not join such as need them."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.planning.planner import make_plan
from tests.unit.cuda.compile_only import TARGET as H100
from tests.unit.lists import submissions
from tests.unit.targets import TWO_CORES

ROWS, COLUMNS = 4_000, 64


@fq.kernel
def product(item: fq.Item, first, column, value, x, y):
    i = item.get_id(0)
    s = 0.0
    for k in range(first[i], first[i + 1]):
        s += value[k] * x[column[k]]
    y[i] = s


@fq.kernel
def add(item: fq.Item, y, b, out):
    i = item.get_id(0)
    out[i] = y[i] + b[i]


@fq.kernel
def row_sums(item: fq.Item, y, a, out):
    i = item.get_id(0)
    s = y[i]
    for k in range(a.shape[1]):
        s += a[i, k]
    out[i] = s


def listed(other_kernel, rows=ROWS, is_first=False):
    """A sparse product, and ``other_kernel``, which reads its result, behind or ahead of it."""
    first, column = np.zeros(rows + 1, np.int32), np.zeros(8 * rows, np.int32)
    value, x, y, out = np.zeros(8 * rows), np.zeros(rows), np.zeros(rows), np.zeros(rows)
    other = x if other_kernel is add else np.zeros((rows, COLUMNS))
    sparse = product, (rows,), first, column, value, x, y
    dense = other_kernel, (rows,), y, other, out
    return submissions(*((dense, sparse) if is_first else (sparse, dense)))


def launches(submitted, strategy="sequence", target=TWO_CORES):
    plan = make_plan(submitted, FusionOptions(strategy=strategy), target)
    return [stage.boundary for stage in plan.stages]


@pytest.mark.parametrize("is_first", [False, True])
def test_vectors_would_wait_for_the_longest_loop(is_first):
    _, boundary = launches(listed(row_sums, is_first=is_first))
    assert "the loops of product, which go on as long as memory says" in boundary
    assert "strategy='fused' joins them all the same" in boundary


def test_what_does_little_is_done_without_vectors_too():
    assert launches(listed(add)) == [None]


def test_who_asks_for_one_launch_has_it():
    assert launches(listed(row_sums), "fused") == [None]


def test_a_launch_counts_more_than_few_work_items():
    assert launches(listed(row_sums, rows=16)) == [None]


def test_lanes_of_warps_are_no_vectors():
    assert launches(listed(row_sums), target=H100) == [None]
