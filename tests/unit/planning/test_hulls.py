"""Submissions over staggered grids meet in the hull of their ranges, where they depend on nothing
of each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.base.target import LaunchShape, Target
from fusionq.planning.launching import launch_shape_of
from fusionq.planning.plan import Plan
from fusionq.planning.planner import holds_for, make_plan
from tests.unit.lists import submissions
from tests.unit.targets import TWO_CORES

TARGET = replace(TWO_CORES, costs=replace(TWO_CORES.costs, launch_seconds=8e-6))

ORDERING = replace(TARGET, device=replace(TARGET.device, jams_rows=True))
"""Whose planner interchanges dimensions."""


@fq.kernel
def differ_rows(item: fq.Item, a, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i + 1, j] - a[i, j]


@fq.kernel
def differ_columns(item: fq.Item, a, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i, j + 1] - a[i, j]


@fq.kernel
def differ_planes(item: fq.Item, a, out):
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    out[i, j, k] = a[i, j, k + 1] - a[i, j, k]


@fq.kernel
def add_one(item: fq.Item, a):
    if item.get_id(0) >= a.shape[0]:
        return
    a[item.get_id(0), item.get_id(1)] += 1


@fq.kernel
def by_groups(item: fq.NdItem, a, out):
    i, j = item.get_global_id(0), item.get_global_id(1)
    out[i, j] = a[i, j]


def array(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def staggered(n: int, m: int):
    a = array(n + 1, m + 1)
    return (differ_rows, (n, m + 1), a, array(n, m + 1)), (
        differ_columns, (n + 1, m), a, array(n + 1, m)
    )  # fmt: skip


def plan(*calls, target: Target = TARGET, **options) -> Plan:
    return make_plan(submissions(*calls), FusionOptions(**options), target)


def shapes(made: Plan) -> list[tuple[int, str]]:
    return [(len(stage.submissions), stage.mode) for stage in made.stages]


@pytest.mark.parametrize("strategy", ["sequence", "fused"])
@pytest.mark.parametrize(("n", "m"), [(96, 96), (97, 64), (1, 200)])
def test_staggered_grids_are_one_launch(n: int, m: int, strategy) -> None:
    calls = staggered(n, m)
    made = plan(*calls, strategy=strategy)
    assert shapes(made) == [(2, "hull")]
    (stage,) = made.stages
    for rows, columns in ((n, m), (n + 1, m + 3)):
        other = submissions(*staggered(rows, columns))
        assert tuple(stage.range_of(other)) == (rows + 1, columns + 1)
        launched = launch_shape_of(stage, other, TARGET)
        assert isinstance(launched, LaunchShape)
        assert launched.global_range >= (rows + 1, columns + 1)


def test_nothing_is_divided() -> None:
    from fusionq.ir.nodes import Binary
    from fusionq.ir.walk import expressions

    (stage,) = plan(*staggered(96, 96), strategy="fused").stages
    used = {e.op for e in expressions(stage.kernel.body) if isinstance(e, Binary)}
    assert not used & {"mod", "floordiv"}


def test_three_dimensions() -> None:
    a = array(9, 33, 65)
    ranges = ((8, 33, 64), (9, 32, 64), (9, 33, 63))
    made = plan(*((differ_planes, r, a, array(*r)) for r in ranges), strategy="fused")
    assert shapes(made) == [(3, "hull")]
    assert tuple(made.stages[0].range_of(submissions(
        *((differ_planes, r, a, array(*r)) for r in ranges)
    ))) == (9, 33, 64)  # fmt: skip


@fq.kernel
def first_row(item: fq.Item, values, out):
    out[0, item.get_id(0)] = values[item.get_id(0)]


@pytest.mark.parametrize("items", [65, 80])
def test_a_row_that_is_longer_than_those_of_the_plane(items: int) -> None:
    row = (first_row, items, array(items), array(1, items))
    made = plan((add_one, (64, 64), array(64, 64)), row, strategy="fused")
    assert shapes(made) == [(2, "hull")]
    other = submissions(
        (add_one, (70, 70), array(70, 70)), (first_row, 71, array(71), array(1, 71))
    )
    assert tuple(made.stages[0].range_of(other)) == (70, 71)


@fq.kernel
def turned(item: fq.Item, a, out):
    out[item.get_id(1), item.get_id(0)] = a[item.get_id(1), item.get_id(0)]


def test_ranges_in_different_orders_of_dimensions() -> None:
    """The hull holds each range in the order in which its work-items are done."""

    def calls(n: int, m: int):
        return (
            (turned, (m, n), array(n, m), array(n, m)),
            (add_one, (m, n), array(m, n)),
            (first_row, max(n, m) + 1, array(max(n, m) + 1), array(1, max(n, m) + 1)),
        )

    made = plan(*calls(80, 96), target=ORDERING, strategy="fused")
    assert shapes(made) == [(3, "hull")]
    (stage,) = made.stages
    assert (stage.order, stage.orders) == ((), ((1, 0), (), ()))
    assert tuple(stage.range_of(submissions(*calls(80, 96)))) == (96, 97)
    assert tuple(stage.range_of(submissions(*calls(96, 80)))) == (96, 97)


def test_ranges_in_one_order_of_dimensions() -> None:
    def calls(n: int, m: int):
        return [(turned, r, array(99, 99), array(99, 99)) for r in ((n, m), (n + 1, m - 1))]

    made = plan(*calls(80, 96), target=ORDERING, strategy="fused")
    assert shapes(made) == [(2, "hull")]
    (stage,) = made.stages
    assert (stage.order, stage.orders) == ((1, 0), ())
    assert tuple(stage.range_of(submissions(*calls(80, 96)))) == (96, 81)


def test_a_range_that_holds_all_others_needs_no_hull() -> None:
    whole = (add_one, (97, 97), array(97, 97))
    assert shapes(plan(*staggered(96, 96), whole, strategy="fused")) == [(3, "ids")]


def test_hulls_of_which_most_has_nothing_to_do() -> None:
    made = plan(
        (add_one, (1024, 2), array(1024, 2)), (add_one, (2, 1024), array(2, 1024)),
        strategy="fused",
    )  # fmt: skip
    assert all(mode != "hull" for _, mode in shapes(made))


def test_a_plan_serves_hulls_of_its_kind_only() -> None:
    made = plan(*staggered(96, 96), strategy="fused")
    assert holds_for(made, submissions(*staggered(97, 97)))
    assert not holds_for(made, submissions(*staggered(2, 96)))


@pytest.mark.parametrize("first", [(96, 97), (97, 96)])
def test_those_that_depend_on_each_other_do_not_meet_there(first: tuple[int, int]) -> None:
    """Neither where the same element is another work-item's by linear ids, nor where ids are equal,
    since an elementary question about two ranges is asked of their own space."""
    shared, other = array(97, 97), first[::-1]
    made = plan((add_one, first, shared), (add_one, other, shared), strategy="fused")
    assert all(mode != "hull" for _, mode in shapes(made))


def test_empty_ranges_and_work_groups_have_no_hull() -> None:
    empty = (add_one, (0, 400), array(1, 400))
    made = plan(*staggered(96, 96), empty, strategy="fused")
    assert all(mode != "hull" or count == 2 for count, mode in shapes(made))
    groups = (by_groups, fq.NdRange((96, 128), (1, 32)), array(96, 128), array(96, 128))
    made = plan((add_one, (97, 96), array(97, 96)), groups, strategy="fused")
    assert all(mode != "hull" for _, mode in shapes(made))


def test_persistent_kernels_and_tiles_have_none() -> None:
    calls = (*staggered(96, 96), *staggered(96, 96))
    for strategy in ("megakernel", "overlap"):
        made = plan(*calls, strategy=strategy)
        if made.strategy == strategy:
            assert all(mode != "hull" for _, mode in shapes(made))
