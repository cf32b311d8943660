"""Submissions over the parts of points that are one launch with those over points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.planning.plan import Plan
from fusionq.planning.planner import holds_for, make_plan
from fusionq.planning.structure import structure_key
from tests.unit.lists import submissions
from tests.unit.planning.plans import TARGET
from tests.unit.planning.test_side_by_side import GPU

N = 1_000_000
"""So many that work-groups of points and their parts, with barriers, take longer than launches."""
FEW = 1000


@fq.kernel
def rotated(item: fq.Item, x, v):
    """A point a work-item."""
    i = item.get_id(0)
    for k in range(3):
        v[i, k] = x[i, (k + 1) % 3] - x[i, k]


@fq.kernel
def lengths(item: fq.Item, x, out):
    i = item.get_id(0)
    out[i] = x[i, 0] * x[i, 0] + x[i, 1] * x[i, 1]


@fq.kernel
def moved(item: fq.Item, x, v):
    i, k = item.get_id(0), item.get_id(1)
    x[i, k] = x[i, k] + v[i, k]


@fq.kernel
def by_the_next(item: fq.Item, x, v):
    i, k = item.get_id(0), item.get_id(1)
    x[i, k] = v[min(i + 1, v.shape[0] - 1), k]


@fq.kernel
def with_array(item: fq.Item, x, v):
    i, k = item.get_id(0), item.get_id(1)
    own = fq.PrivateArray(2, np.float32)
    own[k % 2] = v[i, k]
    x[i, k] = own[0]


@fq.kernel
def of_all(item: fq.Item, x, v):
    i, k = item.get_id(0), item.get_id(1)
    x[3 * i + k] = v[3 * i + k]


@fq.kernel
def of_pixels(item: fq.Item, x, v):
    y, i, c = item.get_id(0), item.get_id(1), item.get_id(2)
    x[y, i, c] = x[y, i, c] * v[y, i, c]


@fq.kernel
def grey(item: fq.Item, x, out):
    y, i = item.get_id(0), item.get_id(1)
    out[y, i] = x[y, i, 0] + x[y, i, 1] + x[y, i, 2]


def floats(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def plan_of(*calls: Any, target: Any = GPU, **options: Any) -> Plan:
    options.setdefault("strategy", "sequence")
    return make_plan(submissions(*calls), FusionOptions(**options), target)


def launches(plan: Plan) -> list[tuple[int, ...]]:
    return [stage.submissions for stage in plan.stages]


def chain(n: int = N, parts: int = 3, second: Any = moved) -> list[Any]:
    x, v = floats(n, parts), floats(n, parts)
    return [(rotated, n, x, v), (second, (n, parts), x, v), (lengths, n, x, floats(n))]


@pytest.mark.parametrize("points", (N, FEW))
@pytest.mark.parametrize("strategy", ("auto", "fused", "sequence"))
def test_parts_are_done_with_their_points(strategy: str, points: int) -> None:
    plan = plan_of(*chain(points), strategy=strategy)
    assert launches(plan) == [(0, 1, 2)]
    assert {d.scope for d in plan.dependences} == {"ITEM"}


def test_the_range_is_that_of_points_wherever_it_comes_from() -> None:
    x, v = floats(N, 3), floats(N, 3)
    calls = (moved, (N, 3), x, v), (lengths, N, x, floats(N))
    plan = plan_of(*calls)
    assert launches(plan) == [(0, 1)]
    assert tuple(plan.stages[0].range_of(submissions(*calls))) == (N,)


def test_pixels() -> None:
    x, v = floats(600, 800, 3), floats(600, 800, 3)
    calls = (of_pixels, (600, 800, 3), x, v), (grey, (600, 800), x, floats(600, 800))
    plan = plan_of(*calls)
    assert launches(plan) == [(0, 1)]
    assert tuple(plan.stages[0].range_of(submissions(*calls))) == (600, 800)


@pytest.mark.parametrize(
    "calls, apart",
    (
        (chain(second=by_the_next), [(0,), (1, 2)]),  # across points
        (chain(second=with_array), [(0,), (1,), (2,)]),  # an array of its own for each part
        (chain(parts=5), [(0,), (1,), (2,)]),  # not few
    ),
)
def test_parts_that_are_launches_of_their_own(
    calls: list[Any], apart: list[tuple[int, ...]]
) -> None:
    assert launches(plan_of(*calls)) == apart


def test_points_that_no_array_has() -> None:
    x, v = floats(3 * N), floats(3 * N)
    calls = (of_all, (N, 3), x, v), (lengths, N, floats(N, 2), floats(N))
    assert launches(plan_of(*calls)) == [(0,), (1,)]


def test_parts_alone_stay_so() -> None:
    """A launch in which no submission is over points has a work-item for each part."""
    x, v, w = floats(N, 3), floats(N, 3), floats(N, 3)
    calls = (moved, (N, 3), x, v), (by_the_next, (N, 3), w, x), (lengths, N, w, floats(N))
    plan = plan_of(*calls)
    assert launches(plan) == [(0,), (1, 2)]
    ranges = [tuple(stage.range_of(submissions(*calls))) for stage in plan.stages]
    assert ranges == [(N, 3), (N,)]


@pytest.mark.parametrize(
    "options", ({"barriers": "none"}, {"target": TARGET}, {"strategy": "unfused"})
)
def test_where_it_is_not_done(options: dict[str, Any]) -> None:
    assert len(plan_of(*chain(), **options).stages) == 3


def test_a_plan_serves_as_many_points_as_there_are_of_the_same_parts() -> None:
    options = FusionOptions(strategy="sequence")

    def serves(one: list[Any], other: list[Any]) -> bool:
        first, second = submissions(*one), submissions(*other)
        plan = make_plan(first, options, GPU)
        assert launches(plan) == [(0, 1, 2)]
        assert structure_key(first, options) == structure_key(second, options)
        return holds_for(plan, second)

    assert serves(chain(N), chain(N + 1))
    assert not serves(chain(N, 3), chain(N, 4))
