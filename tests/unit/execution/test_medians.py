"""Medians of runs that take turns."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fusionq.execution import autotune


# ------------------------------------------------------------------------------- medians
class Clock:
    """A clock that stands still but while something runs."""

    def __init__(self) -> None:
        self.now = 0.0
        self.order: list[str] = []

    def __call__(self) -> float:
        return self.now

    def run(self, name: str, *seconds: float) -> Callable[[], float]:
        """Takes these times in turn, and the last of them ever after."""
        left = list(seconds)

        def once() -> float:
            taken = left.pop(0) if len(left) > 1 else left[0]
            self.now += taken
            self.order.append(name)
            return taken

        return once


def test_medians_take_turns() -> None:
    clock = Clock()
    runs = {name: clock.run(name, 0.1, 0.3, 0.2) for name in "abc"}
    found = autotune.medians(runs, clock)
    assert set(found) == set("abc") and all(t == pytest.approx(0.2) for t in found.values())
    rounds = ["".join(clock.order[k : k + 3]) for k in range(0, len(clock.order), 3)]
    assert all(sorted(r) == list("abc") for r in rounds)
    assert len({r[0] for r in rounds[:3]}) == 3


def test_medians_give_up_what_is_clearly_worse() -> None:
    clock = Clock()
    runs = {
        "a": clock.run("a", 1e-3),
        "b": clock.run("b", 1.1e-3),
        "c": clock.run("c", 9e-3, 1.2e-3, 9e-3),  # once as fast as the others
        "d": clock.run("d", 1.5e-3),
    }
    found = autotune.medians(runs, clock)
    assert clock.order.count("d") == autotune.EARLIEST
    assert clock.order.count("a") == clock.order.count("b") == clock.order.count("c") == 40
    assert min(found, key=found.__getitem__) == "a"


def test_medians_stop_when_one_is_left() -> None:
    clock = Clock()
    autotune.medians({"a": clock.run("a", 1e-3), "b": clock.run("b", 9e-3)}, clock)
    assert len(clock.order) == 2 * autotune.EARLIEST


@pytest.mark.parametrize(("seconds", "rounds"), [(0.04, autotune.FEWEST_ROUNDS), (5.0, 1)])
def test_medians_stop_after_a_time(seconds: float, rounds: int) -> None:
    clock = Clock()
    autotune.medians({"a": clock.run("a", seconds), "b": clock.run("b", seconds)}, clock)
    assert len(clock.order) == 2 * rounds
