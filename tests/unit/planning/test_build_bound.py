"""What ``auto`` has built: the model of a build's seconds, and the bound."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.item_space import global_range
from fusionq.base.options import FusionOptions
from fusionq.ir.nodes import For
from fusionq.ir.walk import expressions, statements
from fusionq.passes.pipeline import fused_kernel
from fusionq.planning import stage_kernels
from fusionq.planning.build_bound import FOREGROUND_SECONDS
from fusionq.planning.build_cost import BuildWork, build_work
from fusionq.planning.persistent import MOST_UNASKED
from fusionq.planning.planner import make_plan
from tests.unit.lists import Flagged, submission, submissions
from tests.unit.targets import TWO_CORES

N = 300


@fq.kernel
def scale(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[i] * 2


@fq.kernel
def fold(item: fq.Item, a, b):
    i = item.get_id(0)
    total = a[i]
    for k in range(5):
        if i % 7 > k:
            total += a[i // 3]
    b[i] = total


@fq.kernel
def of_row(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[i, 0] * 2 + b[i]


@fq.kernel
def of_grid(item: fq.Item, a):
    i = item.get_id(0)
    j = item.get_id(1)
    a[i, j] = a[i, j] + 1


@fq.kernel
def blur(item: fq.Item, a, b):
    i = item.get_id(0)
    if i > 0 and i < a.shape[0] - 1:
        b[i] = a[i - 1] + a[i + 1]
    else:
        b[i] = a[i]


def vectors(count):
    return [np.zeros(N, np.float32) for _ in range(count)]


def in_turn(kernel, count, wrap=lambda array: array):
    a, b = map(wrap, vectors(2))
    return submissions(*((kernel, N, *((a, b) if k % 2 else (b, a))) for k in range(count)))


def costs(**seconds):
    return replace(TWO_CORES, build=replace(TWO_CORES.build, **seconds))


def planned(listed, target=TWO_CORES, built=lambda kernel: False, **options):
    def measured():
        costly = replace(target.costs, launch_seconds=1.0)  # any persistent kernel is faster
        return replace(target, costs=costly)

    return make_plan(listed, FusionOptions(**options), target, (), measured, built)


# ---------------------------------------------------------------------------- the model
def test_what_a_kernel_has():
    work = build_work(submission(fold, N, *vectors(2)).ir)
    assert (work.divisions, work.loops, work.conditions, work.array_pairs) == (2, 1, 1, 1)
    assert work.operations > 15
    assert (work.workers, work.bodies, work.waits, work.operands) == (0, 0, 0, 0)


def test_what_a_persistent_kernel_has():
    (stage,) = planned(in_turn(blur, 6), strategy="megakernel").stages
    work = build_work(stage.kernel)
    assert (work.workers, work.bodies, work.waits) == (1, 1, 1)
    assert work.operands > 0
    once = build_work(submission(blur, N, *vectors(2)).ir)
    assert work.operations > 1.5 * once.operations  # edge and inside of a tile
    (more,) = planned(in_turn(blur, 20), strategy="megakernel").stages
    assert build_work(more.kernel) == work


@fq.kernel
def long_functions(item: fq.Item, a, b):
    i = item.get_id(0)
    total = a[i] / 3
    for k in range(b.shape[0]):
        total += b[k] ** 1.5
    for _k in range(4):
        total = math.sqrt(total)
    b[i] = math.exp(total) + math.sin(a[i])


@pytest.mark.parametrize(("type", "functions"), [(np.float32, 17), (np.float64, 18)])
def test_what_is_unrolled_and_inlined(type, functions):
    """16 powers and the sine, of doubles the exponential too; a quotient and four roots."""
    arrays = [np.zeros(N, type) for _ in range(2)]
    work = build_work(submission(long_functions, N, *arrays).ir)
    assert (work.functions, work.quotients) == (functions, 5)
    body = submission(long_functions, N, *arrays).ir.body
    loops = [s for s in statements(body) if isinstance(s, For)]
    sizes = [len(loop.body) + len(list(expressions(loop.body))) for loop in loops]
    assert work.unrolled == 15 * sizes[0] + 3 * sizes[1]


def test_the_seconds_are_what_all_of_it_costs():
    work = BuildWork(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
    build = replace(
        TWO_CORES.build, build_program=0.5, build_operation=1, build_division=10,
        build_loop=100, build_condition=1e3, build_array_pair=1e4, build_region=1e5,
        build_workers=1e6, build_body=1e7, build_wait=1e8, build_operand=1e9,
        build_unrolled=1e10, build_function=1e11, build_quotient=1e12,
    )  # fmt: skip
    assert work.seconds(build) == 13 * 10**12 + 12 * 10**11 + 11 * 10**10 + 10987654321.5


# ---------------------------------------------------------------------------- the bound
def test_a_long_launch_becomes_shorter_ones():
    plan = planned(in_turn(scale, 64), costs(build_operation=0.0015))
    assert plan.strategy == "sequence"
    assert [len(s.submissions) for s in plan.stages] == [32] * 2
    assert len({id(s.kernel) for s in plan.stages}) == 1
    assert [s for stage in plan.stages for s in stage.submissions] == list(range(64))
    assert plan.fallback == plan.stages[1].boundary
    assert "a build of up to" in plan.fallback
    assert f"of {FOREGROUND_SECONDS:.1f} s at most: ask for strategy='fused' or tune=True" in (
        plan.fallback
    )


@fq.kernel
def mirrored_pairs(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[i // 4 * 4 + 3 - i % 4]


def test_what_leaves_a_launch_needs_no_work_groups_of_its_size():
    """Alone a submission crosses no work-items; groups of four are far too few work-items."""
    listed = in_turn(mirrored_pairs, 12)
    (whole,) = planned(listed, strategy="fused").stages
    assert whole.local_range is not None and whole.local_range[0] % 4 == 0
    stages = planned(listed, costs(build_operation=0.04)).stages
    alone = [stage for stage in stages if len(stage.submissions) == 1]
    assert alone and all(stage.local_range is None for stage in alone)


@pytest.mark.parametrize("seconds", [0.0015, 0.004, 0.04])
def test_what_leaves_a_launch_over_rows_has_its_own_range(seconds):
    """A row's work-item is its first one in a launch over the grid, and has no row by itself."""
    grid, rows = np.zeros((N, 40), np.float32), vectors(1)[0]
    listed = submissions(*(
        one for _ in range(12) for one in ((of_grid, (N, 40), grid), (of_row, N, grid, rows))
    ))  # fmt: skip
    (whole,) = planned(listed, strategy="fused").stages
    assert whole.mode == "first"
    plan = planned(listed, costs(build_operation=seconds))
    assert len(plan.stages) > 1
    for stage in plan.stages:
        own = global_range(listed[stage.geometry])
        assert stage.geometry in stage.submissions
        assert stage.kernel.ndim == len(own)
        assert all(global_range(listed[s]).size <= own.size for s in stage.submissions)


def test_what_leaves_a_launch_is_not_promoted():
    target = costs(build_operation=0.002)
    plan = planned(in_turn(scale, 64, lambda a: Flagged(a, private=True)), target)
    assert {p.scope for p in plan.promotions} == {"global"}


@pytest.mark.parametrize("options", [{"strategy": "fused"}, {"require": True}])
def test_who_asks_for_one_launch_gets_it(options):
    plan = planned(in_turn(scale, 64), costs(build_operation=1.0), **options)
    assert plan.strategy == "fused"
    assert len(plan.stages) == 1


def test_what_was_built_before_takes_no_time():
    asked = []

    def built(kernel):
        asked.append(kernel)
        return True

    plan = planned(in_turn(scale, 64), costs(build_operation=1.0), built)
    assert plan.strategy == "fused"
    assert asked == [plan.stages[0].kernel]


def test_nobody_asks_what_was_built_where_a_build_is_short():
    def built(kernel):
        raise AssertionError("asked")

    assert planned(in_turn(scale, 64), built=built).strategy == "fused"


def test_never_more_than_unfused():
    """Every submission has a launch at last, whatever it takes to build."""
    plan = planned(in_turn(scale, 8), costs(build_operation=100.0))
    assert plan.strategy == "unfused"
    different = [
        (kernel, N, *vectors(2)) for kernel in (scale, fold, scale, fold) for _ in range(2)
    ]
    plan = planned(submissions(*different), costs(build_array_pair=100.0))
    assert plan.strategy == "unfused"
    assert len(plan.stages) == 8


def test_the_bound_grows_with_the_unfused_build():
    listed = submissions((scale, N, *vectors(2)), (fold, N, *vectors(2)))
    plan = planned(listed, costs(build_program=10.0))
    assert plan.strategy == "fused"


def test_a_persistent_kernel_that_takes_long_to_build_is_not_chosen():
    listed = in_turn(blur, 8)
    target = costs(build_workers=3.0)
    assert planned(listed).strategy == "megakernel"
    plan = planned(listed, target)
    assert plan.strategy != "megakernel"
    assert "a build of up to 3.9" in plan.choice
    assert "at most: ask for strategy='megakernel' or tune=True to have it" in plan.choice
    assert planned(listed, target, strategy="megakernel").strategy == "megakernel"
    assert planned(listed, target, lambda kernel: True).strategy == "megakernel"


def test_nothing_is_fused_that_would_not_be_built(monkeypatch):
    """Pairs of submissions, each of its own kind: no kernel is made after the first that is beyond
    the bound, and none for a persistent kernel whose bodies alone are."""
    fused, different = [], 40

    def counted(analysis, members, *others):
        fused.append(len(members))
        return fused_kernel(analysis, members, *others)

    monkeypatch.setattr(stage_kernels, "fused_kernel", counted)
    calls = []
    for k in range(different):
        n = N + 16 * k
        a, b, c = (np.zeros(n, np.float32) for _ in range(3))
        calls += [(scale, n, a, b), (blur, n, b, c)]
    plan = planned(submissions(*calls), costs(build_operation=0.02))
    assert plan.strategy == "unfused" and len(plan.stages) == 2 * different
    alone = fused.count(1)
    assert len(fused) - alone <= MOST_UNASKED + 2 < different
