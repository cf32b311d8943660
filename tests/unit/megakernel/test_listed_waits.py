"""Lists of instructions with their waits, against the boxes and counters that they are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest

from fusionq.codegen import queue_layout as q
from fusionq.megakernel import listed_waits, schedule
from fusionq.megakernel.counters import completions
from fusionq.megakernel.schedule import Schedule, make_schedule
from fusionq.megakernel.tiling import Tiling
from tests.in_turn import is_whole
from tests.unit.megakernel.cases import CASES
from tests.unit.megakernel.plans import persistent, tilings
from tests.unit.targets import REFERENCE

GPU = replace(REFERENCE, device=replace(REFERENCE.device, groups_in_workers=True))


def lists_of(made: Schedule) -> list[list[tuple[int, int, int, dict[int, int] | None]]]:
    """For each worker its instructions: stage, tile, the line that counts it, and how many tiles
    are awaited by line; None where the list does not say."""
    words, found = made.words, []
    begins = words[words[q.STATIC] :][: made.workers]
    for begin in begins:
        of_worker = []
        at = int(begin)
        while words[at] >= 0:
            instruction, head = int(words[at]), int(words[at + 1])
            count = head & (1 << q.COUNT_BITS) - 1
            lines: dict[int, int] | None = None
            at += q.LISTED_WAITS
            if count != q.BY_FORMS:
                lines = {
                    int(w) >> q.LINE_SHIFT: int(w) & (1 << q.LINE_SHIFT) - 1
                    for w in words[at : at + count]
                }
                assert len(lines) <= count
                at += count
            assert head >> q.LINE_SHIFT == at, "where the next one's words are"
            tile = instruction & (1 << q.TILE_BITS) - 1
            line = (head & (1 << q.LINE_SHIFT) - 1) >> q.COUNT_BITS
            of_worker.append((instruction >> q.TILE_BITS, tile, line - 1, lines))
        found.append(of_worker)
    assert len(words) >= at + q.LISTED_WORDS, "a worker reads that many at once"
    return found


def awaited(made: Schedule, stage: int, tile: int) -> Iterator[tuple[int, int]]:
    """The lines of the counters that a tile waits for, and how many tiles each counts, one after
    the other."""
    for box in made.waits[stage]:
        own, producer = made.counters[box.producer], made.stages[box.producer]
        if box.low is None or box.high is None:
            yield own.total, producer.tiles
            continue
        if any(low[tile] > high[tile] for low, high in zip(box.low, box.high, strict=True)):
            continue
        spans = [
            range(low[tile] // k, high[tile] // k + 1)
            for low, high, k in zip(box.low, box.high, own.shared, strict=True)
        ]
        counts = [-(-n // k) for n, k in zip(producer.count, own.shared, strict=True)]
        for place in np.ndindex(*[len(span) for span in spans]):
            at = [span[k] for span, k in zip(spans, place, strict=True)]
            line = own.first + int(np.ravel_multi_index(at, counts))
            yield line, completions(made.counters, made.stages, box.producer, line)


def line_of(made: Schedule, stage: int, tile: int) -> int:
    own, count = made.counters[stage], made.stages[stage].count
    if own.first < 0:
        return -1
    at = np.unravel_index(tile, count)
    of_counter = [int(k) // n for k, n in zip(at, own.shared, strict=True)]
    counts = [-(-n // k) for n, k in zip(count, own.shared, strict=True)]
    return own.first + int(np.ravel_multi_index(of_counter, counts))


def schedules(case: str, size: int, workers: int) -> Iterator[Schedule]:
    try:
        made = persistent(*CASES[case](size))
    except AssertionError:  # some lists of size 1 have no dependence across work-items
        return
    target = replace(GPU, resident_workers=workers)
    for tiling in tilings([s.extents for s in made.schedule().stages], size):
        for assignment in ("turns", "stages", "shares"):
            yield make_schedule(
                made.body, made.params(), 0, target, replace(tiling, assignment=assignment)
            )


def cases() -> Iterator[tuple[str, int, int]]:
    """Lists with their sizes and numbers of workers, in turn; all in the profile ``nightly``."""
    for number, case in enumerate(CASES):
        if is_whole():
            yield from product([case], [1, 2, 7], [2, 5])
            continue
        workers = (2, 5)[number // 2 % 2]
        yield case, (7, 2)[number % 2], workers
        if number % 3 == 0:
            yield case, 1, workers


@pytest.mark.slow
@pytest.mark.parametrize("case, size, workers", list(cases()))
def test_lists_say_what_boxes_say(case: str, size: int, workers: int) -> None:
    """Of each instruction the counters of all that it waits for, no others, and its own; workers'
    instructions are those of the assignment, in its order."""
    for made in schedules(case, size, workers):
        assert made.words[q.STATIC] > 1
        found = lists_of(made)
        for worker, of_worker in enumerate(found):
            own = made.assigned[made.starts[worker] : made.starts[worker + 1]]
            instructions = [(int(made.stage[k]), int(made.tile[k])) for k in own]
            assert [(stage, tile) for stage, tile, _, _ in of_worker] == instructions
            for stage, tile, line, lines in of_worker:
                assert line == line_of(made, stage, tile)
                expected = list(awaited(made, stage, tile))
                if lines is None:
                    assert len(expected) > q.LISTED_WORDS - q.LISTED_WAITS
                else:
                    assert lines == dict(expected)


def test_waits_that_are_too_many_are_left_to_closed_forms() -> None:
    """A tile of a transposed copy waits for one of each row's tiles."""
    made = persistent(*CASES["transposes"](64))
    extents = [stage.extents for stage in made.schedule().stages]
    tiling = Tiling(tuple((1, *e[1:]) for e in extents), len(extents), "turns")
    found = lists_of(make_schedule(made.body, made.params(), 0, GPU, tiling))
    kinds = {lines is None for of_worker in found for _, _, _, lines in of_worker}
    assert True in kinds or all(
        prod(e) <= q.LISTED_WORDS for e in extents
    ), "this case has boxes of many counters"


def test_only_few_instructions_of_several_workers_on_gpus_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = persistent(*CASES["transposes"](7))
    several = replace(GPU, resident_workers=4)
    tiling = Tiling(tuple((1,) * len(s.extents) for s in made.schedule().stages), 1, "turns")

    def place(target: object, how: Tiling = tiling) -> int:
        return int(make_schedule(made.body, made.params(), 0, target, how).words[q.STATIC])  # type: ignore[arg-type]  # a Target

    assert place(several) > 1
    assert place(replace(several, resident_workers=1)) == 1
    assert place(replace(REFERENCE, resident_workers=4)) == 1
    assert place(several, replace(tiling, assignment="tickets")) == 0
    monkeypatch.setattr(schedule, "MOST_LISTED", 3)
    made = persistent(*CASES["transposes"](7))  # whose orders nobody has kept
    assert place(several) == 1
    assert listed_waits.MOST_LISTED > 3
