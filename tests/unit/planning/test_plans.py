"""Plans: stages, promotion decisions, and the sizes they hold for."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import ArgumentError, FusionRefused
from fusionq.ir.printer import print_kernel
from fusionq.language.ranges import NdRange
from fusionq.planning.launching import launch_shape_of
from fusionq.planning.submission_check import check_submission
from tests.unit.lists import submission, submissions
from tests.unit.planning.plans import (
    BIG,
    TARGET,
    N,
    barriers_in,
    copy,
    diamond,
    plan_of,
    private,
    shifted,
    vector,
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
