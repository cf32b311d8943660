"""Ids of work-items that a worker goes through, and what functions of devices become there."""

from __future__ import annotations

import pytest

from fusionq.codegen import tile_items
from fusionq.codegen.opencl import OPENCL_C
from fusionq.codegen.tile_items import GroupItems, ThreadItems, TileItems

OWN = OPENCL_C.items


def test_ids_of_a_tile_s_work_items() -> None:
    items = TileItems(OWN, 2)
    assert items.query("global_id", 1, 2) == "fq_id_1"
    assert items.query("tile_first", 0, 2) == "fq_first_0"
    assert items.query("tile_last", 1, 2) == "fq_last_1"
    assert [items.query("local_id", dim, 2) for dim in (0, 1)] == ["0", "fq_lane"]
    size = items.query("local_range", 1, 2)
    assert size.isdigit() and items.query("local_range", 0, 2) == "1"
    with pytest.raises(AssertionError, match="group_id"):
        items.query("group_id", 0, 2)


def test_the_first_of_a_tile_s_work_items_is_the_first_sub_group() -> None:
    found = TileItems(OWN, 3).device_function("first_sub_group_here")
    assert found == "(fq_id_0 == fq_first_0 && fq_id_1 == fq_first_1 && fq_start == fq_first_2)"
    assert TileItems(OWN, 1).device_function("first_sub_group_here") == "(fq_start == fq_first_0)"
    assert TileItems(OWN, 1).device_function("leads_sub_group") == "(fq_lane == 0)"
    assert TileItems(OWN, 1).device_function("record_row") == "fq_row"
    assert TileItems(OWN, 1).device_function("clock") == OWN.device_function("clock")


def test_lanes_are_a_sub_group() -> None:
    for items in (TileItems(OWN, 2, 16), GroupItems(OWN, (4, 8), 2, 16)):
        assert items.device_function("sub_group_local_range") == "16"
        assert items.device_function("first_of_sub_group", "id") == "(id - fq_lane)"
    alone = ThreadItems(OWN, (4, 8), 2)
    assert alone.device_function("sub_group_local_range") == "1"
    assert alone.device_function("first_of_sub_group", "id") == "id"


def test_ids_of_a_tile_s_work_groups() -> None:
    items = GroupItems(OWN, (4, 8), 2, 16)
    assert [items.query("group_id", dim, 2) for dim in (0, 1)] == ["fq_group_0", "fq_group_1"]
    assert items.query("local_id", 1, 2) == "fq_local_1"
    assert [items.query("local_range", dim, 2) for dim in (0, 1)] == ["4", "8"]
    assert items.query("local_linear_id", 0, 2) == "fq_item"
    assert items.query("global_id", 0, 2) == TileItems(OWN, 2).query("global_id", 0, 2)


def test_the_first_sub_group_of_a_tile_s_work_groups() -> None:
    at = "fq_group_0 == fq_first_0 / 4 && fq_group_1 == fq_first_1 / 8"
    by_one = GroupItems(OWN, (4, 8), 2, 16).device_function("first_sub_group_here")
    assert by_one == f"({at} && fq_start == 0)"
    by_threads = ThreadItems(OWN, (4, 8), 2).device_function("first_sub_group_here")
    assert by_threads == f"({at})", "each thread finds out for itself"
    for items in (GroupItems(OWN, (4, 8), 2, 16), ThreadItems(OWN, (4, 8), 2)):
        assert items.device_function("record_row") == "fq_row"


def test_every_class_of_them_is_looked_at() -> None:
    made = {one for one in vars(tile_items).values() if isinstance(one, type)}
    assert {TileItems, GroupItems, ThreadItems} == {c for c in made if issubclass(c, TileItems)}
