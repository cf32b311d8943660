"""Work-items of plain ranges that work-groups of others do: which, and for which sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis import isl_operations
from fusionq.base.options import FusionOptions
from fusionq.planning.plan import Plan
from fusionq.planning.planner import holds_for, make_plan
from fusionq.planning.structure import structure_key
from tests.unit.lists import Flagged, submissions
from tests.unit.planning.plans import TARGET
from tests.unit.planning.test_side_by_side import GPU, WORKERS

ROWS = 4


@fq.kernel
def product(item: fq.NdItem, a, x, out):
    """Four rows a work-group."""
    row = 4 * item.get_global_id(0)
    for k in range(4):
        own = 0
        for j in range(item.get_local_id(1), a.shape[1], item.get_local_range(1)):
            own += a[row + k, j] * x[j]
        total = fq.reduce_over_group(item.get_group(), own, "add")
        if item.get_local_id(1) == 0:
            out[row + k] = total


@fq.kernel
def row_sums(item: fq.NdItem, a, out):
    """A row a work-group of one dimension."""
    i = item.get_global_id(0)
    total = fq.reduce_over_group(item.get_group(), a[i], "add")
    if item.get_local_id(0) == 0:
        out[item.get_group().get_group_id(0)] = total


@fq.kernel
def add(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] + b[i]


@fq.kernel
def shifted(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[max(i - 1, 0)]


@fq.kernel
def reversed_in_rows(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i // 4 * 4 + 3 - i % 4]


@fq.kernel
def gathered(item: fq.Item, a, at, out):
    i = item.get_id(0)
    out[i] = a[at[i]]


@fq.kernel
def counted(item: fq.Item, a, out):
    i = item.get_id(0)
    fq.AtomicRef(out, 0).fetch_add(a[i])


def ints(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.int64)


def of(rows: int, x: Any, out: Any, local: int = 8) -> tuple[Any, ...]:
    space = fq.NdRange((rows // ROWS, local), (1, local))
    return product, space, ints(rows, 16), x, out


def plan_of(*calls: Any, target: Any = TARGET, **options: Any) -> Plan:
    options.setdefault("strategy", "fused")
    return make_plan(submissions(*calls), FusionOptions(**options), target)


def members(plan: Plan) -> list[tuple[int, ...]]:
    return [part for stage in plan.stages for part in stage.inner or (stage.submissions,)]


def test_what_reads_the_rows_of_a_work_group_is_part_of_its_launch() -> None:
    y, z = ints(32), ints(32)
    plan = plan_of(of(32, ints(16), y), (add, 32, z, y, z))
    assert members(plan) == [(0, 1)]
    assert plan.stages[0].geometry == 0
    (raw,) = (d for d in plan.dependences if d.kind == "RAW")
    assert raw.scope == "GROUP"


def test_so_is_what_reads_that() -> None:
    x, y, z, w = ints(16), ints(32), ints(32), ints(32)
    calls = (add, 32, y, z, z), (reversed_in_rows, 32, z, w), (add, 32, w, y, w)
    assert members(plan_of(of(32, x, y), *calls)) == [(0, 1, 2, 3)]


def test_results_of_two_submissions_meet() -> None:
    x, y, z = ints(16), ints(32), ints(32)
    assert members(plan_of(of(32, x, y), of(32, x, z), (add, 32, y, z, z))) == [(0, 1, 2)]


def test_work_groups_of_one_dimension() -> None:
    a, y, z = ints(64), ints(8), ints(8)
    plan = plan_of((row_sums, fq.NdRange(64, 8), a, y), (add, 8, y, z, z))
    assert members(plan) == [(0, 1)]


@fq.kernel
def scaled(item: fq.Item, a, factor, out):
    i = item.get_id(0)
    out[i] = a[i] * factor[0]


@pytest.mark.parametrize(("n", "options", "launches"), [
    (64, {}, 1),
    (1 << 20, {}, 2),
    (1 << 20, {"require": True}, 1),
])  # fmt: skip
def test_one_work_group_does_not_do_what_takes_a_quarter_longer_so(n, options, launches) -> None:
    """As ``fused`` says, of which one work-group alone would do all."""
    total, a = ints(1), ints(n)
    calls = (row_sums, fq.NdRange(8, 8), ints(8), total), (scaled, n, a, total, ints(n))
    assert len(members(plan_of(*calls, **options))) == launches


@pytest.mark.parametrize(
    "calls",
    (
        lambda x, y, z: [of(32, x, y), (shifted, 32, y, z)],  # across work-groups
        lambda x, y, z: [of(32, x, y), (gathered, 32, y, ints(32), z)],  # unknown elements
        lambda x, y, z: [of(32, x, y), (add, 30, y, z, z)],  # no whole number for each
        lambda x, y, z: [of(32, x, y), (counted, 32, y, z)],  # an order of atomic operations
        lambda x, y, z: [of(32, x, y), (add, 32, x, z, z)],  # nothing of what it writes
    ),
)
def test_others_are_launches_of_their_own(calls: Any) -> None:
    x, y, z = ints(32), ints(32), ints(32)
    made = calls(x, y, z)
    assert members(plan_of(*made)) == [(0,), (1,)]


@fq.kernel
def sums_of_rows(item: fq.NdItem, a, total):
    i = item.get_global_id(0)
    own = 0
    for j in range(item.get_local_id(1), a.shape[1], item.get_local_range(1)):
        own += a[i, j]
    whole = fq.reduce_over_group(item.get_group(), own, "add")
    if item.get_local_id(1) == 0:
        total[i] = whole


@fq.kernel
def divide(item: fq.Item, a, total, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i, j] / total[i]


@fq.kernel
def divide_linear(item: fq.Item, a, total, out):
    i, j = item.get_id(0) // a.shape[1], item.get_id(0) % a.shape[1]
    out[i, j] = a[i, j] / total[i]


@fq.kernel
def divide_next(item: fq.Item, a, total, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i, j] / total[min(i + 1, total.shape[0] - 1)]


@fq.kernel
def divide_planes(item: fq.Item, a, total, out):
    i, k, j = item.get_id(0), item.get_id(1), item.get_id(2)
    out[i, k, j] = a[i, k, j] - total[i]


@fq.kernel
def without_extents(item: fq.Item, total, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i * 40 + j] = total[i] + j


@fq.kernel
def with_array(item: fq.Item, a, total, out):
    i, j = item.get_id(0), item.get_id(1)
    own = fq.PrivateArray(2, np.int64)
    own[j % 2] = total[i]
    out[i, j] = a[i, j] + own[0]


def row_list(rows: int, columns: int, local: int, divided: Any, space: Any) -> list[Any]:
    a, total, out = ints(rows, columns), ints(rows), ints(rows, columns)
    groups = fq.NdRange((rows, local), (1, local))
    return [(sums_of_rows, groups, a, total), (divided, space, a, total, out)]


def test_rows_of_work_groups() -> None:
    plan = plan_of(*row_list(6, 40, 8, divide, (6, 40)))
    assert members(plan) == [(0, 1)]
    scopes = {d.kind: d.scope for d in plan.dependences}
    assert scopes["RAW"] == "GROUP"


def test_rows_of_linear_ids() -> None:
    assert members(plan_of(*row_list(6, 40, 8, divide_linear, 240))) == [(0, 1)]
    assert members(plan_of(*row_list(6, 40, 8, divide_linear, 200))) == [(0,), (1,)]


def test_rows_of_planes() -> None:
    a, total, out = ints(6, 3, 40), ints(6), ints(6, 3, 40)
    groups = fq.NdRange((6, 8), (1, 8))
    sums = sums_of_rows, groups, ints(6, 40), total
    assert members(plan_of(sums, (divide_planes, (6, 3, 40), a, total, out))) == [(0, 1)]


def test_more_neighbours_than_a_work_group_has_work_items() -> None:
    y, z = ints(32), ints(32)
    assert members(plan_of(of(32, ints(16), y, local=2), (add, 32, y, z, z))) == [(0, 1)]


@pytest.mark.parametrize(
    "divided, space",
    (
        (divide_next, (6, 40)),  # across work-groups
        (divide, (5, 40)),  # not a row for each
        (divide, (6, 39)),  # no extent of its arrays: they have 40
        (with_array, (6, 40)),  # an array of its own for each work-item
    ),
)
def test_rows_that_are_launches_of_their_own(divided: Any, space: Any) -> None:
    assert members(plan_of(*row_list(6, 40, 8, divided, space))) == [(0,), (1,)]


def test_rows_whose_length_no_array_has() -> None:
    a, total, out = ints(6, 40), ints(6), ints(240)
    sums = sums_of_rows, fq.NdRange((6, 8), (1, 8)), a, total
    assert members(plan_of(sums, (without_extents, (6, 40), total, out))) == [(0,), (1,)]


def test_a_plan_serves_rows_of_other_sizes() -> None:
    options = FusionOptions(strategy="fused")

    def serves(one: list[Any], other: list[Any]) -> bool:
        first, second = submissions(*one), submissions(*other)
        plan = make_plan(first, options, TARGET)
        assert members(plan) == [(0, 1)]
        alike = structure_key(first, options) == structure_key(second, options)
        return alike and holds_for(plan, second)

    rows = row_list(6, 40, 8, divide, (6, 40))
    assert serves(rows, row_list(7, 56, 8, divide, (7, 56)))
    assert not serves(rows, row_list(7, 56, 8, divide, (7, 55)))
    assert not serves(rows, row_list(7, 56, 8, divide, (9, 56)))
    linear = row_list(6, 40, 8, divide_linear, 240)
    assert serves(linear, row_list(7, 40, 8, divide_linear, 280))
    assert not serves(linear, row_list(7, 40, 8, divide_linear, 240))


def test_rows_unasked_where_they_fill_vectors() -> None:
    calls = row_list(600, 640, 64, divide, (600, 640))
    assert members(plan_of(*calls, strategy="sequence")) == [(0, 1)]
    assert members(plan_of(*calls, strategy="sequence", target=GPU)) == [(0,), (1,)]
    assert members(plan_of(*calls, target=GPU)) == [(0, 1)]
    short = row_list(600, 40, 64, divide, (600, 40))
    assert members(plan_of(*short, strategy="sequence")) == [(0,), (1,)]


def test_not_where_others_read_what_it_overwrites() -> None:
    """The second work-item's element is read by every work-group of the product."""
    x, z = ints(32), ints(32)
    calls = [of(32, x, z), (add, 32, z, z, x)]
    calls[0] = (product, calls[0][1], ints(32, 32), x, z)
    assert members(plan_of(*calls)) == [(0,), (1,)]


def test_not_without_barriers() -> None:
    y, z = ints(32), ints(32)
    plan = plan_of(of(32, ints(16), y), (add, 32, z, y, z), barriers="none")
    assert members(plan) == [(0,), (1,)]


def test_not_unasked_where_lanes_are_vectors() -> None:
    y, z = ints(32), ints(32)
    calls = of(32, ints(16), y), (add, 32, z, y, z)
    assert members(plan_of(*calls, strategy="sequence")) == [(0,), (1,)]
    assert members(plan_of(*calls, strategy="sequence", target=GPU)) == [(0, 1)]


def test_a_plan_serves_as_many_for_each_work_group() -> None:
    def listed(rows: int, groups: int) -> Any:
        y, z = ints(rows), ints(rows)
        space = fq.NdRange((groups, 8), (1, 8))
        return submissions((product, space, ints(rows, 16), ints(16), y), (add, rows, z, y, z))

    plan = make_plan(listed(48, 12), FusionOptions(strategy="fused"), TARGET)
    assert members(plan) == [(0, 1)]
    assert holds_for(plan, listed(80, 20))
    assert not holds_for(plan, listed(80, 10)) and not holds_for(plan, listed(48, 11))


def test_products_side_by_side_stay_so_as_launches() -> None:
    """One launch of both, one after the other, would wait for memory twice."""
    x, y, z = ints(16), ints(1 << 14), ints(1 << 14)
    calls = of(1 << 14, x, y, 128), of(1 << 14, x, z, 128), (add, 1 << 14, y, z, z)
    assert members(plan_of(*calls, strategy="sequence", target=GPU))[-1] == (2,)
    assert members(plan_of(*calls, target=GPU)) == [(0, 1, 2)]


def test_stages_of_persistent_kernels() -> None:
    x, y, z, w = ints(16), ints(1 << 14), ints(1 << 14), ints(1 << 14)
    first = of(1 << 14, x, y, 128), of(1 << 14, x, z, 128), (add, 1 << 14, y, z, z)
    second = of(1 << 14, z, w, 128), (add, 1 << 14, w, y, y)
    plan = plan_of(*first, *second, strategy="megakernel", target=WORKERS)
    assert plan.strategy == "megakernel"
    assert members(plan) == [(0, 1, 2), (3, 4)]
    assert plan_of(*first, strategy="megakernel", target=WORKERS).strategy == "fused"


def test_work_groups_exchange_inside_stages_of_persistent_kernels() -> None:
    """Those that the user has made: none are chosen."""

    @fq.kernel
    def in_rows(item: fq.NdItem, a, out):
        row, column = item.get_global_id(0), item.get_local_id(1)
        out[row, column] = a[row, 7 - column]

    @fq.kernel
    def flipped(item: fq.Item, a, out):
        row, column = item.get_id(0), item.get_id(1)
        out[row, column] = a[31 - row, column]

    a, b, c, d = (ints(32, 8) for _ in range(4))
    space = fq.NdRange((32, 8), (1, 8))
    calls = (in_rows, space, a, b), (in_rows, space, b, c), (flipped, (32, 8), c, d)
    plan = plan_of(*calls, strategy="megakernel")
    assert members(plan) == [(0, 1), (2,)]
    plan = plan_of(*calls, strategy="megakernel", barriers="none")
    assert members(plan) == [(0,), (1,), (2,)]


def test_lists_of_many_layers_are_tried_by_their_first() -> None:
    """The residuals stay where activations do not, which would put products behind each other."""
    n = 1 << 14
    x, gate, up, change, total = ints(16), ints(n), ints(n), ints(n), ints(n)
    calls: list[tuple[Any, ...]] = []
    for _ in range(4):
        calls += [of(n, x, gate, 128), of(n, x, up, 128), (add, n, gate, up, up)]
        calls += [of(n, up, change, 128), (add, n, total, change, total)]
    found = members(plan_of(*calls, strategy="sequence", target=GPU))
    for layer in range(4):
        assert (5 * layer + 2,) in found
        assert any({5 * layer + 3, 5 * layer + 4} <= set(part) for part in found)


def test_a_list_that_is_cut_since_its_builds_take_long_is_planned_without(monkeypatch) -> None:
    """A hosted submission then is in a launch of its own, over its plain range."""
    monkeypatch.setattr("fusionq.planning.build_bound.FOREGROUND_SECONDS", 0.0)
    monkeypatch.setattr("fusionq.planning.build_bound.UNFUSED_BUILDS", 0.0)
    n = 1 << 14
    y, z, gate, up = ints(n), ints(n), ints(n), ints(n)
    calls = [of(n, ints(16), y, 128), (add, n, z, y, z), of(n, ints(16), gate, 128)]
    calls += [(add, n, up, gate, up)]
    assert members(plan_of(*calls, strategy="sequence", target=GPU)) == [(0, 1, 2, 3)]
    plan = plan_of(*calls, strategy="auto", target=GPU)
    ndims = {stage.submissions: stage.kernel.ndim for stage in plan.stages}
    assert ndims == {(0,): 2, (1,): 1, (2,): 2, (3,): 1}


def test_sizes_that_the_list_over_work_groups_does_not_have() -> None:
    """Linear ids are rows there, but how many there are decides whether halos are computed anew."""
    calls = row_list(600, 640, 64, divide_linear, 600 * 640)
    a, out = ints(600, 640), ints(600, 640)
    calls.append((divide_next, (600, 640), a, ints(600), out))
    made = submissions(*calls)
    plan = make_plan(made, FusionOptions(), TARGET, measured=lambda: TARGET)
    assert members(plan)[0] == (0, 1)
    assert holds_for(plan, made)


@fq.kernel
def norm(item: fq.NdItem, a, total):
    """All of it by one work-group."""
    own = 0
    for i in range(item.get_local_id(0), a.shape[0], item.get_local_range(0)):
        own += a[i] * a[i]
    whole = fq.reduce_over_group(item.get_group(), own, "add")
    if item.get_local_id(0) == 0:
        total[0] = whole


@fq.kernel
def clipped(item: fq.Item, a, total, out):
    i = item.get_id(0)
    out[i] = a[i] // max(total[0], 1)


def clipping(n: int, middle: Any) -> list[Any]:
    a, total, out = ints(n), ints(1), ints(n)
    group = fq.NdRange(256, 256)
    return [(norm, group, a, total), (clipped, n, a, total, middle), (add, n, middle, out, out)]


@pytest.mark.parametrize("target, few", ((TARGET, 1000), (GPU, 200)))
def test_one_work_group_does_not_do_what_all_others_would(target: Any, few: int) -> None:
    """Also where as few launches as possible are asked for, unless they are required."""
    many = 1 << 24
    assert members(plan_of(*clipping(few, ints(few)), target=target)) == [(0, 1, 2)]
    assert members(plan_of(*clipping(many, ints(many)), target=target)) == [(0,), (1, 2)]
    required = plan_of(*clipping(many, ints(many)), target=target, require=True)
    assert members(required) == [(0, 1, 2)]


def test_what_a_work_item_has_of_long_rows_is_too_large_at_once() -> None:
    """Four elements of each of 256 work-items, 256 apart in a row of 1000: isl would need minutes
    for the box around those of any work-item."""
    plan = plan_of(*clipping(1000, Flagged(ints(1000), private=True)))
    (decision,) = plan.promotions
    assert decision.scope == "global"
    assert "769 elements take 6152 bytes" in decision.reason


def test_a_plan_for_one_work_group_does_not_serve_two() -> None:
    def listed(n: int, groups: int) -> Any:
        total, a = ints(groups), ints(n)
        sums = row_sums, fq.NdRange(8 * groups, 8), ints(8 * groups), total
        return submissions(sums, (scaled, n, a, total, ints(n)))

    plan = make_plan(listed(24, 1), FusionOptions(strategy="fused"), TARGET)
    assert members(plan) == [(0, 1)]
    assert holds_for(plan, listed(24, 1))
    assert not holds_for(plan, listed(48, 2)) and not holds_for(plan, listed(48, 1))


def test_what_one_work_group_reaches_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """5,000 work-items by a work-group of 256, of which isl once left three questions."""
    left = 0

    class Counted(isl_operations.LimitReached):
        def __init__(self, *what: object) -> None:
            nonlocal left
            left += 1
            super().__init__(*what)

    monkeypatch.setattr(isl_operations, "LimitReached", Counted)
    a, total, space = ints(5000), ints(1), fq.NdRange(256, 256)
    calls = (norm, space, a, total), (clipped, 5000, a, total, a), (add, 5000, a, a, a)
    assert members(plan_of(*calls)) == [(0, 1, 2)]
    assert left == 0
