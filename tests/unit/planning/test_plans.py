"""Plans: stages, promotion decisions, and the sizes they hold for."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import ArgumentError, FusionRefused, PromotionConflict
from fusionq.base.options import FusionOptions
from fusionq.base.target import DeviceInfo, target_of
from fusionq.ir.printer import print_kernel
from fusionq.ir.walk import local_memories
from fusionq.language.ranges import NdRange
from fusionq.planning.launching import launch_shape_of
from fusionq.planning.planner import holds_for, make_plan
from fusionq.planning.structure import structure_key
from fusionq.planning.submission_check import check_submission
from tests.unit.lists import Flagged, submission, submissions

TARGET = target_of(DeviceInfo(
    name="test", vendor="test", driver="1", filter_string="reference", kind="reference",
    compute_units=2, max_work_group_size=1024, local_memory_bytes=1 << 16, has_fp16=True,
    has_fp64=True, host_memory=True,
))  # fmt: skip
N = 100
BIG = 5000
"""More work-items than may run as one group."""


def vector(n=N, dtype=np.float32):
    return np.zeros(n, dtype)


def private(array):
    return Flagged(array, private=True)


def plan_of(*calls, **options):
    return make_plan(submissions(*calls), FusionOptions(**options), TARGET)


def decision(plan):
    (only,) = plan.promotions
    return only.scope, only.reason


@fq.kernel
def mul(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] * b[i]


@fq.kernel
def sub(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] - b[i]


@fq.kernel
def copy(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


@fq.kernel
def shifted(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i + 1]


def diamond(n, wrap=private):
    in1, in2, in3, in4, out = (vector(n) for _ in range(5))
    t1, t2, t3 = (wrap(vector(n)) for _ in range(3))
    return (
        (mul, n, in1, in2, t1),
        (sub, n, in1, in3, t2),
        (mul, n, t2, in4, t3),
        (sub, n, t1, t3, out),
    )


def test_the_diamond_becomes_one_kernel_with_three_variables():
    plan = plan_of(*diamond(N))
    assert plan.strategy == "fused"
    assert plan.fallback is None
    (stage,) = plan.stages
    assert stage.submissions == (0, 1, 2, 3)
    assert [p.scope for p in plan.promotions] == ["private"] * 3
    assert [p.name for p in stage.kernel.params] == ["a", "b", "b_1", "b_2", "out_3", "range_0"]
    assert print_kernel(stage.kernel).count("] = ") == 1


def test_without_flags_temporaries_stay():
    plan = plan_of(*diamond(N, wrap=lambda a: a))
    assert plan.strategy == "fused"
    assert plan.promotions == ()
    assert print_kernel(plan.stages[0].kernel).count("] = ") == 4


def test_global_dependence_is_a_launch_boundary_with_its_reason():
    a, b, c, d = (vector(BIG) for _ in range(4))
    plan = plan_of((copy, BIG, a, b), (copy, BIG, b, c), (shifted, BIG - 1, c, d))
    assert plan.strategy == "sequence"
    assert [s.submissions for s in plan.stages] == [(0, 1), (2,)]
    assert "RAW dependence of submission 2 on submission 1 has scope GLOBAL" in plan.fallback
    assert plan.stages[1].boundary == plan.fallback


def test_unfused_strategy_launches_each():
    plan = plan_of(*diamond(N), strategy="unfused")
    assert plan.strategy == "unfused"
    assert len(plan.stages) == 4
    assert {p.scope for p in plan.promotions} == {"global"}


def test_megakernel_falls_back_with_a_reason():
    plan = plan_of(*diamond(N), strategy="megakernel")
    assert plan.strategy == "fused"
    assert "megakernel" in plan.fallback


def test_require_raises_where_fusion_falls_back():
    a, b, c = vector(BIG), vector(BIG), vector(BIG)
    with pytest.raises(FusionRefused, match="scope GLOBAL"):
        plan_of((copy, BIG, a, b), (shifted, BIG - 1, b, c), require=True)
    with pytest.raises(FusionRefused, match="stays in global memory"):
        plan_of((copy, BIG, private(b), c), require=True)


# ------------------------------------------------------------------------- barriers
def barriers_in(plan):
    return print_kernel(plan.stages[0].kernel).count("group_barrier(")


def test_barriers_stand_between_all_kernels_only_if_asked_for():
    assert barriers_in(plan_of(*diamond(N))) == 0
    assert barriers_in(plan_of(*diamond(N), barriers="all")) == 3


def test_a_small_range_runs_as_one_group_with_a_barrier():
    a, b, c = vector(), vector(), vector()
    plan = plan_of((copy, N, a, b), (shifted, N - 1, b, c))
    assert plan.strategy == "fused"
    assert barriers_in(plan) == 1
    assert plan.stages[0].local_range == (256,)
    (dependence,) = plan.dependences
    assert dependence.scope == "GROUP"
    assert "the size that fusionq chose" in dependence.reason


def test_the_group_size_is_chosen_so_that_a_dependence_stays_inside():
    @fq.kernel
    def mirror_eight(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i // 8 * 8 + 7 - i % 8] = a[i]

    a, b, c = vector(BIG), vector(BIG), vector(BIG)
    calls = (mirror_eight, BIG, a, b), (copy, BIG, b, c)
    plan = plan_of(*calls)
    assert plan.strategy == "fused"
    assert plan.stages[0].local_range[0] % 8 == 0
    assert barriers_in(plan) == 1
    refused = plan_of(*calls, barriers="none")
    assert refused.strategy == "unfused"
    assert "barriers='none'" in refused.fallback


def test_one_barrier_serves_several_dependences():
    @fq.kernel
    def mirror_eight(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i // 8 * 8 + 7 - i % 8] = a[i]

    a, b, c, d, e = (vector(BIG) for _ in range(5))
    plan = plan_of(
        (mirror_eight, BIG, a, b), (mirror_eight, BIG, a, c), (copy, BIG, b, d), (copy, BIG, c, e)
    )
    assert plan.strategy == "fused"
    assert barriers_in(plan) == 1
    lines = print_kernel(plan.stages[0].kernel).splitlines()
    barrier = next(n for n, line in enumerate(lines) if "group_barrier" in line)
    third = next(n for n, line in enumerate(lines) if "# 2: copy" in line)
    assert barrier < third
    assert not any("if " in line[:4] for line in lines[barrier : barrier + 1])


# ------------------------------------------------------------------------ promotion
def test_read_before_write_is_not_promoted():
    a, b = vector(), vector()
    scope, reason = decision(plan_of((copy, N, private(a), b)))
    assert scope == "global"
    assert "no kernel of the list writes it" in reason
    c = private(vector())
    scope, reason = decision(plan_of((copy, N, c, b), (copy, N, a, c)))
    assert scope == "global"
    assert "is not certain to be preceded by a write" in reason


def test_write_under_a_condition_on_data_does_not_cover_a_read():
    @fq.kernel
    def positive(item: fq.Item, a, out):
        i = item.get_id(0)
        if a[i] > 0:
            out[i] = a[i]

    a, b, c = vector(), vector(), vector()
    flagged = private(b)
    assert decision(plan_of((positive, N, a, flagged), (copy, N, flagged, c)))[0] == "global"


def test_write_of_a_smaller_range_does_not_cover():
    a, b, c = vector(), vector(), vector()
    flagged = private(b)
    assert decision(plan_of((copy, N - 1, a, flagged), (copy, N, flagged, c)))[0] == "global"
    assert decision(plan_of((copy, N, a, flagged), (copy, N - 1, flagged, c)))[0] == "private"


def test_neighbour_read_is_not_promoted():
    a, b, c = vector(BIG), vector(BIG), vector(BIG)
    flagged = private(b)
    scope, reason = decision(plan_of((copy, BIG, a, flagged), (shifted, BIG - 1, flagged, c)))
    assert scope == "global"
    assert "survive" in reason


def test_two_launches_that_use_a_buffer_keep_it():
    a, b, c, d = (vector(BIG) for _ in range(4))
    flagged = private(b)
    plan = plan_of(
        (copy, BIG, a, flagged),
        (copy, BIG, a, c),
        (shifted, BIG - 1, c, d),
        (copy, BIG, flagged, a),
    )
    assert decision(plan)[0] == "global"
    assert "survive" in decision(plan)[1]


def test_different_views_are_not_promoted():
    a, b, c = vector(), vector(N + 1), vector()
    first, second = private(b[:N]), private(b[:-1][::1])
    assert decision(plan_of((copy, N, a, first), (copy, N, second, c)))[0] == "private"
    longer = private(b)
    scope, reason = decision(plan_of((copy, N, a, first), (copy, N, longer, c)))
    assert scope == "global"
    assert "views that differ" in reason


def test_flag_on_one_access_only_is_not_promoted():
    a, b, c = vector(), vector(), vector()
    scope, reason = decision(plan_of((copy, N, a, Flagged(b, access="private")), (copy, N, b, c)))
    assert scope == "global"
    assert "some are not" in reason


def test_flag_on_every_access_is_promoted():
    a, b, c = vector(), vector(), vector()
    flagged = Flagged(b, access="private")
    assert decision(plan_of((copy, N, a, flagged), (copy, N, flagged, c)))[0] == "private"


def test_contradicting_flags():
    b = vector()
    with pytest.raises(PromotionConflict, match="flagged for private promotion and its access"):
        plan_of((copy, N, vector(), Flagged(b, private=True, access="local")))


def test_local_promotion_of_what_a_group_exchanges():
    @fq.kernel
    def mirror_eight(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i // 8 * 8 + 7 - i % 8] = a[i]

    a, b, c = vector(BIG), vector(BIG), vector(BIG)
    flagged = Flagged(b, local=True)
    plan = plan_of((mirror_eight, BIG, a, flagged), (copy, BIG, flagged, c))
    scope, reason = decision(plan)
    assert scope == "local"
    (array,) = plan.stages[0].kernel.arrays
    assert array.space == "local"
    assert array.shape == plan.stages[0].local_range
    assert "a work-group of" in reason


def test_local_promotion_with_a_halo_inside_the_group():
    @fq.kernel
    def fill_tile(item: fq.NdItem, a, tmp):
        g = item.get_group().get_group_id(0)
        size = item.get_local_range(0)
        tmp[g * (size + 2) + item.get_local_id(0) + 1] = a[item.get_global_id(0)]
        if item.get_local_id(0) == 0:
            tmp[g * (size + 2)] = a[0]
            tmp[g * (size + 2) + size + 1] = a[0]

    @fq.kernel
    def blur(item: fq.NdItem, tmp, out):
        g = item.get_group().get_group_id(0)
        at = g * (item.get_local_range(0) + 2) + item.get_local_id(0)
        out[item.get_global_id(0)] = tmp[at] + tmp[at + 1] + tmp[at + 2]

    a, b, c = vector(96), Flagged(vector(120), local=True), vector(96)
    plan = plan_of((fill_tile, NdRange(96, 8), a, b), (blur, NdRange(96, 8), b, c))
    assert decision(plan)[0] == "local"
    assert plan.stages[0].kernel.arrays[0].shape == (10,)


def test_local_promotion_across_groups_is_refused():
    a, b, c = vector(BIG), vector(BIG), vector(BIG)
    flagged = Flagged(b, local=True)
    scope, reason = decision(plan_of((copy, BIG, a, flagged), (shifted, BIG - 1, flagged, c)))
    assert scope == "global"
    assert "survive" in reason


def test_local_promotion_that_does_not_fit():
    @fq.kernel
    def rows(item: fq.NdItem, a, out):
        i = item.get_global_id(0)
        for k in range(a.shape[1]):
            out[i, k] = a[i, k]

    def matrix():
        return np.zeros((64, 4096), np.float32)

    flagged = Flagged(matrix(), local=True)
    r = NdRange(64, 32)
    scope, reason = decision(plan_of((rows, r, matrix(), flagged), (rows, r, flagged, matrix())))
    assert scope == "global"
    assert "bytes of local memory" in reason


def test_local_arrays_that_are_not_alive_together_share_memory():
    @fq.kernel
    def mirror(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i // 8 * 8 + 7 - i % 8] = a[i]

    a, b, c, d, e = (vector(BIG) for _ in range(5))
    t1, t2, t3 = (Flagged(v, local=True) for v in (b, c, d))
    plan = plan_of(
        (mirror, BIG, a, t1), (mirror, BIG, t1, t2), (mirror, BIG, t2, t3), (copy, BIG, t3, e)
    )
    assert [p.scope for p in plan.promotions] == ["local"] * 3
    kernel = plan.stages[0].kernel
    assert len(kernel.arrays) == 3 and len(local_memories(kernel)) == 2
    assert barriers_in(plan) == 3


def test_one_access_private_and_one_local_becomes_local():
    a, b, c = vector(BIG), vector(BIG), vector(BIG)
    first, second = Flagged(b, access="private"), Flagged(b, access="local")
    assert decision(plan_of((copy, BIG, a, first), (copy, BIG, second, c)))[0] == "local"


def test_internal_needs_the_option():
    a, b, c = vector(), vector(), vector()
    flagged = Flagged(b, internal=True)
    calls = (copy, N, a, flagged), (copy, N, flagged, c)
    assert plan_of(*calls).promotions == ()
    assert decision(plan_of(*calls, promote="internal"))[0] == "private"
    flagged_calls = diamond(N)
    assert {p.scope for p in plan_of(*flagged_calls, promote="none").promotions} == {"global"}


def test_write_only_buffer_disappears():
    a, b, c = vector(), vector(), vector()
    plan = plan_of((copy, N, a, private(b)), (copy, N, a, c))
    assert decision(plan)[0] == "private"
    assert [p.name for p in plan.stages[0].kernel.params] == ["a", "out_1", "range_0"]


def test_several_elements_an_item():
    @fq.kernel
    def tile(item: fq.Item, a, out):
        i = item.get_id(0)
        for k in range(3):
            out[3 * i + k] = a[3 * i + k]

    @fq.kernel
    def backwards(item: fq.Item, a, out):
        i = item.get_id(0)
        for k in range(2, -1, -1):
            out[3 * i + k] = a[3 * i + k]

    a, b, c = vector(99), vector(99), vector(99)
    flagged = private(b)
    plan = plan_of((tile, 33, a, flagged), (backwards, 33, flagged, c))
    assert decision(plan)[0] == "private"
    assert plan.stages[0].kernel.arrays[0].shape == (3,)


def test_too_many_elements_an_item():
    @fq.kernel
    def rows(item: fq.Item, a, out):
        i = item.get_id(0)
        for k in range(a.shape[1]):
            out[i, k] = a[i, k]

    def matrix(columns):
        return np.zeros((4, columns), np.float32)

    for columns, expected in ((8, "private"), (4096, "global")):
        flagged = private(matrix(columns))
        plan = plan_of((rows, 4, matrix(columns), flagged), (rows, 4, flagged, matrix(columns)))
        assert decision(plan)[0] == expected


def test_written_then_read_inside_one_kernel():
    @fq.kernel
    def twice(item: fq.Item, a, tmp, out):
        i = item.get_id(0)
        tmp[i] = a[i]
        out[i] = tmp[i] + tmp[i]

    @fq.kernel
    def wrong_order(item: fq.Item, a, tmp, out):
        i = item.get_id(0)
        out[i] = tmp[i]
        tmp[i] = a[i]

    a, b, c = vector(), private(vector()), vector()
    assert decision(plan_of((twice, N, a, b, c)))[0] == "private"
    assert decision(plan_of((wrong_order, N, a, b, c)))[0] == "global"


def test_loop_order_decides_whether_a_write_comes_first():
    @fq.kernel
    def forwards(item: fq.Item, a, tmp, out):
        i = item.get_id(0)
        for k in range(4):
            tmp[4 * i + k] = a[4 * i + k]
            if k > 0:
                out[4 * i + k] = tmp[4 * i + k - 1]

    @fq.kernel
    def backwards(item: fq.Item, a, tmp, out):
        i = item.get_id(0)
        for k in range(3, -1, -1):
            tmp[4 * i + k] = a[4 * i + k]
            if k > 0:
                out[4 * i + k] = tmp[4 * i + k - 1]

    a, b, c = vector(), private(vector()), vector()
    assert decision(plan_of((forwards, N // 4, a, b, c)))[0] == "private"
    assert decision(plan_of((backwards, N // 4, a, b, c)))[0] == "global"


# ------------------------------------------------------------------- mixed ranges
def test_ranges_of_different_shape_run_over_linear_ids():
    @fq.kernel
    def copy2(item: fq.Item, a, out):
        i = item.get_id(0)
        j = item.get_id(1)
        out[i, j] = a[i, j]

    a, c = vector(), np.zeros((10, 10), np.float32)
    b = vector()
    plan = plan_of((copy, N, a, b), (copy2, (10, 10), b.reshape(10, 10), c))
    assert plan.strategy == "fused"
    assert plan.stages[0].kernel.ndim == 1
    assert plan.stages[0].mode == "linear"


def test_different_explicit_groups_are_separate_stages():
    @fq.kernel
    def nd(item: fq.NdItem, a, out):
        i = item.get_global_id(0)
        out[i] = a[i]

    a, b, c, d = (vector() for _ in range(4))
    plan = plan_of((nd, NdRange(N, 10), a, b), (nd, NdRange(N, 20), c, d))
    assert [s.submissions for s in plan.stages] == [(0,), (1,)]
    assert "work-group sizes differ" in plan.fallback
    mixed = plan_of((nd, NdRange(N, 10), a, b), (copy, N - 5, b, d))
    assert mixed.strategy == "fused"
    assert launch_shape_of(
        mixed.stages[0], submissions((nd, NdRange(N, 10), a, b), (copy, N - 5, b, d)), TARGET
    ).local_range == (10,)


def test_group_dependence_of_explicit_groups_fuses_with_a_barrier():
    @fq.kernel
    def mirror(item: fq.NdItem, a, out):
        i = item.get_global_id(0)
        base = i - item.get_local_id(0)
        out[base + item.get_local_range(0) - 1 - item.get_local_id(0)] = a[i]

    @fq.kernel
    def nd(item: fq.NdItem, a, out):
        i = item.get_global_id(0)
        out[i] = a[i]

    a, b, c = vector(), vector(), vector()
    plan = plan_of((mirror, NdRange(N, 10), a, b), (nd, NdRange(N, 10), b, c))
    assert plan.strategy == "fused"
    assert barriers_in(plan) == 1


# ------------------------------------------------------------------------- validity
def keyed(calls):
    return structure_key(submissions(*calls), FusionOptions())


def test_another_size_has_the_same_key_and_plan():
    plan = plan_of(*diamond(N))
    for n in (1, 7, 1000):
        assert keyed(diamond(n)) == keyed(diamond(N))
        assert holds_for(plan, submissions(*diamond(n)))


def test_size_at_which_the_scope_changes_needs_another_plan():
    @fq.kernel
    def reverse(item: fq.Item, a, out):
        i = item.get_id(0)
        out[item.get_range(0) - 1 - i] = a[i]

    def calls(n):
        a, b, c = vector(n), vector(n), vector(n)
        return (reverse, n, a, b), (copy, n, b, c)

    many, one = plan_of(*calls(BIG)), plan_of(*calls(1))
    assert (many.strategy, one.strategy) == ("unfused", "fused")
    assert holds_for(many, submissions(*calls(2 * BIG)))
    assert not holds_for(many, submissions(*calls(1)))
    assert not holds_for(one, submissions(*calls(2)))
    group = plan_of(*calls(100))
    assert group.strategy == "fused"
    assert holds_for(group, submissions(*calls(200)))
    assert not holds_for(group, submissions(*calls(300)))


def test_scalar_that_decides_needs_another_plan():
    @fq.kernel
    def offset(item: fq.Item, a, out, k):
        i = item.get_id(0)
        if i + k < item.get_range(0):
            out[i] = a[i + k]

    @fq.kernel
    def scaled(item: fq.Item, a, out, k):
        i = item.get_id(0)
        out[i] = a[i] * k

    a, b, c = vector(), vector(), vector()

    def calls(kernel, k):
        return (copy, N, a, b), (kernel, N, b, c, k)

    plan = plan_of(*calls(offset, 0))
    assert plan.strategy == "fused"
    assert not holds_for(plan, submissions(*calls(offset, 1)))
    free = plan_of(*calls(scaled, 0))
    assert holds_for(free, submissions(*calls(scaled, 12345)))


def test_equal_scalars_that_become_different_need_another_plan():
    @fq.kernel
    def at(item: fq.Item, a, out, k):
        i = item.get_id(0)
        if i + k < out.shape[0]:
            out[i + k] = a[i]

    a, b, c = vector(), vector(), vector()

    def calls(k1, k2):
        return (at, N, a, b, k1), (at, N, c, b, k2)

    plan = plan_of(*calls(3, 3))
    assert plan.strategy == "fused"
    assert holds_for(plan, submissions(*calls(5, 5)))
    assert not holds_for(plan, submissions(*calls(5, 6)))


def test_pinned_size_needs_another_plan():
    @fq.kernel
    def flat(item: fq.Item, a, out):
        i = item.get_id(0)
        j = item.get_id(1)
        out[i * item.get_range(1) + j] = a[i * item.get_range(1) + j]

    def calls(rows, columns):
        a, b, c = (vector(rows * columns) for _ in range(3))
        return (flat, (rows, columns), a, b), (flat, (rows, columns), b, c)

    plan = plan_of(*calls(4, 8))
    assert plan.strategy == "fused"
    assert not holds_for(plan, submissions(*calls(4, 9)))


def test_aliasing_pattern_is_part_of_the_key():
    a, b, c = vector(), vector(), vector()
    base = vector(2 * N)
    separate = (copy, N, a, b), (copy, N, b, c)
    assert keyed(separate) != keyed(((copy, N, a, b), (copy, N, c, a)))
    one = (copy, N, a, base[:N]), (copy, N, base[1 : N + 1], c)
    two = (copy, N, a, base[:N]), (copy, N, base[2 : N + 2], c)
    assert keyed(one) != keyed(two)


def test_flags_options_and_constants_are_part_of_the_key():
    assert keyed(diamond(N)) != keyed(diamond(N, wrap=lambda a: a))
    calls = submissions(*diamond(N))
    assert structure_key(calls, FusionOptions()) != structure_key(
        calls, FusionOptions(promote="none")
    )


def test_empty_ranges_have_their_own_plan():
    assert keyed(diamond(0)) != keyed(diamond(N))
    plan = plan_of(*diamond(0))
    assert launch_shape_of(plan.stages[0], submissions(*diamond(0)), TARGET) is None


# ------------------------------------------------------------------- specialisation
@fq.kernel
def smooth(item: fq.Item, a, out, times):
    i = item.get_id(0)
    x = a[i]
    for _ in range(times):
        x = x * np.float32(0.5)
    out[i] = x


def test_a_loop_bound_becomes_a_constant_until_it_varies():
    def calls(times):
        return submissions((smooth, N, vector(), vector(), times))

    options = FusionOptions()
    first = make_plan(calls(3), options, TARGET)
    assert "range(3)" in print_kernel(first.stages[0].kernel)
    assert holds_for(first, calls(3))
    assert not holds_for(first, calls(4))
    second = make_plan(calls(4), options, TARGET, [first])
    assert "range(times)" in print_kernel(second.stages[0].kernel)
    assert all(holds_for(second, calls(times)) for times in (4, 5, 0, 3))


def test_a_constant_that_stays_is_kept_when_another_varies():
    @fq.kernel
    def two_loops(item: fq.Item, a, out, m, n):
        i = item.get_id(0)
        x = a[i]
        for _ in range(m):
            x = x + np.float32(1)
        for _ in range(n):
            x = x * np.float32(2)
        out[i] = x

    def calls(m, n):
        return submissions((two_loops, N, vector(), vector(), m, n))

    first = make_plan(calls(3, 4), FusionOptions(), TARGET)
    second = make_plan(calls(3, 5), FusionOptions(), TARGET, [first])
    text = print_kernel(second.stages[0].kernel)
    assert "range(3)" in text
    assert "range(n)" in text


def test_scalars_outside_loop_bounds_stay_parameters():
    @fq.kernel
    def scale(item: fq.Item, a, out, factor):
        i = item.get_id(0)
        out[i] = a[i] * factor

    plan = plan_of((scale, N, vector(), vector(), 3))
    assert "factor" in [p.name for p in plan.stages[0].kernel.params]


# ------------------------------------------------------------------------ bad input
def test_index_that_provably_leaves_the_array():
    with pytest.raises(ArgumentError) as error:
        check_submission(submission(shifted, N, vector(), vector()))
    message = str(error.value)
    assert "work-item (99) reads element [100]" in message
    assert "out[i] = a[i + 1]" in message
    assert "user.py:1" in message
    check_submission(submission(shifted, N - 1, vector(), vector()))


def test_guarded_and_undecidable_indices_pass():
    @fq.kernel
    def guarded(item: fq.Item, a, out):
        i = item.get_id(0)
        if i + 1 < a.shape[0]:
            out[i] = a[i + 1]

    @fq.kernel
    def on_data(item: fq.Item, a, out):
        i = item.get_id(0)
        if a[i] > 0:
            out[i] = a[i + 1]

    for kernel in (guarded, on_data):
        checked = check_submission(submission(kernel, N, vector(), vector()))
        larger = submission(kernel, 3 * N, vector(3 * N), vector(3 * N))
        assert checked.holds([larger])


def test_negative_index_is_reported():
    @fq.kernel
    def before(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i] = a[i - 1]

    with pytest.raises(ArgumentError, match=r"work-item \(0\) reads element \[-1\]"):
        check_submission(submission(before, N, vector(), vector()))


def test_array_smaller_than_the_range():
    with pytest.raises(ArgumentError, match="writes element"):
        check_submission(submission(copy, N, vector(), vector(N - 1)))


@pytest.mark.parametrize("strategy", ["fused", "sequence", "megakernel"])
def test_planning_has_two_phases(strategy):
    """Reports and benchmarks add up the seconds of each phase by its name."""
    arrays = [vector(5000) for _ in range(4)]
    calls = [(shifted, 5000, arrays[k], arrays[k + 1]) for k in range(3)]
    plan = plan_of(*calls, strategy=strategy)
    assert set(plan.timings) == {"analysis", "passes"}
    assert all(seconds > 0 for seconds in plan.timings.values())
