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
from tests.unit.lists import Flagged, submissions
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


@fq.kernel
def turned_in_blocks(item: fq.NdItem, a, b):
    i = item.get_global_id(0)
    b[i] = a[i // 64 * 64 + 63 - i % 64]


@fq.kernel
def neighbours(item: fq.NdItem, a, b):
    i = item.get_global_id(0)
    b[i] = a[max(i - 1, 0)] + (a[i + 1] if i < a.shape[0] - 1 else a[i])


def test_work_groups_in_which_submissions_exchange_elements_stay() -> None:
    b, c = A.copy(), A.copy()
    calls = (by_ids, NdRange(512, 64), A, b), (turned_in_blocks, NdRange(512, 64), b, c)
    listed = submissions(*calls)
    assert ungrouped_list(listed, CPU) == tuple(listed)
    (stage,) = make_plan(listed, FusionOptions(strategy="fused"), CPU).stages
    assert stage.local_range == (64,)
    apart = submissions(calls[0], (turned_in_blocks, NdRange(512, 64), A, c))
    assert [made.range for made in ungrouped_list(apart, CPU)] == [Range(512)] * 2


@fq.kernel
def firsts(item: fq.NdItem, a, b):
    if item.get_global_id(1) == 0:
        b[item.get_global_id(0)] = a[item.get_global_id(0), 0]


@fq.kernel
def differences(item: fq.NdItem, a, b, c):
    i, j = item.get_global_id(0), item.get_global_id(1)
    c[i, j] = a[i, j] - b[i]


def test_work_groups_that_are_rows_stay_where_rows_share_elements() -> None:
    plane, b, c = np.zeros((8, 64), np.float32), np.zeros(8, np.float32), np.zeros((8, 64))

    def listed(size: int):
        items = NdRange((8, 64), (1, size))
        return submissions((firsts, items, plane, b), (differences, items, plane, b, c))

    assert ungrouped_list(listed(64), CPU) == tuple(listed(64))
    assert [made.range for made in ungrouped_list(listed(32), CPU)] == [Range(8, 64)] * 2


def test_what_neighbours_exchange_leaves_work_groups() -> None:
    b, c = A.copy(), A.copy()

    def ranges(size: int, source: np.ndarray = b) -> list[Range | NdRange]:
        calls = (by_ids, NdRange(512, size), A, b), (neighbours, NdRange(512, size), source, c)
        return [made.range for made in ungrouped_list(submissions(*calls), CPU)]

    assert ranges(64) == [Range(512)] * 2
    assert ranges(512) == [NdRange(512, 512)] * 2  # but for one that has all work-items


def test_views_at_other_offsets_may_meet_in_work_groups() -> None:
    b, c = np.zeros(1024, np.float32), A.copy()
    calls = (by_ids, NdRange(512, 64), A, b[:512]), (by_ids, NdRange(512, 64), b[1:513], c)
    listed = submissions(*calls)
    assert ungrouped_list(listed, CPU) == tuple(listed)


def test_work_groups_of_local_memory_that_was_asked_for_stay() -> None:
    b = Flagged(A.copy(), local=True)
    listed = submissions((by_ids, NdRange(512, 64), A, b), (by_ids, NdRange(512, 64), b, A.copy()))
    assert ungrouped_list(listed, CPU) == tuple(listed)


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
