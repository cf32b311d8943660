"""Values of several parameters in turn, in place of all combinations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")

Values = Mapping[str, object]
"""A value, hashable, of each parameter."""


def is_whole() -> bool:
    """Whether tests leave nothing out: in the profile ``nightly``."""
    return settings.get_current_profile_name() == "nightly"


def is_short() -> bool:
    """Whether tests are the ones that people run while they work: in the profile ``dev``."""
    return settings.get_current_profile_name() == "dev"


def one_in(count: int, values: Iterable[T], first: int = 0) -> list[T]:
    """All ``values`` in the profile ``nightly``, else one in ``count`` from the ``first`` on."""
    return list(values) if is_whole() else list(islice(values, first, None, count))


def some_pairs(first: Sequence[T], second: Sequence[T], some: int = 3) -> list[tuple[T, T]]:
    """All pairs in the profile ``nightly``, else each of ``first`` with ``some`` of ``second``, far
    from each other and the next ones each time: no value of either is left out if ``some`` times as
    many are in ``first`` as in ``second``."""
    if is_whole() or len(second) <= some:
        return [(one, other) for one in first for other in second]
    steps = [k * len(second) // some for k in range(some)]
    return [
        (one, second[(number + step) % len(second)])
        for number, one in enumerate(first)
        for step in steps
    ]


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


def one_backend_each(combinations: Sequence[Values], backends: Collection[str]) -> list[int]:
    """Positions of ``combinations`` that hold all combinations of the other parameters' values,
    each for one value of the parameters ``backends``, which say where a test runs: the first for
    the first value, the second for the second, and so on.  All of them if there is one other."""
    others: dict[frozenset[tuple[str, object]], list[int]] = {}
    for position, values in enumerate(combinations):
        key = frozenset((name, value) for name, value in values.items() if name not in backends)
        others.setdefault(key, []).append(position)
    if len(others) == 1:
        return list(range(len(combinations)))
    return sorted(each[number % len(each)] for number, each in enumerate(others.values()))


def left_out(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The marked ones of ``items`` whose values other ones hold."""
    return in_turn_of(item for item in items if item.get_closest_marker("in_turn") is not None)


def in_turn_of(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The ones of ``items`` whose values other ones of the same function hold."""
    out: set[pytest.Item] = set()
    for each in _by_function(items).values():
        kept = covering([_values(item) for item in each]) or [0]
        out |= set(each) - {each[k] for k in kept}
    return out


def beyond(most: int, items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The ones of ``items`` whose function has more than ``most``, but for so many, of which the
    first and the last are ones and the others are as far from each other as they can be."""
    out: set[pytest.Item] = set()
    for each in _by_function(items).values():
        if len(each) > most:
            kept = {number * (len(each) - 1) // (most - 1) for number in range(most)}
            out |= {item for position, item in enumerate(each) if position not in kept}
    return out


def on_other_backends(items: Iterable[pytest.Item], backends: Collection[str]) -> set[pytest.Item]:
    """The ones of ``items``, of those that are not marked, that ``one_backend_each`` leaves out."""
    asked = (
        item
        for item in items
        if item.get_closest_marker("in_turn") is None
        and not params_of(item).keys().isdisjoint(backends)
    )
    out: set[pytest.Item] = set()
    for each in _by_function(asked).values():
        given = [{name: id(value) for name, value in params_of(item).items()} for item in each]
        out |= set(each) - {each[k] for k in one_backend_each(given, backends)}
    return out


def after_the_first(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The ones of ``items`` whose function an earlier one has, with other parameters."""
    return {item for each in _by_function(items).values() for item in each[1:]}


def before_the_last(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """The ones of ``items`` whose function a later one has, with other parameters."""
    return after_the_first(reversed(items))


def _by_function(items: Iterable[pytest.Item]) -> dict[str, list[pytest.Item]]:
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return functions


def _values(item: pytest.Item) -> dict[str, object]:
    """What a test is given, by identity; what one ``parametrize`` gives together is one value."""
    given = {name: id(value) for name, value in params_of(item).items()}
    values: dict[str, object] = {}
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0]
        names = names.replace(",", " ").split() if isinstance(names, str) else names
        values[" ".join(names)] = tuple(given.pop(name) for name in names)
    return values | given


def params_of(item: pytest.Item) -> Mapping[str, object]:
    """What a test is given by name; nothing where it has no parameters."""
    params: Mapping[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    return params
