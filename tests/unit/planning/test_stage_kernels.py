"""Which launches of a list have one kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.planning.planner import make_plan
from tests.unit.lists import submissions
from tests.unit.planning.plans import TARGET, copy, plan_of, vector


@fq.kernel
def diagonal(item: fq.Item, h, k: int, low: int):
    i = item.get_id(0) + low
    h[i, k - i] = max(h[i - 1, k - i], h[i, k - i - 1]) + 1.0


@fq.kernel
def ranked(item: fq.Item, a, out, m: int):
    i = item.get_id(0)
    out[i] = a[i] * item.get_range(0) + m + a.shape[0]


@fq.kernel
def twice(item: fq.Item, a, b):
    i, j = item.get_id(0), item.get_id(1)
    b[i, j] = a[i, j] * 2


def kernels_of(plan):
    return len({id(stage.kernel) for stage in plan.stages})


def test_submissions_of_many_ranges_have_one_kernel():
    h, n = np.zeros((40, 40)), 40
    calls = [(diagonal, k, h, k, 1) for k in range(4, n - 4)]
    plan = plan_of(*calls, strategy="unfused")
    assert len(plan.stages) == len(calls)
    assert kernels_of(plan) == 1
    assert [stage.geometry for stage in plan.stages] == list(range(len(calls)))
    assert all(source.submission == s for s, stage in enumerate(plan.stages)
               for source in stage.sources)  # fmt: skip


def test_launches_of_one_kernel_take_their_own_sizes():
    sizes = (8, 8), (9, 9), (8, 20), (9, 30)
    calls = [(ranked, n, vector(size), vector(size), n) for n, size in sizes]
    plan = plan_of(*calls, strategy="unfused")
    assert kernels_of(plan) == 2, "one for sizes that are equal, one for others"
    for stage in plan.stages:
        assert stage.submissions == (stage.geometry,)
        assert all(source.submission == stage.geometry for source in stage.sources)


def test_extents_that_are_constants_are_those_of_each():
    calls = [(twice, a.shape, a, np.zeros(a.shape)) for a in (np.zeros((9, 2)), np.zeros((9, 3)))]
    plan = plan_of(*calls, strategy="unfused")
    assert [stage.kernel.params[0].extents for stage in plan.stages] == [(2,), (3,)]


def test_arrays_that_are_not_aligned_have_a_kernel_of_their_own():
    a, b, c = vector(), vector(), vector()
    first, second = submissions((copy, 100, a, b), (copy, 100, c, b))
    unaligned = replace(second.arguments[0], alignment=1)
    second = replace(second, arguments=(unaligned, *second.arguments[1:]))
    plan = make_plan((first, second), FusionOptions(strategy="unfused"), TARGET)
    assert [stage.kernel.params[0].alignment for stage in plan.stages] == [None, 1]
    assert [stage.kernel.params[0].contiguous for stage in plan.stages] == [True, False]
