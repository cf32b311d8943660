"""Joins that leave lanes of vectors, or compute units, without work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.item_space import ItemSpace
from fusionq.analysis.submission import Submission
from fusionq.base.options import FusionOptions
from fusionq.base.target import Target
from fusionq.planning.item_work import item_work
from fusionq.planning.known_values import sizes_of
from fusionq.planning.members import Kind
from fusionq.planning.occupied_lanes import lost_lanes, masked_seconds, starting_seconds
from fusionq.planning.plan import Plan
from fusionq.planning.planner import holds_for, make_plan
from tests.unit.lists import submissions
from tests.unit.planning.test_waiting_threads import GPU
from tests.unit.targets import TWO_CORES

MEASURED = replace(
    TWO_CORES,
    costs=replace(TWO_CORES.costs, launch_seconds=8e-6, instruction_seconds=2e-7),
)
WANTED: tuple[dict[str, object], ...] = (
    {"strategy": "sequence"}, {"strategy": "fused"}, {"require": True},
)  # fmt: skip


@fq.kernel
def attract(item: fq.Item, position, force):
    i = item.get_id(0)
    x, y = np.float32(0), np.float32(0)
    for j in range(position.shape[0]):
        dx, dy = position[j, 0] - position[i, 0], position[j, 1] - position[i, 1]
        near = np.sqrt(dx * dx + dy * dy + np.float32(1))
        x += dx / near
        y += dy / near
    force[i, 0] = x
    force[i, 1] = y


@fq.kernel
def kick(item: fq.Item, velocity, force):
    i, d = item.get_id(0), item.get_id(1)
    velocity[i, d] += force[i, d]


@fq.kernel
def distances(item: fq.Item, points, queries, out):
    q, p = item.get_id(0), item.get_id(1)
    d = queries[q] - points[p]
    out[q, p] = d * d


@fq.kernel
def nearest(item: fq.Item, distance, out):
    q = item.get_id(0)
    best = distance[q, 0]
    for p in range(1, distance.shape[1]):
        best = min(best, distance[q, p])
    out[q] = best


@fq.kernel
def all_of_them(item: fq.Item, a, out):
    i, total = item.get_id(0), np.float32(0)
    for j in range(a.shape[0]):
        total += a[j] * a[i]
    out[i] = total


@fq.kernel
def double(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i] * 2


@fq.kernel
def bulge(item: fq.Item, a, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i, j] + 1


@fq.kernel
def far_ends(item: fq.Item, a, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[a.shape[0] - 1 - i, j] - 1


def columns(rows: int, width: int, ends: int = 4) -> Sequence[object]:
    """What leads from the first rows to the last: only work-groups of whole columns hold it."""
    a, b, c = (np.zeros((rows, width), np.float32) for _ in range(3))
    return submissions((bulge, (rows, width), a, b), (far_ends, (ends, width), b, c))


def bodies(n: int, parts: int = 2) -> Sequence[object]:
    position, force, velocity = (np.zeros((n, parts), np.float32) for _ in range(3))
    return submissions((attract, n, position, force), (kick, (n, parts), velocity, force))


def neighbours(queries: int, points: int) -> Sequence[object]:
    distance = np.zeros((queries, points), np.float32)
    p, q, out = (np.zeros(n, np.float32) for n in (points, queries, queries))
    return submissions(
        (distances, (queries, points), p, q, distance), (nearest, queries, distance, out)
    )


def one_group(n: int) -> Sequence[object]:
    a, b, c = (np.zeros(n, np.float32) for _ in range(3))
    return submissions((double, n, a, b), (all_of_them, n, b, c))


def plan_of(listed: Sequence[object], target: Target = MEASURED, **options: object) -> Plan:
    return make_plan(
        listed, FusionOptions(**options), replace(target, costs=TWO_CORES.costs),
        measured=lambda: target,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        (bodies(512), "work-items of attract in 1 of 16 lanes, is predicted to take"),
        (neighbours(512, 1024), "work-items of nearest in 1 of 16 lanes, is predicted to take"),
        (one_group(1024), "double has 1 of them for 2 compute units, is predicted to take"),
    ],
)
def test_they_join_only_where_that_is_required(listed: Sequence[object], why: str) -> None:
    plain, asked, required = (plan_of(listed, **options) for options in WANTED)
    assert [len(plan.stages) for plan in (plain, asked, required)] == [2, 2, 1]
    assert asked.strategy == "unfused"
    assert asked.fallback is not None
    assert why in asked.fallback
    assert asked.fallback.endswith("; require=True joins them all the same")
    assert plain.fallback is not None
    assert plain.fallback.endswith("; strategy='fused' joins them all the same")


@pytest.mark.parametrize("listed", [bodies(16), neighbours(32, 64), one_group(32)])
@pytest.mark.parametrize("options", WANTED)
def test_little_work_joins(listed: Sequence[object], options: dict[str, object]) -> None:
    assert len(plan_of(listed, **options).stages) == 1


def test_measured_costs_decide() -> None:
    """A launch that takes a millisecond is worth lanes without work."""
    slow = replace(MEASURED, costs=replace(MEASURED.costs, launch_seconds=1e-3))
    listed = neighbours(128, 200)
    assert [len(plan_of(listed, t, strategy="fused").stages) for t in (MEASURED, slow)] == [2, 1]


def test_costs_are_not_measured_where_no_lanes_are_lost() -> None:
    def measured() -> Target:
        raise AssertionError("nobody needs them")

    @fq.kernel
    def across(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i] = a[i // 256 * 256] + a[i]

    a, b, c = (np.zeros(1 << 14, np.float32) for _ in range(3))
    listed = submissions((double, 1 << 14, a, b), (across, 1 << 14, b, c))
    for options in ({"strategy": "fused"}, {"strategy": "sequence"}):
        plan = make_plan(listed, FusionOptions(**options), TWO_CORES, measured=measured)
        assert len(plan.stages) == 1
        assert plan.stages[0].local_range is not None


def test_a_plan_serves_sizes_of_its_order_only() -> None:
    small, large = (plan_of(bodies(n), strategy="fused") for n in (16, 512))
    assert (len(small.stages), len(large.stages)) == (1, 2)
    assert holds_for(large, bodies(510))
    assert not holds_for(small, bodies(512))
    assert not holds_for(large, bodies(16))


@pytest.mark.parametrize(
    ("range_", "local", "lanes"),
    [
        ((512,), (1, 16), 1),
        ((512, 2), (1, 16), None),
        ((512, 64), (4, 64), None),
        ((512, 64), (64, 4), 4),
    ],
)
def test_lanes_of_a_vector(
    range_: tuple[int, ...], local: tuple[int, int], lanes: int | None
) -> None:
    arrays = [np.zeros((512, 64), np.float32) for _ in range(2)]
    (submission,) = submissions((attract if len(range_) == 1 else kick, range_, *arrays))
    alone = ItemSpace("ids", len(range_), None)
    why = lost_lanes(submission, ItemSpace("first", 2, local), alone, TWO_CORES)
    assert (why is None) == (lanes is None)
    assert why is None or f"in {lanes} of 16 lanes" in why


def test_columns_lose_none() -> None:
    """Work-items of a row are beside each other."""
    arrays = [np.zeros((512, 64), np.float32) for _ in range(2)]
    (submission,) = submissions((attract, 64, *arrays))
    space = ItemSpace("last", 2, (512, 16))
    assert lost_lanes(submission, space, ItemSpace("ids", 1, None), TWO_CORES) is None


def test_memory_that_is_read_in_columns_takes_longer() -> None:
    small, wide, narrow = (
        plan_of(columns(*s), strategy="fused") for s in ((64, 64), (100, 40_000), (100, 16))
    )
    assert [stage.local_range for stage in small.stages] == [(64, 16)]
    assert len(narrow.stages) == 1  # in a worker's own cache
    first, second = wide.stages
    assert first.local_range is second.local_range is None
    assert "where they would read 48,000,000 bytes in columns, is pred" in str(second.boundary)
    assert len(plan_of(columns(100, 40_000), require=True).stages) == 1
    boundary = plan_of(columns(100, 40_000), strategy="sequence").stages[1].boundary
    assert "read 48,000,000 bytes in columns" in str(boundary)


def test_small_work_groups_take_their_start() -> None:
    spaces = [ItemSpace("ids", 2, local) for local in (None, (1, 256), (1, 32))]
    none, few, many = (starting_seconds((1024, 32), space, TWO_CORES) for space in spaces)
    assert none == 0 == starting_seconds((1024, 256), spaces[1], TWO_CORES)
    assert 0 < few == many < 1024 * TWO_CORES.costs.instruction_seconds


def test_plans_for_work_groups_of_the_user_serve_all_sizes() -> None:
    """Where submissions do nothing in launches that work-groups would not do."""

    @fq.kernel
    def group_sums(item: fq.NdItem, a, out):
        i, j = item.get_global_id(0), item.get_global_id(1)
        total = fq.reduce_over_group(item.get_group(), a[i, j], "add")
        if item.get_group().leader:
            out[i // 16, j // 16] = total

    def listed(n: int) -> Sequence[object]:
        a, b, sums = (np.zeros((n, n), np.float32) for _ in range(3))
        groups = fq.NdRange((n, n), (16, 16))
        return submissions((bulge, (n, n), a, b), (group_sums, groups, b, sums))

    for strategy in ("sequence", "fused"):
        plan = plan_of(listed(64), strategy=strategy)
        assert len(plan.stages) == 1
        assert holds_for(plan, listed(4096))


def test_threads_that_wait_join_where_it_takes_little_longer() -> None:
    """By the costs of GPUs, whose lanes without work wait for those with; of few parts, all are
    one work-item's."""
    listed = bodies(1 << 14, 5)
    made = [
        make_plan(listed, FusionOptions(**options), GPU, measured=lambda: GPU) for options in WANTED
    ]
    assert [len(plan.stages) for plan in made] == [2, 2, 1]


WITHOUT_MASKS = replace(MEASURED, device=replace(MEASURED.device, masks_vectors=False))


def doubles(*ranges: int | tuple[int, int]) -> Sequence[Submission]:
    return submissions(
        *((double, n, np.zeros(n, np.float32), np.zeros(n, np.float32)) for n in ranges)
    )


@pytest.mark.parametrize("strategy", ["sequence", "fused"])
def test_guards_that_are_masks_keep_ranges_apart(strategy: str) -> None:
    listed = doubles(5_000, 500_000)
    assert len(plan_of(listed, strategy=strategy).stages) == 1
    first, second = plan_of(listed, WITHOUT_MASKS, strategy=strategy).stages
    assert first.boundary is None
    assert "where guards that differ are masks, is predicted" in str(second.boundary)
    assert len(plan_of(listed, WITHOUT_MASKS, require=True).stages) == 1


def test_stores_under_masks_count_for_each_submission() -> None:
    """Also where those of one kind are given in two parts."""
    listed = doubles(1 << 20, 1 << 10)
    kinds = [
        Kind(s, count, item_work(s.ir, sizes_of(s), WITHOUT_MASKS), 0.0)
        for s, count in zip(listed, (3, 1), strict=True)
    ]
    parts = [replace(kinds[0], count=2), replace(kinds[0], count=1), kinds[1]]
    whole = masked_seconds(kinds, WITHOUT_MASKS)
    assert masked_seconds(parts, WITHOUT_MASKS) == pytest.approx(whole)
    fewer = masked_seconds([replace(kinds[0], count=1), kinds[1]], WITHOUT_MASKS)
    assert 0 < fewer < whole


def test_guards_that_are_masks_cost_less_than_a_launch_of_few_work_items() -> None:
    plan = plan_of(doubles(300, 1_000), WITHOUT_MASKS, strategy="sequence")
    assert len(plan.stages) == 1
    assert not holds_for(plan, doubles(5_000, 500_000))
    alike = doubles(500_000, 500_000)
    assert len(plan_of(alike, WITHOUT_MASKS, strategy="sequence").stages) == 1


@fq.kernel
def smoothed(item: fq.Item, a, out):
    i = item.get_id(0)
    if 0 < i < a.shape[0] - 1:
        out[i] = a[i - 1] + a[i + 1]


def beside_guards(n: int, *kernels: object) -> Sequence[object]:
    return submissions(*((k, n, np.zeros(n, np.float32), np.zeros(n, np.float32)) for k in kernels))


@pytest.mark.parametrize("kernels", [(smoothed, double), (double, smoothed)])
def test_kernels_with_bounds_of_their_own_stay_apart_from_others(kernels: object) -> None:
    """Alone they have no masks."""
    listed = beside_guards(500_000, *kernels)
    assert len(plan_of(listed, strategy="sequence").stages) == 1
    assert len(plan_of(listed, WITHOUT_MASKS, strategy="sequence").stages) == 2
    assert len(plan_of(listed, WITHOUT_MASKS, require=True).stages) == 1
    assert len(plan_of(beside_guards(1_000, *kernels), WITHOUT_MASKS).stages) == 1


def test_kernels_with_the_same_bounds_join() -> None:
    listed = beside_guards(500_000, smoothed, smoothed, smoothed)
    assert len(plan_of(listed, WITHOUT_MASKS, strategy="sequence").stages) == 1
