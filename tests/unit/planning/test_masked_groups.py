"""Joins by barriers whose work-groups would run under masks, since ranges end in them."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.questions import Questions
from fusionq.base.options import FusionOptions
from fusionq.planning.members import Members
from fusionq.planning.plan import Plan
from fusionq.planning.planner import make_plan
from tests.unit.lists import submissions
from tests.unit.targets import TWO_CORES


@fq.kernel
def across(item: fq.Item, a, b):
    i, j = item.get_id(0), item.get_id(1)
    b[i, j] = a[i, max(j - 1, 0)] + a[i, j]


def plan_of(rows: int, columns: int, **options: object) -> Plan:
    a, b, c = (np.empty((rows, columns), np.float32) for _ in range(3))
    listed = submissions((across, (rows, columns), a, b), (across, (rows, columns), b, c))
    return make_plan(listed, FusionOptions(**options), TWO_CORES)


@pytest.mark.parametrize(("rows", "columns"), [(2048, 3008), (2048, 1024), (64, 100)])
def test_rows_of_whole_vectors_and_few_work_items_join(rows: int, columns: int) -> None:
    (stage,) = plan_of(rows, columns, strategy="sequence").stages
    assert stage.local_range is not None
    assert stage.local_range[0] == 1


@pytest.mark.parametrize("columns", [2999, 3000, 104])
def test_rows_that_end_in_a_vector_stay_apart(columns: int) -> None:
    rows = 1 << 14
    plan = plan_of(rows, columns, strategy="sequence")
    assert len(plan.stages) == 2
    assert plan.fallback is not None
    assert f"{2 * rows * columns:,} work-items would be in groups" in plan.fallback
    assert len(plan_of(rows, columns, strategy="fused").stages) == 1


def test_who_is_in_a_group_that_a_range_ends_in() -> None:
    a, b = (np.empty((10, 40), np.float32) for _ in range(2))
    listed = submissions(
        (across, (10, 40), a, b), (across, (10, 33), b, a), (across, (9, 33), b, a)
    )
    members = Members(Questions(listed), TWO_CORES, range(3))
    assert members.masked((1, 16), (10, 40)) == 10 * 8 + 10 * 1 + 9 * 1
    assert members.masked((1, 40), (10, 40)) == 10 * 33 + 9 * 33
    assert members.masked((5, 40), (10, 40)) == 10 * 33 + 9 * 33
    assert members.masked((5, 8), (10, 40)) == 10 + 9 * 33 - 5 * 32
