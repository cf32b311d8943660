"""How a persistent kernel's stages are cut into tiles, by their ranges alone."""

from __future__ import annotations

from math import prod

import pytest

from fusionq.megakernel.tiling import (
    CACHE_OF_ALL,
    LARGEST_OF_UNEQUAL,
    LARGEST_TILE,
    PIPELINED_TILE,
    Tiling,
    choose_tiling,
)

Extents = tuple[tuple[int, ...], ...]


def tiling_of(extents: Extents, workers: int = 2, pipelined: bool = True) -> Tiling:
    return choose_tiling(extents, [8] * len(extents), CACHE_OF_ALL + 1, pipelined, workers)


def test_a_reduction_by_rows_is_cut_into_the_same_rows() -> None:
    """With tiles of one size the middle stage was a single tile that waited for all of the first,
    and each worker did stages of its own, one after the other: half as fast as launches."""
    tiling = tiling_of(((4096, 16), (4096,), (4096, 4096)))
    assert tiling == Tiling(((4, 16), (4,), (4, 4096)), 3, "tickets")


@pytest.mark.parametrize("rows", [1000, 4095, 4097, 12345])
@pytest.mark.parametrize("columns", [1500, 4096, LARGEST_TILE])
def test_odd_numbers_of_rows(rows: int, columns: int) -> None:
    extents: Extents = ((rows, 16), (rows,), (rows, columns), (rows, 7), (rows,))
    tiles = tiling_of(extents).tiles
    heights = {tile[0] for tile in tiles}
    assert len(heights) == 1
    assert [tile[1:] for tile in tiles] == [extent[1:] for extent in extents]
    assert prod(tiles[2]) <= LARGEST_OF_UNEQUAL + columns


def test_rows_too_long_for_a_tile() -> None:
    extents: Extents = ((64, 16), (64,), (64, LARGEST_TILE + 1))
    tiling = tiling_of(extents)
    assert max(map(prod, tiling.tiles)) <= LARGEST_TILE
    assert tiling.assignment == "tickets"


@pytest.mark.parametrize("smaller", [0, 2, 1000])
def test_a_pipeline_of_equal_stages(smaller: int) -> None:
    """Each worker does some of the stages; a border left out makes no difference."""
    n = 1 << 24
    tiling = tiling_of(tuple((n - smaller * (k % 2),) for k in range(32)))
    assert tiling.assignment == "stages"
    assert all(abs(prod(tile) - PIPELINED_TILE) <= 16 for tile in tiling.tiles)


def test_few_rows_are_taken_by_ticket() -> None:
    extents: Extents = ((40, 1 << 17),) * 8
    assert tiling_of(extents, workers=8).assignment == "tickets"


def test_what_is_no_pipeline_runs_stage_by_stage() -> None:
    tiling = tiling_of(((4096, 16), (4096,), (4096, 4096)), pipelined=False)
    assert (tiling.block, tiling.assignment) == (1, "tickets")
