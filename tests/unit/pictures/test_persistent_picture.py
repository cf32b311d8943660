"""The picture of a persistent kernel shows the numbers of its schedule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fusionq.megakernel.schedule import Schedule
from fusionq.megakernel.tiling import Tiling
from fusionq.report.pictures.distances import distances, positions
from tests.unit.megakernel.cases import CASES, _pairs, blur
from tests.unit.megakernel.plans import PersistentPlan, persistent, waited
from tests.unit.pictures.reports import shown, text_of, texts

pytest.importorskip("matplotlib")

from fusionq.report.pictures.page import Page
from fusionq.report.pictures.persistent import PersistentPicture
from fusionq.report.pictures.tile_rows import MOST_TILES, shown_stages


def picture(plan: PersistentPlan, schedule: Schedule) -> Any:
    drawing = PersistentPicture(0, plan.stage, plan.submissions, [], schedule)
    page = Page(drawing.height)
    drawing.draw(page, 0)
    return page.figure


def tiling(plan: PersistentPlan, size: int, assignment: Any = "tickets") -> Tiling:
    extents = [stage.extents for stage in plan.schedule().stages]
    return Tiling(tuple((size, *(2,) * (len(e) - 1)) for e in extents), len(extents), assignment)


@pytest.mark.in_turn
@pytest.mark.parametrize("size", [1, 3, 7])
@pytest.mark.parametrize("case", CASES)
def test_tiles_waits_and_counters(case: str, size: int) -> None:
    plan = persistent(*CASES[case](7))
    schedule = plan.schedule(tiling(plan, size))
    figure = picture(plan, schedule)
    tiles = [(k, t) for k, stage in enumerate(schedule.stages) for t in range(stage.tiles)]
    if all(stage.tiles <= MOST_TILES for stage in schedule.stages):
        assert shown(figure, "tile") == sorted((str(k), str(t)) for k, t in tiles)
        places = shown(figure, "place")
        for at, (stage, tile) in enumerate(
            zip(schedule.stage.tolist(), schedule.tile.tolist(), strict=True)
        ):
            if (str(stage), str(tile)) in places:
                assert text_of(figure, f"place {stage} {tile}") == str(at)
    marked = [(int(k), int(t)) for k, t in shown(figure, "marked")]
    assert [k for k, _ in marked] == list(range(len(schedule.stages)))
    drawn = [tuple(map(int, gid)) for gid in shown(figure, "waited")]
    for stage, tile in marked:
        mine = {
            (producer, t)
            for consumer, producer, start, stop in drawn
            for t in range(start, stop)
            if consumer == stage
        }
        assert mine == waited(schedule)[stage, tile]
    for k, (stage, own) in enumerate(zip(schedule.stages, schedule.counters, strict=True)):
        bars = {which for number, which in shown(figure, "counter") if number == str(k)}
        assert ("all" in bars) == (own.total >= 0)
        if stage.tiles <= MOST_TILES:
            lines = np.prod([-(-n // s) for n, s in zip(stage.count, own.shared, strict=True)])
            assert len(bars - {"all"}) == (lines if own.first >= 0 else 0)


def test_a_counter_that_tiles_share_has_one_bar() -> None:
    plan = persistent(*CASES["strided"](64))
    schedule = plan.schedule(tiling(plan, 4))
    sharing = [c.shared[0] for c in schedule.counters]
    assert sharing[1] == 1 < sharing[0], "the case has to have both"
    bars = [bar for bar in shown(picture(plan, schedule), "counter") if bar[1] != "all"]
    assert len([b for b in bars if b[0] == "0"]) == -(-16 // sharing[0])
    assert len([b for b in bars if b[0] == "1"]) == 16


def test_many_tiles_are_cut_and_that_is_said() -> None:
    plan = persistent(*CASES["stencil"](1000))
    schedule = plan.schedule(tiling(plan, 4))
    figure = picture(plan, schedule)
    assert schedule.stages[0].tiles == 250
    drawn = {int(t) for stage, t in shown(figure, "tile") if stage == "2"}
    assert drawn == {*range(12), *range(238, 250)}
    assert text_of(figure, "tiles left out 2") == "…"
    assert any(text.startswith("250 tiles of 4, 1 tile a counter") for text in texts(figure))


def test_stages_that_are_alike_are_cut_and_that_is_said() -> None:
    plan = persistent(*_pairs(blur, (64,), 20))
    figure = picture(plan, plan.schedule(tiling(plan, 8)))
    assert text_of(figure, "stages left out") == "stages 3 to 18 are not drawn (16 of 20)"
    assert {int(stage) for stage, _ in shown(figure, "tile")} == {0, 1, 2, 19}


def test_which_stages_are_drawn() -> None:
    assert shown_stages("abbbbc") == [0, 1, 2, 3, 4, 5]
    assert shown_stages("abbbbbc") == [0, 1, 2, range(3, 5), 5, 6]
    found = shown_stages(list(range(30)))
    assert found == [*range(8), range(8, 27), 27, 28, 29]
    mixed = shown_stages([*range(10), *[77] * 9, *range(20, 30)])
    covered = [s for row in mixed for s in ([row] if isinstance(row, int) else row)]
    assert covered == list(range(29))
    assert sum(isinstance(row, range) for row in mixed) == 1


@pytest.mark.parametrize("assignment", ["turns", "stages", "shares", "tickets"])
def test_the_order_is_coloured_by_worker_or_stage(assignment: str) -> None:
    plan = persistent(*CASES["stencil"](64))
    schedule = plan.schedule(tiling(plan, 8, assignment), workers=3)
    figure = picture(plan, schedule)
    [dots] = [artist for artist in figure.findobj() if artist.get_gid() == "order"]
    assert dots.get_offsets().tolist() == [
        [at, tile] for at, tile in enumerate(schedule.tile.tolist())
    ]
    colors = list(map(tuple, dots.get_facecolors().tolist()))
    if assignment == "tickets":
        group = schedule.stage.tolist()
    else:
        group = [0] * len(colors)
        for worker in range(3):
            for at in schedule.assigned[schedule.starts[worker] : schedule.starts[worker + 1]]:
                group[int(at)] = worker
    assert len(shown(figure, "legend")) == len(set(group)) == len(set(colors))
    assert len(set(zip(group, colors, strict=True))) == len(set(group))


@pytest.mark.parametrize("case", CASES)
def test_distances_against_brute_force(case: str) -> None:
    plan = persistent(*CASES[case](7))
    schedule = plan.schedule(tiling(plan, 2))
    place = {
        tile: at
        for at, tile in enumerate(zip(schedule.stage.tolist(), schedule.tile.tolist(), strict=True))
    }
    expected = [
        place[tile] - max(place[other] for other in others)
        for tile, others in sorted(waited(schedule).items(), key=lambda item: place[item[0]])
        if others
    ]
    found = distances(schedule, positions(schedule))
    assert found.values.tolist() == expected
    assert found.sampled == len(place)
    assert min(expected) >= 1
