"""Bounds, order, counters and assignments of persistent kernels, against brute force."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.codegen import queue_layout as q
from fusionq.megakernel.schedule import Schedule, make_schedule
from fusionq.megakernel.tiling import Tiling
from tests.unit.megakernel.cases import (
    CASES,
    inside_3d,
    reversed_copy,
    stencil,
    stencil_2d,
    transposes,
)
from tests.unit.megakernel.plans import (
    PersistentPlan,
    Tile,
    before,
    persistent,
    tile_of,
    tilings,
    waited,
)
from tests.unit.targets import REFERENCE, TWO_CORES

SIZES = (1, 2, 7)


@cache
def plan(case: str, size: int) -> PersistentPlan:
    return persistent(*CASES[case](size))


@cache
def schedules(case: str, size: int) -> list[Schedule]:
    made = plan(case, size)
    extents = [stage.extents for stage in made.schedule().stages]
    return [made.schedule(tiling) for tiling in tilings(extents, size)]


every = pytest.mark.parametrize("case", CASES)
sizes = pytest.mark.parametrize("size", SIZES)


def fits(case: str, size: int) -> bool:
    """Some lists of size 1 have no dependence across work-items."""
    try:
        plan(case, size)
    except AssertionError:
        return False
    return True


@every
def test_cases_become_persistent_kernels(case: str) -> None:
    assert len(plan(case, 7).body.stages) >= 3


@pytest.mark.in_turn
@every
@sizes
def test_whatever_a_tile_depends_on_is_done_before_it(case: str, size: int) -> None:
    if not fits(case, size):
        return
    needed = plan(case, size).needed()
    assert size == 1 or any(needed.values())
    for schedule in schedules(case, size):
        done = before(schedule)
        for (producer, consumer), items in needed.items():
            for mine, theirs in items:
                tile = (producer, tile_of(schedule, producer, theirs))
                assert tile in done[consumer, tile_of(schedule, consumer, mine)]


@pytest.mark.parametrize(
    "calls", [stencil(9), stencil_2d(4), inside_3d(7), reversed_copy(8), transposes(5)],
    ids=["stencil", "stencil_2d", "inside_3d", "reversed_copy", "transposes"],
)  # fmt: skip
def test_boxes_are_no_larger_than_needed(calls: list[tuple[object, ...]]) -> None:
    """The box around all that a tile needs of the stage before, and at most the neighbours of
    that: at the ends of the range a stencil may wait for what its other work-items need."""
    made = persistent(*calls)
    needed = made.needed()
    extents = [stage.extents for stage in made.schedule().stages]
    for tiling in tilings(extents, 1):
        schedule = made.schedule(tiling)
        boxes = waited(schedule)
        for consumer in range(1, len(extents)):
            producer = consumer - 1
            source = schedule.stages[producer]
            around: dict[Tile, list[tuple[int, ...]]] = {}
            for mine, theirs in needed[producer, consumer]:
                tile = (consumer, tile_of(schedule, consumer, mine))
                around.setdefault(tile, []).append(theirs)
            for tile, items in around.items():
                low, high = np.min(items, axis=0) - 1, np.max(items, axis=0) + 1
                low, high = np.maximum(low, 0), np.minimum(high, np.array(source.extents) - 1)
                wanted = np.prod(high // source.tile - low // source.tile + 1)
                assert 1 <= sum(p == producer for p, _ in boxes[tile]) <= wanted


@pytest.mark.in_turn
@every
@sizes
def test_every_order_has_producers_first(case: str, size: int) -> None:
    if not fits(case, size):
        return
    for schedule in schedules(case, size):
        order = list(zip(schedule.stage.tolist(), schedule.tile.tolist(), strict=True))
        assert sorted(order) == sorted(waited(schedule))
        position = {tile: k for k, tile in enumerate(order)}
        for tile, others in waited(schedule).items():
            assert all(position[other] < position[tile] for other in others)


def counter_of(schedule: Schedule, stage: int, tile: int) -> int:
    """The line that a tile counts on."""
    own, shape = schedule.counters[stage], schedule.stages[stage]
    at = np.unravel_index(tile, shape.count)
    grid = [-(-n // k) for n, k in zip(shape.count, own.shared, strict=True)]
    shared = tuple(int(i) // k for i, k in zip(at, own.shared, strict=True))
    return own.first + int(np.ravel_multi_index(shared, grid))


@pytest.mark.in_turn
@every
@sizes
def test_counters_stand_for_just_the_tiles_of_a_box(case: str, size: int) -> None:
    """A wait for a box waits for whole counters: tiles that share one are in a box all or none."""
    if not fits(case, size):
        return
    for schedule in schedules(case, size):
        lines: set[int] = set()
        for stage, own in enumerate(schedule.counters):
            tiles = schedule.stages[stage].tiles
            used = {own.total} if own.total >= 0 else set()
            if own.first >= 0:
                used |= {counter_of(schedule, stage, t) for t in range(tiles)}
            assert not used & lines
            lines |= used
        last = int(schedule.words[q.GIVEN])  # the workers' tables
        assert lines == set(range(q.FIRST_COUNTER, last))
        for stage, boxes in enumerate(schedule.waits):
            for box in boxes:
                own = schedule.counters[box.producer]
                if box.low is None:
                    assert own.total >= 0
                    continue
                assert own.first >= 0
                size_of = Counter(
                    counter_of(schedule, box.producer, t)
                    for t in range(schedule.stages[box.producer].tiles)
                )
                for tile in range(schedule.stages[stage].tiles):
                    one = replace(
                        box,
                        low=tuple(a[tile : tile + 1] for a in box.low),
                        high=tuple(a[tile : tile + 1] for a in box.high or ()),
                    )
                    inside = Counter(
                        counter_of(schedule, box.producer, t)
                        for t in _tiles_in(schedule, one.producer, one.low, one.high)
                    )
                    assert all(size_of[line] == count for line, count in inside.items())


def _tiles_in(
    schedule: Schedule,
    producer: int,
    low: tuple[np.ndarray, ...] | None,
    high: tuple[np.ndarray, ...] | None,
) -> list[int]:
    assert low is not None
    assert high is not None
    count = schedule.stages[producer].count
    grid = np.arange(int(np.prod(count))).reshape(count)
    inside = tuple(slice(int(a[0]), int(b[0]) + 1) for a, b in zip(low, high, strict=True))
    return [int(t) for t in grid[inside].flat] if all(s.stop > s.start for s in inside) else []


def test_tiles_share_counters_where_boxes_allow_it() -> None:
    made = persistent(*reversed_copy(32))
    tiling = Tiling(((2,), (8,), (8,)), 3, "tickets")
    schedule = made.schedule(tiling)
    assert schedule.counters[0].shared == (4,)
    assert schedule.counters[1].shared == (1,)


@pytest.mark.in_turn
@pytest.mark.parametrize("size", [7, 13])
@every
def test_boxes_have_few_counters_where_pollers_look(case: str, size: int) -> None:
    """On GPUs, of stages one after the other: a box waits for all of its tiles, and others only of
    stages that are done before its own; where stages are done as a pipeline, for no others."""
    if not fits(case, size):
        return
    made = plan(case, size)
    target = replace(REFERENCE, device=replace(REFERENCE.device, groups_in_workers=True))
    extents = [stage.extents for stage in made.schedule().stages]
    for block in (1, len(extents)):
        tiling = Tiling(tuple((1,) * len(e) for e in extents), block, "tickets")
        schedule = make_schedule(made.body, made.params(), 0, target, tiling)
        place = {
            (int(s), int(t)): k
            for k, (s, t) in enumerate(zip(schedule.stage, schedule.tile, strict=True))
        }
        on_line: dict[int, list[tuple[int, int]]] = {}
        for stage, own in enumerate(schedule.counters):
            for t in range(schedule.stages[stage].tiles if own.first >= 0 else 0):
                on_line.setdefault(counter_of(schedule, stage, t), []).append((stage, t))
        for stage, boxes in enumerate(schedule.waits):
            for box in boxes:
                if box.low is None or box.high is None:
                    continue
                for tile in range(schedule.stages[stage].tiles):
                    one = [tuple(a[tile : tile + 1] for a in end) for end in (box.low, box.high)]
                    needed = {(box.producer, t) for t in _tiles_in(schedule, box.producer, *one)}
                    lines = {counter_of(schedule, *instruction) for instruction in needed}
                    awaited = {w for line in lines for w in on_line[line]}
                    assert needed <= awaited
                    if block == 1:
                        assert len(lines) <= CODE_LIMITS.box_counters
                        assert all(place[w] < place[stage, tile] for w in awaited)
                    else:
                        assert needed == awaited


@every
@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("assignment", ["stages", "shares", "turns", "tickets"])
def test_an_assignment_deals_out_the_order(case: str, workers: int, assignment: str) -> None:
    made = plan(case, 7)
    extents = [stage.extents for stage in made.schedule().stages]
    tiling = Tiling(tuple((1,) * len(e) for e in extents), 2, assignment)  # type: ignore[arg-type]  # one of these
    schedule = made.schedule(tiling, workers)
    if assignment == "tickets" and workers > 1:
        assert len(schedule.starts) == 0
        assert not schedule.words[q.STATIC]
        return
    assert schedule.words[q.STATIC]
    assert sorted(schedule.assigned.tolist()) == list(range(len(schedule.stage)))
    assert len(schedule.starts) == workers + 1
    for start, stop in zip(schedule.starts, schedule.starts[1:], strict=False):
        assert (np.diff(schedule.assigned[start:stop]) > 0).all()


def test_too_many_instructions_make_larger_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusionq.megakernel.schedule.MOST_INSTRUCTIONS", 100)
    made = persistent(*stencil(4096))
    tiling = Tiling(((1,),) * 4, 4, "tickets")
    schedule = make_schedule(made.body, made.params(), 0, TWO_CORES, tiling)
    assert len(schedule.stage) <= 100
    assert schedule.control_words // REFERENCE.control_line <= 100
