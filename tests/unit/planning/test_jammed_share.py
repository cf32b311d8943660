"""Launches whose work-items do several neighbours together are worth more than joins without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.base.target import Target
from fusionq.planning.jammed_launches import jammed_share
from fusionq.planning.plan import Plan
from fusionq.planning.planner import holds_for, make_plan
from tests.unit.cuda.compile_only import TARGET as H100
from tests.unit.lists import submissions
from tests.unit.targets import TWO_CORES

JAMMING = replace(TWO_CORES, device=replace(TWO_CORES.device, jams_items=True))
ROWS, LENGTH, COLUMNS = 512, 256, 768


@fq.kernel
def product(item: fq.Item, a, b, out):
    i, j = item.get_id(0), item.get_id(1)
    total = np.float32(0)
    for k in range(a.shape[1]):
        total += a[i, k] * b[k, j]
    out[i, j] = total


@fq.kernel
def product_by_groups(item: fq.NdItem, a, b, out):
    i, j = item.get_global_id(0), item.get_global_id(1)
    total = np.float32(0)
    for k in range(a.shape[1]):
        total += a[i, k] * b[k, j]
    out[i, j] = total


@fq.kernel
def byte_product(item: fq.Item, a, b, out):
    i, j = item.get_id(0), item.get_id(1)
    total = np.int32(0)
    for k in range(a.shape[1]):
        total += np.int32(a[i, k]) * np.int32(b[j, k])
    out[i, j] = total


@fq.kernel
def halves(item: fq.Item, a, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i, j] * a[i, j + a.shape[1] // 2]


def floats(*shape: int) -> object:
    return np.zeros(shape, np.float32)


def gated(rows: int = ROWS, length: int = LENGTH, columns: int = COLUMNS) -> Sequence[object]:
    """A product, and what combines elements of its rows, which a work-group of a row can hold."""
    made = floats(rows, columns)
    call = product, (rows, columns), floats(rows, length), floats(length, columns), made
    return submissions(call, (halves, (rows, columns // 2), made, floats(rows, columns // 2)))


def plan_of(listed: Sequence[object], target: Target = JAMMING, **options: object) -> Plan:
    return make_plan(listed, FusionOptions(**options), target, measured=lambda: target)


@pytest.mark.parametrize("strategy", ["fused", "sequence"])
def test_a_product_stays_apart_from_what_its_rows_would_wait_for(strategy: str) -> None:
    first, second = plan_of(gated(), strategy=strategy).stages
    assert first.items_at_once == (4, 1)
    assert second.items_at_once == ()
    if strategy == "fused":
        assert "where work-items of product would not do several neighbours together" in str(
            second.boundary
        )


def test_where_none_do_so_they_join() -> None:
    for target in (TWO_CORES, H100):
        assert len(plan_of(gated(), target, strategy="fused").stages) == 1
    for listed in (gated(rows=7), gated(length=8)):
        assert len(plan_of(listed, strategy="fused").stages) == 1
    assert len(plan_of(gated(), require=True).stages) == 1


def test_a_plan_serves_sizes_of_its_order_only() -> None:
    small, large = (plan_of(gated(rows=n), strategy="fused") for n in (7, ROWS))
    assert holds_for(large, gated(rows=ROWS - 2))
    assert not holds_for(large, gated(rows=7))
    assert not holds_for(small, gated(rows=ROWS))


def test_the_share_is_that_of_a_launch_alone() -> None:
    def share(kernel: object, range_: object, a: object, b: object, target: Target) -> float:
        (one,) = submissions((kernel, range_, a, b, floats(ROWS, COLUMNS)))
        return jammed_share(one, target)

    a, b, range_ = floats(ROWS, LENGTH), floats(LENGTH, COLUMNS), (ROWS, COLUMNS)
    assert 0.2 < share(product, range_, a, b, JAMMING) < 0.9
    assert share(product, range_, a, b, TWO_CORES) == 1
    assert share(product, (4, 16), a, b, JAMMING) == 1
    assert share(product, (7, COLUMNS), a, b, JAMMING) == 1
    assert share(product, range_, floats(ROWS, 4), b, JAMMING) == 1
    groups = fq.NdRange(range_, (1, 256))
    assert share(product_by_groups, groups, a, b, JAMMING) == 1
    rows, columns = np.zeros((ROWS, LENGTH), np.int8), np.zeros((COLUMNS, LENGTH), np.int8)
    assert share(byte_product, range_, rows, columns, JAMMING) == 1
    (last,) = submissions((halves, (ROWS, COLUMNS // 2), floats(*range_), floats(*range_)))
    assert jammed_share(last, JAMMING) == 1
