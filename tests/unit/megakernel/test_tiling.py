"""How a persistent kernel's stages are cut into tiles, by their ranges alone."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.megakernel.assignment import shares_of
from fusionq.megakernel.schedule import make_schedule, pipelined
from fusionq.megakernel.tiles import extents_of
from fusionq.megakernel.tiling import Tiling, choose_tiling, spread
from tests.unit.cuda.compile_only import TARGET
from tests.unit.megakernel.cases import border_rows, bordered
from tests.unit.megakernel.plans import persistent
from tests.unit.targets import TWO_CORES

Extents = tuple[tuple[int, ...], ...]


def tiling_of(extents: Extents, workers: int = 2, pipelined: bool = True) -> Tiling:
    target = replace(TWO_CORES, resident_workers=workers)
    return choose_tiling(extents, [8] * len(extents), target.kept_bytes + 1, pipelined, target)


def test_a_reduction_by_rows_is_cut_into_the_same_rows() -> None:
    """With tiles of one size the middle stage was a single tile that waited for all of the first,
    and each worker did stages of its own, one after the other: half as fast as launches."""
    tiling = tiling_of(((4096, 16), (4096,), (4096, 4096)))
    assert tiling == Tiling(((4, 16), (4,), (4, 4096)), 3, "tickets")


@pytest.mark.parametrize("rows", [1000, 4095, 4097, 12345])
@pytest.mark.parametrize("columns", [1500, 4096, TWO_CORES.largest_tile])
def test_odd_numbers_of_rows(rows: int, columns: int) -> None:
    extents: Extents = ((rows, 16), (rows,), (rows, columns), (rows, 7), (rows,))
    tiles = tiling_of(extents).tiles
    heights = {tile[0] for tile in tiles}
    assert len(heights) == 1
    assert [tile[1:] for tile in tiles] == [extent[1:] for extent in extents]
    assert prod(tiles[2]) <= TWO_CORES.unequal_tile + columns


def test_rows_too_long_for_a_tile() -> None:
    extents: Extents = ((64, 16), (64,), (64, TWO_CORES.largest_tile + 1))
    tiling = tiling_of(extents)
    assert max(map(prod, tiling.tiles)) <= TWO_CORES.largest_tile
    assert tiling.assignment == "tickets"


@pytest.mark.parametrize("smaller", [0, 2, 1000])
def test_a_pipeline_of_equal_stages(smaller: int) -> None:
    """Each worker does some of the stages; a border left out makes no difference."""
    n = 1 << 24
    tiling = tiling_of(tuple((n - smaller * (k % 2),) for k in range(32)))
    assert tiling.assignment == "stages"
    assert all(abs(prod(tile) - TWO_CORES.pipelined_tile) <= 16 for tile in tiling.tiles)


@fq.kernel
def source(item: fq.Item, a, e):  # type: ignore[no-untyped-def]  # kernel language
    e[0, item.get_id(0)] = a[0, 0]


@fq.kernel
def below(item: fq.Item, h, e):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0) + 1, item.get_id(1)
    e[i, j] -= h[i, j] - h[i - 1, j]


@fq.kernel
def beside(item: fq.Item, h, g):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1) + 1
    g[i, j] -= h[i, j] - h[i, j - 1]


@fq.kernel
def curl(item: fq.Item, g, e, h):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1)
    h[i, j] -= g[i, j + 1] - g[i, j] + e[i + 1, j] - e[i, j]


@fq.kernel
def last_row(item: fq.Item, h, e):  # type: ignore[no-untyped-def]  # kernel language
    j = item.get_id(0)
    e[0, j] = h[h.shape[0] - 2, j]


@fq.kernel
def all_rows(item: fq.Item, h, e):  # type: ignore[no-untyped-def]  # kernel language
    j = item.get_id(0)
    e[0, j] = 0.0
    for i in range(h.shape[0] - 1):
        e[0, j] += h[i, j]


@pytest.mark.parametrize(
    ("first", "whole"), [(source, {0, 4, 8}), (last_row, {0, 4, 8}), (all_rows, None)]
)
def test_a_row_that_a_plane_waits_for_is_one_tile(first: Any, whole: set[int] | None) -> None:
    """fdtd_2d: the source is a row of which every row of the field depends on all, since ranges
    of one and two dimensions meet as columns; it was cut in rows of the plane, and done last.  One
    may wait for the plane's other end, as that of a periodic field does; one that waits for all of
    it makes it no pipeline."""
    n, m = 200, 220
    a, e, g, h = np.zeros((1, 1)), np.zeros((n, m)), np.zeros((n, m)), np.zeros((n, m))
    calls: list[tuple[Any, ...]] = []
    for _ in range(3):
        calls += [(first, m, a if first is source else h, e), (below, (n - 1, m), h, e)]
        calls += [(beside, (n, m - 1), h, g), (curl, (n - 1, m - 1), g, e, h)]
    made = persistent(*calls, target=TWO_CORES)
    extents = extents_of(made.body, made.params())
    assert pipelined(made.body, extents, made.params(), TWO_CORES.worker_size) == whole


@fq.kernel
def part_sums(item: fq.Item, x, parts):  # type: ignore[no-untyped-def]  # kernel language
    k = item.get_id(0)
    total = x.dtype.type(0)
    for i in range(64 * k, min(64 * (k + 1), x.shape[0])):
        total += x[i]
    parts[k] = total


@fq.kernel
def sum_of_parts(item: fq.Item, parts, mean):  # type: ignore[no-untyped-def]  # kernel language
    total = parts.dtype.type(0)
    for k in range(parts.shape[0]):
        total += parts[k]
    mean[item.get_id(0)] = total


@fq.kernel
def less_mean(item: fq.Item, x, mean, out):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    out[i] = x[i] - mean[0]


def test_a_reduction_of_all_that_there_is_is_not_small() -> None:
    """Layer norm of a vector: its partial sums are a 64th of its elements, for which all wait, and
    were one tile: one worker read all of the vector (H100, 16 million elements: 15.6 ms)."""
    n = 1 << 16
    x, parts, mean, out = np.zeros(n), np.zeros(n // 64), np.zeros(1), np.zeros(n)
    made = persistent(
        (part_sums, n // 64, x, parts), (sum_of_parts, 1, parts, mean), (less_mean, n, x, mean, out)
    )
    extents = extents_of(made.body, made.params())
    assert pipelined(made.body, extents, made.params(), 16) is None
    assert pipelined(made.body, extents, made.params(), n // 64) == {0}, "one round of lanes"
    target = replace(TWO_CORES, resident_workers=2, worker_size=16)
    far = make_schedule(made.body, made.params(), target.held_bytes + 1, target)
    assert far.stages[0].tiles >= target.resident_workers


def test_stages_that_are_one_tile_leave_the_others_alike() -> None:
    extents: Extents = ((3000,), (2047, 3000), (2048, 2999)) * 8
    target = replace(TWO_CORES, resident_workers=2)
    tiling = choose_tiling(
        extents, [8] * 24, target.kept_bytes + 1, True, target, frozenset(range(0, 24, 3))
    )
    assert tiling.tiles[:3] == ((3000,), (1, 3000), (1, 2999))
    assert tiling.assignment == "stages"


def test_small_stages_are_cut_into_the_rows_of_the_large_ones() -> None:
    """The borders of a plane have kernels of their own; cut into tiles of as many work-items, a
    border was one tile, and planes were cut into few, none of which stayed in a cache."""
    extents: Extents = ((1282,), (1282,), (1280, 1280), (1281, 1280)) * 4
    target = replace(TWO_CORES, resident_workers=2)
    tiling = choose_tiling(
        extents, [48] * 16, target.kept_bytes + 1, True, target, frozenset(range(1, 16, 4))
    )
    assert tiling.tiles[1:4] == ((1282,), (3, 1280), (3, 1280))
    assert tiling.tiles[0] == (2 * 3,)
    assert tiling.assignment == "stages"


def test_tiles_with_much_memory_have_fewer_work_items() -> None:
    """Nine fields of a lattice: 4,096 work-items have 640 KB."""
    target = replace(TWO_CORES, resident_workers=2)
    tiles = [
        choose_tiling(((1024, 1024),) * 6, [24] * 6, nbytes << 20, True, target).tiles[0]
        for nbytes in (target.kept_bytes // 2**20 + 1, 168)
    ]
    assert tiles == [(3, 1024), (1, 1024)]


@pytest.mark.slow
def test_a_list_that_ends_with_a_border_is_a_sweep_all_the_same() -> None:
    """Nobody waits for most rows of the step before the last stage; they were done with its first
    row, all at once, and those of all steps before with them."""
    calls = bordered(100, steps=3)
    made = persistent(*calls, (border_rows, 5, calls[-1][3]), target=TWO_CORES)
    extents = extents_of(made.body, made.params())
    tiles = tuple((1, *e[1:]) if e[0] > 5 else e for e in extents)
    schedule = made.schedule(Tiling(tiles, len(extents), "tickets"))
    steps = [k for k, e in enumerate(extents) if len(e) > 1]
    first, last = (np.flatnonzero(schedule.stage == k) for k in (steps[0], steps[-1]))
    # Half of the last step's rows are done before the first step has done all of its.
    assert np.sum(last < first.max()) >= 60


def test_workers_have_stages_of_as_much_work() -> None:
    assert shares_of([1, 1, 1, 1], 2).tolist() == [0, 0, 1, 1]
    assert shares_of([1, 40, 40, 40, 1, 40], 2).tolist() == [0, 0, 0, 1, 1, 1]
    assert shares_of([9, 1, 1], 2).tolist() == [0, 1, 1]
    assert shares_of([1] * 6, 3).tolist() == [0, 0, 1, 1, 2, 2]
    assert shares_of([7], 2).tolist() in ([0], [1])


def test_few_rows_are_taken_by_ticket() -> None:
    extents: Extents = ((40, 1 << 17),) * 8
    assert tiling_of(extents, workers=8).assignment == "tickets"


H100 = replace(TARGET, resident_workers=528)
"""With registers for half of the threads."""


@pytest.mark.parametrize(
    ("extents", "nbytes", "stages", "tile", "block", "rows"),
    [
        ((256, 256, 256), 8, 16, (1, 16, 256), 8, 4),
        ((254, 254, 254), 8, 16, (1, 16, 254), 8, 4),
        ((320, 320, 320), 16, 8, (1, 12, 320), 3, 3),
        ((512, 512, 512), 8, 4, (1, 8, 512), 2, 4),
        ((1024, 1024, 1024), 8, 4, (1, 4, 1024), 1, 1),
        ((16384, 16384), 16, 8, (1, 4096), 8, 10),
        ((8192, 8192), 8, 32, (1, 8192), 32, 10),
        ((1 << 26,), 8, 32, (4096,), 32, 23),
    ],
)
def test_planes_are_cut_where_few_of_them_stay_in_the_cache_for_all(
    extents: tuple[int, ...],
    nbytes: int,
    stages: int,
    tile: tuple[int, ...],
    block: int,
    rows: int,
) -> None:
    """Of whole planes 48 tiles were under way, and nine of ten workers waited."""
    memory = nbytes * prod(extents)
    tiling = choose_tiling((extents,) * stages, [nbytes] * stages, memory, True, H100)
    assert tiling == Tiling((tile,) * stages, block, "tickets", rows)


def test_planes_of_stages_of_other_sizes_are_whole() -> None:
    """A tile of one waits for about one of another, which cut in another way it would not."""
    extents: Extents = ((4096, 16), (4096,), (4096, 16384))
    tiles = choose_tiling(extents, [8] * 3, H100.held_bytes + 1, True, H100).tiles
    assert len({tile[0] for tile in tiles}) == 1
    assert [tile[1:] for tile in tiles] == [extent[1:] for extent in extents]


def test_work_groups_side_by_side_leave_no_lanes_idle() -> None:
    """Workers that are blocks of 256 take turns, and their tiles hold pairs of work-groups of
    128."""
    device = replace(TWO_CORES.device, groups_in_workers=True)
    target = replace(
        TWO_CORES, device=device, resident_workers=264, worker_size=256, largest_tile=1 << 17
    )
    extents: Extents = ((512, 128), (2048, 128), (32064, 128), (8192,), (128,))
    tiling = choose_tiling(extents, [8] * 5, target.kept_bytes + 1, False, target)
    assert tiling.assignment == "turns"
    assert tiling.tiles[:3] == ((2, 128), (8, 128), (32, 128))
    assert tiling.tiles[3:] == ((256,), (128,))


def test_what_is_no_pipeline_runs_stage_by_stage() -> None:
    tiling = tiling_of(((4096, 16), (4096,), (4096, 4096)), pipelined=False)
    assert (tiling.block, tiling.assignment) == (1, "tickets")


ROW = (1, 128)


def groups_of_tiles(together: list[list[int]], rows: tuple[int, ...], workers: int = 132) -> Any:
    """Work-groups of a tile of each of the stages with so many ``rows``, a work-group each, of
    which workers do four side by side."""
    tiling = Tiling(tuple((4, 128) for _ in rows), 1, "turns")
    extents = [(n, 128) for n in rows]
    made = spread(tiling, extents, [ROW] * len(rows), together, workers)
    assert all(tile[1] == 128 for tile in made.tiles)
    return [tile[0] for tile in made.tiles]


def test_stages_of_a_wave_share_the_workers() -> None:
    """One after the other has tiles for each worker; together, each worker has one tile."""
    rows = (512, 128, 128)
    assert groups_of_tiles([[0], [1], [2]], rows) == [4, 1, 1]
    sizes = groups_of_tiles([[0, 1, 2]], rows)
    assert sizes == [6, 6, 6]
    assert sum(-(-n // size) for n, size in zip(rows, sizes, strict=True)) <= 132


@pytest.mark.parametrize("rows", [(32, 32), (60, 60), (1, 2, 3)])
def test_waves_with_a_worker_for_each_tile_stay_spread(rows: tuple[int, ...]) -> None:
    assert groups_of_tiles([list(range(len(rows)))], rows) == [1] * len(rows)


def test_waves_beside_stages_that_keep_all_workers_busy() -> None:
    """A stage with a tile for each worker leaves none idle."""
    assert groups_of_tiles([[0, 1]], (528, 128)) == [4, 1]


def test_more_stages_than_workers() -> None:
    rows = (3,) * 5
    assert groups_of_tiles([list(range(5))], rows, 4) == groups_of_tiles([[0]], rows, 4)
