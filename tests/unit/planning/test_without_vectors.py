"""Submissions that are done without vectors of work-items on CPUs do not join such as need them."""

from __future__ import annotations

from dataclasses import replace

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


def listed(other_kernel, rows=ROWS, is_first=False, columns=COLUMNS):
    """A sparse product, and ``other_kernel``, which reads its result, behind or ahead of it."""
    first, column = np.zeros(rows + 1, np.int32), np.zeros(8 * rows, np.int32)
    value, x, y, out = np.zeros(8 * rows), np.zeros(rows), np.zeros(rows), np.zeros(rows)
    other = x if other_kernel is add else np.zeros((rows, columns))
    sparse = product, (rows,), first, column, value, x, y
    dense = other_kernel, (rows,), y, other, out
    return submissions(*((dense, sparse) if is_first else (sparse, dense)))


def launches(submitted, strategy="sequence", target=TWO_CORES):
    plan = make_plan(submitted, FusionOptions(strategy=strategy), target)
    return [stage.boundary for stage in plan.stages]


@pytest.mark.parametrize("is_first", [False, True])
def test_vectors_would_wait_for_the_longest_loop(is_first):
    _, boundary = launches(listed(row_sums, is_first=is_first))
    assert "the loops of product, which by itself is done without vectors of work-items" in boundary
    assert "strategy='fused' joins them all the same" in boundary


def test_what_does_little_is_done_without_vectors_too():
    assert launches(listed(add)) == [None]


def test_who_asks_for_one_launch_has_it():
    assert launches(listed(row_sums), "fused") == [None]


def test_one_launch_that_is_predicted_to_take_long_has_to_be_required():
    _, boundary = launches(listed(row_sums, rows=20_000, columns=2), "fused")
    assert "where vectors would be made of work-items of product, which is faster with" in boundary
    assert "require=True joins them all the same" in boundary
    required = FusionOptions(strategy="fused", require=True)
    submitted = listed(row_sums, rows=20_000, columns=2)
    assert len(make_plan(submitted, required, TWO_CORES).stages) == 1
    assert launches(listed(row_sums, rows=20_000, columns=2), "fused", H100) == [None]


def test_work_groups_of_a_function_have_vectors():
    @fq.kernel
    def group_sums(item: fq.NdItem, y, out):
        group = item.get_group()
        s = fq.reduce_over_group(group, y[item.get_global_id(0)], "add")
        if group.leader:
            out[group.get_group_id(0)] = s

    def both(rows):
        first, column = np.zeros(rows + 1, np.int32), np.zeros(8 * rows, np.int32)
        value, x, y = np.zeros(8 * rows), np.zeros(rows), np.zeros(rows)
        sparse = product, (rows,), first, column, value, x, y
        return submissions(sparse, (group_sums, fq.NdRange(rows, 64), y, np.zeros(rows // 64)))

    for strategy in ("fused", "sequence"):
        assert launches(both(64), strategy) == [None]
        _, boundary = launches(both(20_032), strategy)
        assert "vectors would be made of work-items of product" in boundary


def test_rows_of_integers_are_not_done_by_several_neighbours_together():
    """With vectors of work-items, that is, each of which would load its row element by element."""

    @fq.kernel
    def byte_product(item: fq.Item, a, b, out):
        i, j = item.get_id(0), item.get_id(1)
        total = np.int32(0)
        for k in range(a.shape[1]):
            total += np.int32(a[i, k]) * np.int32(b[j, k])
        out[i, j] = total

    @fq.kernel
    def smooth(item: fq.Item, a, out):
        i, j = item.get_id(0), item.get_id(1)
        out[i, j] = 1 / (1 + np.exp(-np.float32(a[i, j])))

    n = 512
    target = replace(TWO_CORES, device=replace(TWO_CORES.device, jams_items=True))
    a, b = (np.zeros((n, n), np.int8) for _ in range(2))
    product, last = (byte_product, (n, n), a, b, np.zeros((n, n), np.int32)), np.zeros((n, n), "f")
    submitted = submissions(product, (smooth, (n, n), product[-1], last))
    plan = make_plan(submitted, FusionOptions(strategy="fused"), target, measured=lambda: target)
    assert [stage.items_at_once for stage in plan.stages] == [()]


@fq.kernel
def short_product(item: fq.Item, a, b, out):
    i, j = item.get_id(0), item.get_id(1)
    total = np.int32(0)
    for k in range(a.shape[1]):
        total += np.int32(a[i, k]) * np.int32(b[j, k])
    out[i, j] = total


@fq.kernel
def activation(item: fq.Item, a, out):
    i, j = item.get_id(0), item.get_id(1)
    x = np.float32(a[i, j])
    out[i, j] = x * np.tanh(x) + np.exp(-x)


def activated(n, length, is_first=False):
    a, b = (np.zeros((n, length), np.int8) for _ in range(2))
    between, last = np.zeros((n, n), np.int32), np.zeros((n, n), np.float32)
    product = short_product, (n, n), a, b, between
    other = activation, (n, n), np.zeros((n, n), np.int32) if is_first else between, last
    return submissions(*((other, product) if is_first else (product, other)))


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("strategy", ["sequence", "fused"])
def test_functions_would_have_no_vectors_beside_short_products_of_integers(strategy, is_first):
    _, boundary = launches(activated(200, 64, is_first), strategy)
    assert "where no vectors would be made of work-items of activation," in boundary
    required = FusionOptions(strategy="fused", require=True)
    assert len(make_plan(activated(200, 64, is_first), required, TWO_CORES).stages) == 1
    assert launches(activated(200, 64, is_first), strategy, H100) == [None]


def test_functions_beside_long_products_may_do_without_vectors():
    assert launches(activated(200, 4000), "fused") == [None]
    assert launches(activated(8, 64), "sequence") == [None]


def test_a_launch_counts_more_than_few_work_items():
    assert launches(listed(row_sums, rows=16)) == [None]


def test_lanes_of_warps_are_no_vectors():
    assert launches(listed(row_sums), target=H100) == [None]
