"""Which combinations of parameters tests keep."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import settings

from tests.in_turn import (
    after_the_first,
    before_the_last,
    beyond,
    covering,
    in_turn_of,
    is_short,
    is_whole,
    one_backend_each,
    some_pairs,
)


def every_combination(**counts: int) -> list[dict[str, object]]:
    return [
        dict(zip(counts, indices, strict=True))
        for indices in product(*(range(count) for count in counts.values()))
    ]


def test_each_value_is_kept_and_few_combinations_are() -> None:
    for counts in ({"a": 4}, {"a": 3, "b": 5}, {"a": 2, "b": 3, "c": 6}, {"a": 1, "b": 1}):
        combinations = every_combination(**counts)
        kept = [combinations[k] for k in covering(combinations)]
        assert len(kept) == max(counts.values())
        for name, count in counts.items():
            assert {each[name] for each in kept} == set(range(count))


def test_values_that_stand_in_some_combinations_only() -> None:
    combinations: list[dict[str, object]] = [
        {"a": 0, "b": 0},
        {"a": 0, "b": 1},
        {"a": 1, "b": 1},
        {"a": 1, "b": 2},
    ]
    kept = [combinations[k] for k in covering(combinations)]
    assert {each["a"] for each in kept} == {0, 1}
    assert {each["b"] for each in kept} == {0, 1, 2}


def test_values_are_taken_about_equally_often() -> None:
    combinations = every_combination(backend=3, case=12)
    kept = [combinations[k]["backend"] for k in covering(combinations)]
    assert [kept.count(backend) for backend in range(3)] == [4, 4, 4]


@pytest.mark.parametrize("first, second", [(10, 10), (15, 13), (5, 15), (3, 2), (1, 3), (4, 0)])
def test_pairs_hold_each_value_of_either(first: int, second: int) -> None:
    pairs = some_pairs(range(first), range(100, 100 + second))
    assert {one for one, _ in pairs} == (set(range(first)) if second else set())
    assert {other for _, other in pairs} == set(range(100, 100 + second))
    assert len(set(pairs)) == len(pairs) == first * (second if is_whole() else min(second, 3))


def test_none_of_none() -> None:
    assert covering([]) == []
    assert covering([{}]) == []


def test_every_combination_of_the_others_is_kept_and_backends_are_in_turn() -> None:
    combinations = every_combination(backend=2, case=3, size=2)
    kept = [combinations[k] for k in one_backend_each(combinations, ["backend"])]
    assert {(each["case"], each["size"]) for each in kept} == set(product(range(3), range(2)))
    assert len(kept) == 6
    assert [each["backend"] for each in kept].count(0) == 3


def test_a_case_that_has_one_backend_keeps_it() -> None:
    combinations = [*every_combination(backend=2, case=2), {"backend": 1, "case": 2}]
    assert 4 in one_backend_each(combinations, ["backend"])


def test_one_case_is_kept_on_every_backend() -> None:
    assert one_backend_each(every_combination(backend=3, case=1), ["backend"]) == [0, 1, 2]
    assert one_backend_each(every_combination(backend=3), ["backend"]) == [0, 1, 2]
    assert one_backend_each([], ["backend"]) == []


def test_the_first_of_each_function_stays(request: pytest.FixtureRequest) -> None:
    items = [
        pytest.Function.from_parent(request.node.parent, name=name, callobj=lambda: None)
        for name in ("a[1]", "a[2]", "b", "a[3]", "c[1]")
    ]
    assert {item.name for item in after_the_first(items)} == {"a[2]", "a[3]"}
    assert {item.name for item in before_the_last(items)} == {"a[1]", "a[2]"}


@pytest.mark.parametrize("most, kept", [(2, "06"), (3, "036"), (4, "0246"), (9, "0123456")])
def test_few_of_a_function_that_has_many(
    request: pytest.FixtureRequest, most: int, kept: str
) -> None:
    items = [
        pytest.Function.from_parent(request.node.parent, name=name, callobj=lambda: None)
        for name in (*(f"a[{k}]" for k in range(7)), "b[0]", "b[1]", "c")
    ]
    out = beyond(most, items)
    assert "".join(i.name[2] for i in items if i not in out and i.name[0] == "a") == kept
    assert not any(item.name[0] in "bc" for item in out)


def test_only_the_profile_dev_is_short(request: pytest.FixtureRequest) -> None:
    before = settings.get_current_profile_name()
    request.addfinalizer(lambda: settings.load_profile(before))
    for name in ("dev", "ci", "nightly"):
        settings.load_profile(name)
        assert (is_short(), is_whole()) == (name == "dev", name == "nightly")


def test_items_of_each_function_hold_each_value(request: pytest.FixtureRequest) -> None:
    """A function without parameters stays."""
    items = []
    for name in ("a", "b"):
        for x, y in product(range(3), range(2)):
            item = pytest.Function.from_parent(
                request.node.parent, name=f"{name}[{x}-{y}]", callobj=lambda: None
            )
            item.callspec = SimpleNamespace(params={"x": x, "y": y})  # type: ignore[attr-defined]  # what it is given
            items.append(item)
    alone = pytest.Function.from_parent(request.node.parent, name="c", callobj=lambda: None)
    out = in_turn_of([*items, alone])
    kept = [item.name for item in items if item not in out]
    assert [name[0] for name in kept] == ["a"] * 3 + ["b"] * 3 and alone not in out
    for k, values in ((2, "012"), (4, "01")):
        assert {name[k] for name in kept if name[0] == "a"} == set(values)
