"""Work-groups of the user that show in nothing: launches are those of ranges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.ir.printer import print_kernel
from fusionq.language.ranges import NdRange, Range
from fusionq.planning.planner import make_plan
from fusionq.planning.unseen_groups import shows_no_groups, with_global_ids
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


@fq.kernel
def turned_in_blocks(item: fq.NdItem, a, b):
    i = item.get_global_id(0)
    b[i] = a[i // 64 * 64 + 63 - i % 64]


def test_what_becomes_of_ids_and_ranges() -> None:
    (made,) = with_global_ids(submissions((by_blocks, NdRange(512, 64), A, A.copy())), CPU)
    assert made.range == NdRange(512, 64)
    assert shows_no_groups(made.ir)
    text = print_kernel(made.ir)
    assert "if item.get_id(0) < a.shape[0] and item.get_id(0) < item.get_range(0):" in text
    assert "item.get_range(0) // 64" in text


@pytest.mark.parametrize("kernel", [with_barrier, of_local_ids, of_groups, fenced, reduced])
def test_where_work_groups_show_they_stay(kernel) -> None:
    listed = submissions((kernel, NdRange(512, 64), A, A.copy()))
    assert with_global_ids(listed, CPU) == tuple(listed)
    (stage,) = make_plan(listed, FusionOptions(), CPU).stages
    assert (stage.local_range, stage.unseen_range) == ((64,), None)


@pytest.mark.parametrize("kernel", [by_ids, by_blocks])
def test_launches_of_ranges(kernel) -> None:
    b, c = A.copy(), A.copy()
    calls = (kernel, NdRange(512, 64), A, b), (kernel, NdRange(512, 64), b, c), (squared, 512, c, A)
    (stage,) = make_plan(submissions(*calls), FusionOptions(strategy="fused"), CPU).stages
    assert (stage.local_range, stage.unseen_range) == (None, (64,))
    for size in (512, 64, 8):
        other = submissions(*((k, NdRange(size * 64, 64), *arrays) for k, _, *arrays in calls[:2]))
        assert stage.range_of(other) == Range(size * 64)


def test_sizes_decide_what_joins_as_ever() -> None:
    b, c = A.copy(), A.copy()
    listed = submissions((by_ids, NdRange(512, 64), A, b), (by_ids, NdRange(512, 128), b, c))
    stages = make_plan(listed, FusionOptions(strategy="fused"), CPU).stages
    assert [stage.unseen_range for stage in stages] == [(64,), (128,)]


def test_dependences_inside_of_work_groups_stay_there() -> None:
    b, c = A.copy(), A.copy()
    calls = (by_ids, NdRange(512, 64), A, b), (turned_in_blocks, NdRange(512, 64), b, c)
    (stage,) = make_plan(submissions(*calls), FusionOptions(strategy="fused"), CPU).stages
    assert (stage.local_range, stage.unseen_range) == ((64,), None)


def test_other_devices_have_the_users_work_groups() -> None:
    listed = submissions((by_ids, NdRange(512, 64), A, A.copy()))
    (stage,) = make_plan(listed, FusionOptions(), TWO_CORES).stages
    assert (stage.local_range, stage.unseen_range) == ((64,), None)
