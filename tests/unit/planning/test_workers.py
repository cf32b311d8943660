"""How many workers a persistent kernel has for its sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fusionq.planning.cost import PersistentPart, fewest_workers
from tests.unit.targets import TWO_CORES

SIXTEEN = replace(TWO_CORES, resident_workers=16)
HANDED_OVER = TWO_CORES.costs.stage_seconds


def stages(count: int, seconds: float, parts: int = 1 << 20) -> list[PersistentPart]:
    return [PersistentPart(seconds, parts)] * count


def test_small_stages_have_one_worker_and_large_ones_all() -> None:
    assert fewest_workers(stages(64, HANDED_OVER / 4), SIXTEEN)[0] == 1
    assert fewest_workers(stages(64, 100 * HANDED_OVER), SIXTEEN)[0] == 16


def test_the_number_grows_with_the_work() -> None:
    chosen = [fewest_workers(stages(64, HANDED_OVER * 2.0**k), SIXTEEN)[0] for k in range(-4, 9)]
    assert chosen == sorted(chosen)
    assert set(chosen) > {1, 16}


def test_more_workers_than_parts_are_of_no_use() -> None:
    assert fewest_workers(stages(8, 100 * HANDED_OVER, parts=1), SIXTEEN)[0] == 1
    assert fewest_workers(stages(8, 100 * HANDED_OVER, parts=4), SIXTEEN)[0] == 4


def test_a_few_large_stages_among_small_ones_have_help() -> None:
    mixed = [*stages(60, HANDED_OVER / 100), *stages(4, 1000 * HANDED_OVER)]
    assert fewest_workers(mixed, SIXTEEN)[0] == 16


@pytest.mark.parametrize("resident", [1, 2, 3, 5, 12])
def test_no_more_than_run_at_once(resident: int) -> None:
    target = replace(TWO_CORES, resident_workers=resident)
    assert fewest_workers(stages(4, 1.0), target)[0] == resident


def test_the_seconds_are_those_of_the_choice() -> None:
    costs = TWO_CORES.costs
    one = fewest_workers(stages(8, HANDED_OVER / 8), TWO_CORES)[1]
    assert one == pytest.approx(costs.launch_seconds + 8 * costs.alone_seconds + HANDED_OVER)
    two = fewest_workers(stages(8, 50 * HANDED_OVER), TWO_CORES)[1]
    assert two == pytest.approx(
        (costs.start_launches + costs.others_launches) * costs.launch_seconds
        + 8 * (1 + 25) * HANDED_OVER
    )
