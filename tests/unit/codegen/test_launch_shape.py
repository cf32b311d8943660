"""Work-group sizes for plain ranges."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.base.target import target_of
from fusionq.codegen.launch_shape import launch_shape
from fusionq.planning.launching import launch_shape_of
from fusionq.planning.planner import make_plan
from tests.unit.cuda.compile_only import TARGET
from tests.unit.lists import submissions
from tests.unit.targets import TWO_CORES, device

RANGES = [
    (1,), (7,), (1000,), (4099,), (99_999_989,), (100_000_000,), (1, 1), (4000, 4000),
    (1_000_000, 3), (3, 1_000_000), (1009, 1013), (5000, 1), (200, 200, 200), (500, 500, 4),
    (1, 1, 100_000), (100_000, 1, 1),
]  # fmt: skip
DEVICES = [
    device(), device(compute_units=128), device("gpu", 132, 1024), device(max_work_group_size=8),
    device("accelerator", 1, 1),
]  # fmt: skip


@pytest.mark.parametrize("extents", RANGES, ids=str)
@pytest.mark.parametrize("info", DEVICES, ids=lambda d: f"{d.kind}{d.compute_units}")
def test_shape_covers_the_range_within_the_limits(extents, info):
    shape = launch_shape(extents, target_of(info))
    for extent, whole, local in zip(extents, shape.global_range, shape.local_range, strict=True):
        assert local >= 1
        assert whole % local == 0
        assert extent <= whole < extent + local
    assert prod(shape.local_range) <= info.max_work_group_size
    is_narrow = info.kind == "gpu" and len(extents) > 1 and shape.local_range[-1] == extents[-1]
    if info.max_work_group_size >= 16 and not is_narrow:
        assert shape.local_range[-1] % 16 == 0


@pytest.mark.parametrize(
    ("extents", "local"),
    [
        ((100_000_000,), (4096,)), ((1_000_000,), (4096,)), ((1000,), (256,)), ((10,), (16,)),
        ((4000, 4000), (1, 4000)), ((100_000, 100), (36, 112)), ((1_000_000, 3), (256, 16)),
        ((200, 200, 200), (1, 19, 208)),
    ],
    ids=str,
)  # fmt: skip
def test_sizes_on_two_cores(extents, local):
    assert launch_shape(extents, TWO_CORES).local_range == local


@pytest.mark.parametrize(
    ("extents", "local"),
    [
        ((100,), (32,)), ((8192,), (32,)), ((132 * 64,), (64,)), ((33_000,), (128,)),
        ((132 * 256,), (256,)), ((100_000_000,), (256,)), ((16, 1024), (1, 64)), ((4, 4), (4, 4)),
    ],
    ids=str,
)  # fmt: skip
def test_few_threads_are_dealt_among_all_multiprocessors(extents, local):
    assert launch_shape(extents, TARGET).local_range == local


@pytest.mark.parametrize(
    ("extents", "local"),
    [
        ((1_000_000, 3), (85, 3)), ((1_000_000, 31), (8, 31)), ((1_000_000, 32), (8, 32)),
        ((1_000_000, 33), (4, 64)), ((3000, 4000, 3), (1, 84, 3)), ((1_000_000, 1, 2), (64, 1, 2)),
        ((2, 3), (2, 3)), ((3,), (32,)),
    ],
)  # fmt: skip
def test_threads_of_several_narrow_rows_are_a_warp(extents, local):
    """A block has 64 planes of three dimensions at most."""
    assert launch_shape(extents, TARGET).local_range == local


def test_small_ranges_still_occupy_every_compute_unit():
    shape = launch_shape((64_000,), target_of(device(compute_units=64)))
    assert shape.global_range[0] // shape.local_range[0] >= 64


@pytest.mark.parametrize(
    ("extents", "ends", "local"),
    [
        ((25_000,), (5_000,), 2512), ((25_000,), (100,), 736), ((25_000,), (), 3136),
        ((1_000_000,), (4096, 8192), 4096), ((1_000_000,), (5_000, 7_000), 3504),
        ((300,), (20,), 160), ((40, 100), (7,), 112),
    ],
    ids=str,
)  # fmt: skip
def test_kernels_end_where_work_groups_do(extents, ends, local):
    assert launch_shape(extents, TWO_CORES, ends).local_range[-1] == local


def test_threads_beyond_an_end_cost_nothing():
    gpu = target_of(device("gpu", 132, 1024))
    assert launch_shape((25_000,), gpu, (5_000,)) == launch_shape((25_000,), gpu)


@fq.kernel
def add_one(item: fq.Item, a: Any, b: Any) -> None:
    b[item.get_id(0)] = a[item.get_id(0)] + 1


def test_ranges_of_a_launch_are_its_ends():
    pairs = [(n, np.zeros(n, np.int32), np.zeros(n, np.int32)) for n in (5_000, 25_000)]
    listed = submissions(*((add_one, *pair) for pair in pairs))
    plan = make_plan(listed, FusionOptions(strategy="fused"), TWO_CORES)
    (stage,) = plan.stages
    shape = launch_shape_of(stage, listed, TWO_CORES)
    assert shape is not None and shape.local_range == (2512,)
