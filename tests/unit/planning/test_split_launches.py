"""Which launches go along rows, and for which sizes their plans serve."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.codegen.along_rows import rows_of
from fusionq.ir.printer import print_kernel
from fusionq.planning.launching import launch_shape_of
from fusionq.planning.planner import holds_for, make_plan
from tests.unit.lists import submissions
from tests.unit.targets import TWO_CORES

WITHOUT_MASKS = replace(
    TWO_CORES, device=replace(TWO_CORES.device, splits_rows=True, masks_vectors=False)
)


@fq.kernel
def with_else(item: fq.Item, a, b):
    i, j = item.get_id(0), item.get_id(1)
    if 0 < j < a.shape[1] - 1:
        b[i, j] = a[i, j - 1]
    else:
        b[i, j] = 0


@fq.kernel
def clamped(item: fq.Item, a, b):
    i, j = item.get_id(0), item.get_id(1)
    b[i, j] = a[i, max(j - 1, 0)]


@fq.kernel
def below(item: fq.Item, a, b, n):
    i, j = item.get_id(0), item.get_id(1)
    if j < n:
        b[i, j] = a[i, j]
    else:
        b[i, j] = 1


@fq.kernel
def selected(item: fq.Item, a, b):
    i, j = item.get_id(0), item.get_id(1)
    b[i, j] = a[i, j] if a[i, j] > 0 else -a[i, j]


@fq.kernel
def counting(item: fq.Item, a, b):
    i, j = item.get_id(0), item.get_id(1)
    if j > 0:
        fq.AtomicRef(b, (i, j - 1)).fetch_add(a[i, j])
    b[i, j] = 0


@fq.kernel
def in_groups(item: fq.NdItem, a, b):
    i, j = item.get_global_id(0), item.get_global_id(1)
    if 0 < j < a.shape[1] - 1:
        b[i, j] = a[i, j - 1]
    else:
        b[i, j] = item.get_local_id(1)


def listed(kernel, shape, *more, range_=None):
    arrays = [np.zeros(shape, np.float32) for _ in range(2)]
    return submissions((kernel, range_ or shape, *arrays, *more))


def planned(list_, target=WITHOUT_MASKS):
    return make_plan(list_, FusionOptions(), target)


def lanes(plan):
    (stage,) = plan.stages
    return stage.kernel.row_lanes


def test_only_where_there_are_no_registers_for_masks():
    list_ = listed(with_else, (1000, 1000))
    assert lanes(planned(list_)) == WITHOUT_MASKS.sub_group_size
    assert lanes(planned(list_, TWO_CORES)) is None
    assert planned(list_, TWO_CORES).stages[0].guards is None


@pytest.mark.parametrize(
    ("shape", "split"),
    [((1000, 1000), True), ((20, 20), False), ((100_000, 16), False), ((100_000, 128), True)],
)
def test_launches_that_save_enough_and_rows_that_are_long_enough(shape, split):
    assert (lanes(planned(listed(with_else, shape))) is not None) == split


def test_a_plan_serves_launches_on_its_side():
    lists = {n: listed(with_else, (n, 1000)) for n in (2, 3, 900, 1001, 3000)}
    plans = {n: planned(list_) for n, list_ in lists.items()}
    for plan in plans.values():
        for other, list_ in lists.items():
            if holds_for(plan, list_):
                assert lanes(plan) == lanes(plans[other])
    assert holds_for(plans[1001], lists[3000])


def test_most_of_a_row_has_to_be_inside():
    """Of arguments today's values tell."""
    assert lanes(planned(listed(below, (1000, 1000), 990))) is not None
    assert lanes(planned(listed(below, (1000, 1000), 100))) is None
    assert lanes(planned(listed(below, (1000, 1000), -5))) is None


def test_only_work_items_that_are_alone():
    assert lanes(planned(listed(selected, (1000, 1000)))) is None  # a condition on data
    assert lanes(planned(listed(counting, (1000, 1000)))) is None
    groups = listed(in_groups, (1000, 1000), range_=fq.NdRange((1000, 1000), (10, 100)))
    assert lanes(planned(groups)) is None


def test_choices_by_memory_split_rows_of_small_elements_only():
    small = [
        (selected, (1000, 1000), np.zeros((1000, 1000), dtype), np.zeros((1000, 1000), dtype))
        for dtype in (np.int8, np.int16, np.int32, np.float64)
    ]
    found = [lanes(make_plan(submissions(each), FusionOptions(), WITHOUT_MASKS)) for each in small]
    assert [f is not None for f in found] == [True, True, False, False]


def test_stages_that_are_alike_share_a_kernel():
    a, b, c = (np.zeros((1000, 1000), np.float32) for _ in range(3))
    steps = [(with_else, (1000, 1000), *pair) for pair in ((a, b), (b, c), (c, a))]
    options = FusionOptions(strategy="unfused")
    kernels = {id(s.kernel) for s in make_plan(submissions(*steps), options, WITHOUT_MASKS).stages}
    assert len(kernels) == 1


def test_rows_that_are_split_are_not_stored_around_the_caches():
    info = replace(WITHOUT_MASKS.device, streams_stores=True)
    target = replace(WITHOUT_MASKS, device=info, cache_bytes=0)
    plan = planned(listed(clamped, (2000, 2000)), target)
    assert lanes(plan) is not None
    assert "# non-temporal" not in print_kernel(plan.stages[0].kernel)


@pytest.mark.parametrize("shape", [(1000, 1000), (3, 100_000), (100_000, 130)])
def test_as_many_work_groups_as_without(shape):
    list_ = listed(with_else, shape)
    split, plain = (
        launch_shape_of(planned(list_, target).stages[0], list_, target)
        for target in (WITHOUT_MASKS, TWO_CORES)
    )
    assert split is not None and plain is not None
    assert split.local_range == (1, WITHOUT_MASKS.sub_group_size)
    groups = [
        [n // size for n, size in zip(s.global_range, s.local_range, strict=True)]
        for s in (split, plain)
    ]
    assert groups[0] == groups[1]
    assert prod(split.global_range) > 0


def test_a_kernel_whose_range_has_no_guard_is_not_split():
    (submission,) = listed(with_else, (1000, 1000))
    assert rows_of(submission.ir) is None
