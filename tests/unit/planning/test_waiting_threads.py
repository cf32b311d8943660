"""What joins on devices whose work-items are threads that wait: by what work-groups leave idle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.base.target import target_of
from fusionq.planning.cost import Work, chain_of, grouped_seconds
from fusionq.planning.overlapped_tiles import _work_groups
from fusionq.planning.plan import Plan
from fusionq.planning.planner import make_plan
from fusionq.planning.tile_shape import Growth, TileCosts, best_tile
from tests.unit.lists import submissions
from tests.unit.targets import TWO_CORES, device

GPU = target_of(
    device("gpu", compute_units=132, max_work_group_size=1024),
    sub_group_size=32, worker_size=256, vector_width=32, resident_workers=1056,
)  # fmt: skip


@fq.kernel
def row_sums(item: fq.Item, a, sums):
    i = item.get_id(0)
    total = np.float32(0)
    for j in range(a.shape[1]):
        total += a[i, j]
    sums[i] = total


@fq.kernel
def divide(item: fq.Item, a, sums, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = a[i, j] / sums[i]


@fq.kernel
def across(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    if i > 0 and i < a.shape[0] - 1:
        out[i, j] = a[i - 1, j] + a[i, j] + a[i + 1, j]


@fq.kernel
def plus_one(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = a[i, j] + np.float32(1)


@fq.kernel
def relax_row(item: fq.Item, a, out):
    i = item.get_id(0) + 1
    for j in range(1, a.shape[1] - 1):
        out[i, j] = a[i, j - 1] + a[i - 1, j] + a[i + 1, j]


def plan(*listed: tuple[Any, ...], target=GPU) -> Plan:
    return make_plan(submissions(*listed), FusionOptions(strategy="sequence"), target)


def sizes(made: Plan) -> list[int]:
    return [len(stage.submissions) for stage in made.stages]


def array(*shape: int) -> np.ndarray:
    return np.empty(shape, np.float32)


def test_rows_join_what_is_divided_by_them_in_fewer_groups_than_compute_units() -> None:
    """128 groups for 132 units: alone, the sums would be 4 work-groups."""
    a, sums, out = array(128, 512), array(128), array(128, 512)
    listed = (row_sums, 128, a, sums), (divide, (128, 512), a, sums, out)
    made = plan(*listed)
    assert sizes(made) == [2]
    assert made.stages[0].local_range == (1, 512)


def test_work_groups_along_columns_do_not_join() -> None:
    """Each work-item of a warp would access another cache line."""
    a, b, c = (array(256, 512) for _ in range(3))
    made = plan((plus_one, (256, 512), a, b), (across, (256, 512), b, c))
    assert sizes(made) == [1, 1]
    boundary = made.stages[1].boundary
    assert boundary is not None and "strategy='fused' joins them all the same" in boundary


def test_rows_of_loops_that_store_stay_launches() -> None:
    """What is loaded would wait for what is stored."""
    a, b = array(256, 256), array(256, 256)
    made = plan(*((relax_row, 254, *((a, b) if k % 2 == 0 else (b, a))) for k in range(4)))
    assert sizes(made) == [1, 1, 1, 1]


def test_ranges_of_another_shape_join_where_a_launch_takes_longer_than_divisions() -> None:
    small = [array(97, 97) for _ in range(4)]
    assert sizes(plan((plus_one, (97, 48), *small[:2]), (plus_one, (48, 97), *small[2:]))) == [2]
    large = [array(4097, 4097) for _ in range(4)]
    far = plan((plus_one, (4097, 2048), *large[:2]), (plus_one, (2048, 4097), *large[2:]))
    assert sizes(far) == [1, 1]
    assert not far.validity.holds(
        submissions((plus_one, (97, 48), *small[:2]), (plus_one, (48, 97), *small[2:]))
    )


@pytest.mark.parametrize("row", [1, 2, 8])
def test_narrow_work_groups_take_longer(row: int) -> None:
    work = Work(accessed=16.0)
    wide = grouped_seconds(work, 10, 1 << 20, 4096, 32, GPU)
    narrow = grouped_seconds(work, 10, 1 << 20, 4096, row, GPU)
    assert narrow > wide
    assert grouped_seconds(work, 10, 1 << 20, 4096, 2 * row, GPU) < narrow


def test_few_work_items_take_as_long_as_one_waits() -> None:
    work = Work(accessed=4.0, functions=2.0)
    one, hundred = (grouped_seconds(work, 500, n, 1, 32, GPU) for n in (1, 100))
    assert one == pytest.approx(chain_of(work, 500, GPU) * GPU.costs.chain_seconds, rel=0.05)
    assert hundred < 1.2 * one


def test_work_groups_come_out_even_with_their_halos() -> None:
    """Tiles with halos of 4 on each side: 24 by 24 elements, for which 32 by 32 are computed."""
    groups = _work_groups(2, GPU)
    assert groups == [(8, 32), (16, 32), (32, 32)]
    assert _work_groups(1, GPU)[0] == (256,)
    assert _work_groups(3, GPU)[0] == (1, 8, 32)
    assert _work_groups(2, TWO_CORES) == [(1, TWO_CORES.worker_size)]
    grown = Growth(((32, 32), (40, 40)), ((64, 64), (72, 72)))
    costs = TileCosts([(grown, 1e-10), (None, 1e-10)], [(grown, 8)], [3e-7, 3e-7])
    found = best_tile((256, 256), costs, groups, GPU)
    assert found is not None
    assert found.window is None
    for n, side in zip(grown.at(found.tile), found.group, strict=True):
        assert n % side == 0
