"""Work-groups that do nothing together, as plain ranges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.ir.printer import print_kernel
from fusionq.language.ranges import NdRange, Range
from fusionq.planning.planner import make_plan
from fusionq.planning.ungrouped_list import ungrouped_list
from tests.unit.lists import submissions
from tests.unit.targets import TWO_CORES

CPU = replace(TWO_CORES, device=replace(TWO_CORES.device, splits_rows=True))
A = np.zeros(512, np.float32)


@fq.kernel
def by_blocks(item: fq.NdItem, a, b):
    i = item.get_group().get_group_id(0) * item.get_local_range(0) + item.get_local_id(0)
    if i < a.shape[0] and i < item.get_global_range(0):
        b[i] = a[i] + item.get_group().get_group_range(0)


@fq.kernel
def by_ids(item: fq.NdItem, a, b):
    b[item.get_global_id(0)] = a[item.get_global_id(0)]


@fq.kernel
def with_barrier(item: fq.NdItem, a, b):
    i = item.get_global_id(0)
    a[i] = i
    fq.group_barrier(item.get_group())
    b[i] = a[i // 64 * 64 + 63 - item.get_local_id(0)]


@fq.kernel
def of_local_ids(item: fq.NdItem, a, b):
    b[item.get_global_id(0)] = a[item.get_local_id(0)]


@fq.kernel
def of_groups(item: fq.NdItem, a, b):
    b[item.get_global_id(0)] = a[item.get_group().get_group_id(0)]


@fq.kernel
def fenced(item: fq.NdItem, a, b):
    b[item.get_global_id(0)] = a[item.get_global_id(0)]
    fq.atomic_fence(fq.MemoryOrder.RELEASE, fq.MemoryScope.WORK_GROUP)


@fq.kernel
def reduced(item: fq.NdItem, a, b):
    i = item.get_global_id(0)
    b[i] = fq.reduce_over_group(item.get_group(), a[i], "add")


@fq.kernel
def squared(item: fq.Item, a, b):
    b[item.get_id(0)] = a[item.get_id(0)] * a[item.get_id(0)]


def test_what_becomes_of_ids_and_ranges() -> None:
    (made,) = ungrouped_list(submissions((by_blocks, NdRange(512, 64), A, A.copy())), CPU)
    assert made.range == Range(512)
    text = print_kernel(made.ir)
    assert "if item.get_id(0) < a.shape[0] and item.get_id(0) < item.get_range(0):" in text
    assert "item.get_range(0) // 64" in text


@pytest.mark.parametrize("kernel", [with_barrier, of_local_ids, of_groups, fenced, reduced])
def test_where_work_groups_show_they_stay(kernel) -> None:
    listed = submissions((kernel, NdRange(512, 64), A, A.copy()))
    assert ungrouped_list(listed, CPU) == tuple(listed)


def test_work_groups_of_a_size_that_others_do_something_together_in_stay() -> None:
    b, c, d = A.copy(), A.copy(), A.copy()
    listed = submissions(
        (by_ids, NdRange(512, 64), A, b), (with_barrier, NdRange(512, 64), b, c),
        (by_ids, NdRange(512, 32), c, d),
    )  # fmt: skip
    ranges = [submission.range for submission in ungrouped_list(listed, CPU)]
    assert ranges == [NdRange(512, 64), NdRange(512, 64), Range(512)]


def test_other_devices_have_the_users_work_groups() -> None:
    listed = submissions((by_ids, NdRange(512, 64), A, A.copy()))
    assert ungrouped_list(listed, TWO_CORES) == tuple(listed)


@pytest.mark.parametrize("target", [CPU, TWO_CORES])
def test_kernels_over_different_work_groups_and_ranges_join(target) -> None:
    b, c, d = A.copy(), A.copy(), A.copy()
    listed = submissions(
        (by_ids, NdRange(512, 64), A, b), (by_blocks, NdRange(512, 128), b, c), (squared, 512, c, d)
    )
    plan = make_plan(listed, FusionOptions(strategy="fused"), target)
    assert (len(plan.stages) == 1) == (target is CPU)
    assert (plan.stages[0].local_range is None) == (target is CPU)
    assert plan.stages[0].range_of(listed) == Range(512)
