"""Tests marked ``in_turn``: values of several parameters in turn, in place of all combinations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pytest

Values = Mapping[str, object]
"""A value, hashable, of each parameter."""


def covering(combinations: Sequence[Values]) -> list[int]:
    """Positions of few combinations that hold each value of each parameter that some combination
    holds: the one with most that are missing, each time, of the values taken least."""
    missing = {value for combination in combinations for value in combination.items()}
    taken: Counter[tuple[str, object]] = Counter()
    chosen: list[int] = []

    def gain(position: int) -> tuple[int, int, int]:
        values = combinations[position].items()
        return len(missing & values), -sum(taken[value] for value in values), -position

    while missing:
        best = max(range(len(combinations)), key=gain)
        chosen.append(best)
        missing -= combinations[best].items()
        taken.update(combinations[best].items())
    return sorted(chosen)


def left_out(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The marked ones of ``items`` whose values other ones hold."""
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("in_turn") is not None:
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    out: set[pytest.Item] = set()
    for each in functions.values():
        kept = covering([_values(item) for item in each])
        out |= set(each) - {each[k] for k in kept}
    return out


def _values(item: pytest.Item) -> dict[str, object]:
    """What a test is given, by identity; what one ``parametrize`` gives together is one value."""
    given = {name: id(value) for name, value in item.callspec.params.items()}  # type: ignore[attr-defined]
    values: dict[str, object] = {}
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0]
        names = names.replace(",", " ").split() if isinstance(names, str) else names
        values[" ".join(names)] = tuple(given.pop(name) for name in names)
    return values | given
