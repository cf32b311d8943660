"""Launches that leave the caches store around them, and their plans serve no others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.ir.printer import print_kernel
from fusionq.planning import overlap
from fusionq.planning.planner import holds_for, make_plan
from tests.unit.lists import submissions
from tests.unit.planning.plans import TARGET, copy, mul, private, shifted, vector

STREAMING = replace(TARGET, device=replace(TARGET.device, streams_stores=True), cache_bytes=24_000)
"""12,000 bytes stay in its caches: 1,000 elements of three arrays of float32."""


@fq.kernel
def doubled(item: fq.Item, a, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i, j] * 2


def products(n, target=STREAMING, **options):
    listed = submissions((mul, n, vector(n), vector(n), vector(n)))
    return make_plan(listed, FusionOptions(**options), target), listed


def streamed(plan):
    """Of each launch, whether it stores around the caches."""
    return ["# non-temporal" in print_kernel(stage.kernel) for stage in plan.stages]


@pytest.mark.parametrize("n", [1, 1_000, 1_001, 50_000])
def test_the_bytes_of_a_launch_decide(n):
    assert streamed(products(n)[0]) == [n > 1_000]


def test_compilers_without_masks_may_make_no_vectors_of_such_stores():
    device = replace(STREAMING.device, masks_vectors=False)
    plan, _ = products(50_000, replace(STREAMING, device=device))
    assert streamed(plan) == [False]


def test_a_plan_serves_sizes_on_its_side():
    lists = {n: products(n) for n in (1, 999, 1_000, 1_001, 60_000)}
    for n, (plan, _) in lists.items():
        for other, (_, listed) in lists.items():
            if n > 1 and other > 1:  # extents of 1 are another structure
                assert holds_for(plan, listed) == ((n > 1_000) == (other > 1_000))


def test_sizes_of_all_dimensions_count():
    def listed(*shape):
        a, out = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        return submissions((doubled, shape, a, out))

    inside, beyond = listed(23, 64), listed(25, 64)
    plans = [make_plan(x, FusionOptions(), STREAMING) for x in (inside, beyond)]
    assert [streamed(plan) for plan in plans] == [[False], [True]]
    assert not holds_for(plans[0], beyond)
    assert not holds_for(plans[1], inside)
    assert holds_for(plans[0], listed(10, 51))


@pytest.mark.parametrize(
    ("columns", "view", "expected"),
    [
        (64, np.s_[:], True),
        (65, np.s_[:], False),
        (64, np.s_[:, :-1], True),  # of longer rows, which begin where vectors may
        (65, np.s_[:, :-1], False),
        (128, np.s_[:, 64:], True),
        (128, np.s_[:, 63:-1], False),
    ],
)
def test_rows_begin_where_vectors_may(columns, view, expected):
    def listed(rows):
        whole = np.zeros((rows, columns), np.float32)
        a = np.zeros(whole[view].shape, np.float32)
        return submissions((doubled, a.shape, a, whole[view]))

    plan = make_plan(listed(100), FusionOptions(), STREAMING)
    assert streamed(plan) == [expected]
    assert holds_for(plan, listed(200))


def test_a_plan_serves_rows_on_its_side():
    def listed(*shape):
        a, out = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        return submissions((doubled, shape, a, out))

    lists = {n: listed(100, n) for n in (64, 65, 128, 130)}
    for n, made in lists.items():
        plan = make_plan(made, FusionOptions(), STREAMING)
        for other, those in lists.items():
            assert holds_for(plan, those) == ((n % 64 == 0) == (other % 64 == 0))


@fq.kernel
def halves(item: fq.Item, t, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = t[max(i - 1, 0), j] / 2 + t[i, j]


def test_overlapped_tiles_count_what_stays_in_memory(monkeypatch):
    """Of three arrays one is computed anew: 1,500 elements of two stay in the caches."""

    def listed(*shape):
        a, t, out = (np.zeros(shape, np.float32) for _ in range(3))
        t = private(t)
        return submissions((doubled, shape, a, t), (halves, shape, t, out))

    monkeypatch.setattr(overlap, "WAYS", ("tiled",))
    plans = {}
    for n in (50, 51, 120):
        plans[n] = made = make_plan(listed(30, n), FusionOptions(strategy="overlap"), STREAMING)
        assert [stage.tiling is not None for stage in made.stages] == [True]
        assert streamed(made) == [n > 50]
    assert holds_for(plans[51], listed(30, 60))
    assert not holds_for(plans[51], listed(30, 49))
    assert not holds_for(plans[50], listed(30, 60))


def test_each_launch_of_a_list_by_itself():
    n = 1_200
    a, b, c, d = (vector(n) for _ in range(4))
    calls = (copy, n, a, b), (shifted, n - 1, b, c), (mul, n, a, c, d)
    plan = make_plan(submissions(*calls), FusionOptions(strategy="unfused"), STREAMING)
    assert streamed(plan) == [False, False, True]


def test_equal_launches_have_one_kernel():
    n = 2_000
    a, b, c, d = (vector(n) for _ in range(4))
    calls = (copy, n, a, b), (shifted, n - 1, b, c), (copy, n, c, d)
    plan = make_plan(submissions(*calls), FusionOptions(strategy="unfused"), STREAMING)
    assert plan.stages[0].kernel is plan.stages[2].kernel


def test_devices_that_make_nothing_of_it():
    quiet = replace(STREAMING, device=TARGET.device)
    plan, _ = products(60_000, quiet)
    assert streamed(plan) == [False]
    assert holds_for(plan, products(10, quiet)[1])
