"""Ranges of different shapes: joined where that costs little, or where it is asked for."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.planning.plan import Plan
from fusionq.planning.planner import holds_for, make_plan
from tests.unit.lists import submissions
from tests.unit.planning.plans import TARGET


@fq.kernel
def on_plane(item: fq.Item, a, b):
    b[item.get_id(0), item.get_id(1)] = a[item.get_id(0), item.get_id(1)] + 1


@fq.kernel
def on_vector(item: fq.Item, a, b):
    b[item.get_id(0)] = a[item.get_id(0)] + 1


def arrays(rows: int, columns: int):
    """The vector is no row of the plane, nor hardly longer than one."""
    items = 2 * columns + 1
    plane, vector = np.zeros((rows, columns), np.float32), np.zeros(items, np.float32)
    return submissions(
        (on_plane, (rows, columns), plane, plane + 0), (on_vector, items, vector, vector + 0)
    )


def plan_of(rows: int, columns: int, **options: object) -> Plan:
    return make_plan(arrays(rows, columns), FusionOptions(**options), TARGET)


@pytest.mark.parametrize(
    ("shape", "launches"),
    (((1, 1), 1), ((8, 128), 1), ((9, 256), 2), ((64, 1024), 2), ((0, 5), 1), ((3, 0), 1)),
)
def test_small_ones_join_unasked(shape, launches):
    plan = plan_of(*shape)
    assert len(plan.stages) == launches
    assert (plan.fallback is None) == (launches == 1)


def test_the_reason_says_what_to_do():
    plan = plan_of(64, 1024)
    assert plan.strategy == "unfused"
    assert plan.fallback == (
        "ranges (64, 1024), (2049,) differ in shape: one kernel would find the ids by division, "
        "which costs more than a launch; require=True joins them all the same"
    )


@pytest.mark.parametrize(
    ("rows", "options"), ((9, {"strategy": "fused"}), (64, {"require": True}))
)
def test_they_join_where_asked(rows, options):
    plan = plan_of(rows, 256 if rows < 64 else 1024, **options)
    assert plan.strategy == "fused"
    assert plan.stages[0].mode == "linear"


def test_a_launch_that_takes_much_longer_is_not_what_fused_asks_for():
    plan = plan_of(1024, 1024, strategy="fused")
    assert len(plan.stages) == 2
    assert plan.fallback is not None and "each work-item of on_plane would divide" in plan.fallback


def test_a_plan_serves_sizes_of_its_order_only():
    small, large = plan_of(4, 20), plan_of(64, 1024)
    assert holds_for(small, arrays(5, 21))
    assert not holds_for(small, arrays(64, 1024))
    assert not holds_for(large, arrays(4, 20))
    assert holds_for(large, arrays(65, 1025))


def test_equal_shapes_join_at_any_size():
    vector = np.zeros(1 << 16, np.float32)
    calls = [(on_vector, n, vector, vector + 0) for n in (1 << 16, 100)]
    plan = make_plan(submissions(*calls), FusionOptions(), TARGET)
    assert plan.strategy == "fused"


@fq.kernel
def inverse(item: fq.Item, total, out):
    i = item.get_id(0)
    out[i] = np.float32(1) / total[i]


@fq.kernel
def scaled_rows(item: fq.Item, a, scale, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i, j] * scale[i]


@pytest.mark.parametrize(("shape", "launches"), [((50, 120), 1), ((100, 300), 1), ((200, 300), 2)])
def test_rows_join_their_elements_where_few_work_items_idle(shape, launches):
    """A launch is cheaper than very many work-items that have nothing to do but for one a row."""
    plane, rows = np.zeros(shape, np.float32), np.zeros(shape[0], np.float32)
    scale, out = rows + 0, plane + 0
    listed = submissions((inverse, shape[0], rows, scale), (scaled_rows, shape, plane, scale, out))
    assert len(make_plan(listed, FusionOptions(), TARGET).stages) == launches
    assert len(make_plan(listed, FusionOptions(strategy="fused"), TARGET).stages) == 1
