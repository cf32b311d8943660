"""Which launch a stall record is of."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod

import pytest

from fusionq.codegen import queue_layout as q
from fusionq.megakernel.control import WORD, epoch_of
from fusionq.megakernel.counters import Counters, completions, producer_of
from fusionq.megakernel.tiles import tiled

STAGES = [
    ((7,), (3,), True, True),
    ((5, 9), (2, 4), True, False),
    ((4,), (1,), False, True),
    ((3,), (1,), False, False),
    ((2, 3, 5), (1, 2, 5), True, True),
    ((1,), (1,), False, True),
]
"""Of each the tiles, how many share a counter, and which counters there are."""


def test_the_completions_of_each_counter() -> None:
    line, counters, stages = q.FIRST_COUNTER, [], []
    counted: Counter[int] = Counter()
    counts: dict[int, int] = {}
    for k, (count, shared, boxed, total) in enumerate(STAGES):
        first = last = -1
        lines = [-(-n // s) for n, s in zip(count, shared, strict=True)]
        if boxed:
            first, line = line, line + prod(lines)
        if total:
            last, line = line, line + 1
        for tile in product(*map(range, count)):
            at = 0
            for t, s, n in zip(tile, shared, lines, strict=True):
                at = at * n + t // s
            of_tile = [first + at] * boxed + [last] * total
            counted.update(of_tile)
            counts.update(dict.fromkeys(of_tile, k))
        counters.append(Counters(shared, first, last))
        stages.append(tiled(count, (1,) * len(count)))
    assert sorted(counted) == list(range(q.FIRST_COUNTER, line))
    for at, expected in counted.items():
        producer = producer_of(counters, at)
        assert producer == counts[at]
        assert completions(counters, stages, producer, at) == expected
    assert producer_of(counters, q.AT_WORK) is None


@pytest.mark.parametrize("of_one", [1, 2, 3, 6, 7, 8, 12, 1000, 1 << 20])
def test_the_epoch_of_what_a_counter_should_have_come_to(of_one: int) -> None:
    for epoch in (1, 2, 5, 1000, 4095):
        assert epoch_of(epoch * of_one % WORD, of_one, 4095) == epoch


def test_several_epochs_expect_the_same() -> None:
    """The first of them: it is told to all behind."""
    assert epoch_of(5 * 8 % WORD, 8, WORD - 1) == 5
    late = 5 + WORD // 8
    assert epoch_of(late * 8 % WORD, 8, WORD - 1) == 5
    assert epoch_of(0, 8, WORD - 1) == WORD // 8


def test_what_no_launch_expects_is_told_to_all() -> None:
    assert epoch_of(13, 8, 4000) == 1
    assert epoch_of(40, 8, 4) == 1
    assert epoch_of(0, 3, 4) == 1
