"""Launches whose work-items go along rows of their own are worth more than joins without."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.planning.own_row_launches import own_row_share
from fusionq.planning.planner import holds_for, make_plan
from tests.unit.cuda.compile_only import TARGET as H100
from tests.unit.lists import submissions
from tests.unit.targets import TWO_CORES

ALONG_ROWS = replace(TWO_CORES, device=replace(TWO_CORES.device, jams_rows=True))


@fq.kernel
def product(item: fq.Item, a, x, y):
    i = item.get_id(0)
    total = np.float32(0)
    for k in range(a.shape[1]):
        total += a[i, k] * x[k]
    y[i] = total


@fq.kernel
def columns(item: fq.Item, a, x, y):
    i = item.get_id(0)
    total = np.float32(0)
    for k in range(a.shape[0]):
        total += a[k, i] * x[k]
    y[i] = total


@fq.kernel
def product_by_groups(item: fq.NdItem, a, x, y):
    i = item.get_global_id(0)
    total = np.float32(0)
    for k in range(a.shape[1]):
        total += a[i, k] * x[k]
    y[i] = total


@fq.kernel
def rectified(item: fq.Item, y):
    i = item.get_id(0)
    y[i] = max(y[i], 0)


def floats(*shape: int) -> object:
    return np.zeros(shape, np.float32)


def share(kernel, space, rows, length, target=ALONG_ROWS):
    (one,) = submissions((kernel, space, floats(rows, length), floats(length), floats(rows)))
    return own_row_share(one, target)


def test_only_rows_that_are_long_and_many_are_gone_along() -> None:
    expected = ALONG_ROWS.costs.own_rows_share
    assert expected < 1
    assert share(product, 400, 400, 1000) == expected
    assert share(product, 400, 400, 4) == 1
    assert share(product, 2, 2, 1000) == 1
    assert share(columns, 400, 400, 400) == 1
    assert share(product_by_groups, fq.NdRange(400, 8), 400, 1000) == 1
    assert share(product, 400, 400, 1000, TWO_CORES) == 1
    assert share(product, 400, 400, 1000, H100) == 1


def layers(rows, length):
    y, z = floats(rows), floats(rows)
    first = product, rows, floats(rows, length), floats(length), y
    second = product, rows, floats(rows, rows), y, z
    return submissions(first, (rectified, rows, y), second, (rectified, rows, z))


def members(submitted, **options):
    plan = make_plan(submitted, FusionOptions(**options), ALONG_ROWS, measured=lambda: ALONG_ROWS)
    return [stage.submissions for stage in plan.stages]


@pytest.mark.parametrize("strategy", ["sequence", "fused"])
def test_two_layers_are_two_launches(strategy) -> None:
    """In one work-group all would load a row for each of their lanes."""
    assert members(layers(128, 4096), strategy=strategy) == [(0, 1), (2, 3)]
    assert members(layers(128, 4096), strategy="fused", require=True) == [(0, 1, 2, 3)]


def test_a_plan_for_short_rows_does_not_serve_long_ones() -> None:
    short = layers(128, 4)
    plan = make_plan(short, FusionOptions(strategy="fused"), ALONG_ROWS)
    assert len(plan.stages) == 1
    assert holds_for(plan, short) and not holds_for(plan, layers(128, 4096))
