"""fusionq's ``dataclass`` is that of the standard library, compiled later."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, replace
from functools import partial
from itertools import product
from typing import Any

import pytest

from fusionq.base import dataclass as own
from tests.unit.test_import_direction import MODULES

OPTIONS = [
    {"frozen": frozen, "slots": slots, "eq": eq}
    for frozen, slots, eq in product((False, True), repeat=3)
]


def without_fields(decorator: Callable[[type], type]) -> type:
    @decorator
    class Class:
        pass

    return Class


def with_one(decorator: Callable[[type], type]) -> type:
    @decorator
    class Class:
        """One field."""

        only: Any

    return Class


def with_defaults(decorator: Callable[[type], type]) -> type:
    @decorator
    class Class:
        """Every kind of field."""

        first: int
        second: str = "two"
        third: list[int] = field(default_factory=list)
        hidden: int = field(default=3, repr=False, compare=False)
        hashed: int = field(default=4, hash=False)
        fixed: int = field(default=5, init=False)
        made: list[int] = field(default_factory=lambda: [6], init=False)
        named: int = field(default=7, kw_only=True)

    return Class


def with_own_methods(decorator: Callable[[type], type]) -> type:
    @decorator
    class Class:
        first: Any
        second: Any = None

        def __post_init__(self) -> None:
            object.__setattr__(self, "second", [self.first])

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self)) and self.first == other.first

        def __repr__(self) -> str:
            return "own"

    return Class


def with_own_hash(decorator: Callable[[type], type]) -> type:
    @decorator
    class Class:
        first: Any

        def __hash__(self) -> int:
            return 3

    return Class


def derived(decorator: Callable[[type], type]) -> type:
    @decorator
    class Base:
        first: Any
        second: int = 2

    @decorator
    class Class(Base):  # type: ignore[misc,valid-type]  # made by a decorator
        second: int = 3
        third: int = 4

    return Class


def undecorated(decorator: Callable[[type], type]) -> type:
    class Class(with_one(decorator)):  # type: ignore[misc]  # made by a decorator
        pass

    return Class


CLASSES: dict[Callable[..., type], list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    without_fields: [((), {}), ((1,), {})],
    with_one: [((1,), {}), ((2,), {}), ((float("nan"),), {}), ((), {}), ((1, 2), {})],
    with_defaults: [
        ((1,), {}), ((1, "two", []), {}), ((1,), {"hidden": 9}), ((1,), {"hashed": 9}),
        ((1, "x", [3], 4, 5), {"named": 6}), ((1, "two", [], 3, 4, 7), {}), ((), {}),
        ((1,), {"fixed": 2}),
    ],
    with_own_methods: [((1,), {}), ((1, 2), {}), ((2,), {})],
    with_own_hash: [((1,), {}), ((2,), {})],
    derived: [((1,), {}), ((1, 2), {}), ((1, 3, 4), {}), ((1,), {"third": 5})],
    undecorated: [((1,), {}), ((2,), {})],
}  # fmt: skip
"""What makes a class, and the arguments that its objects are made with."""


def another(value: Any) -> None:
    value.another = 8


def assigned(value: Any) -> None:
    value.first = 8


def deleted(value: Any) -> None:
    del value.first


def replaced(value: Any) -> Any:
    return replace(value, first=7)


CHANGES = (another, assigned, deleted, replaced, copy.copy, copy.deepcopy)


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or the error and its text."""
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


def shown(call: Callable[[], Any]) -> Any:
    """As ``outcome``, of objects what they are made of."""
    found = outcome(call)
    if not dataclasses.is_dataclass(found):
        return found
    return outcome(lambda: repr(found)), {
        f.name: getattr(found, f.name, "unset") for f in fields(found)
    }


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("make", CLASSES, ids=lambda make: make.__name__)
def test_it_is_the_standard_librarys(make: Callable[..., type], options: dict[str, bool]) -> None:
    pair = [make(decorator(**options)) for decorator in (dataclasses.dataclass, own.dataclass)]
    makers: list[Any] = [
        [lambda cls=cls, a=a, k=k: cls(*a, **k) for a, k in CLASSES[make]] for cls in pair
    ]
    for theirs, ours in zip(*makers, strict=True):
        assert shown(theirs) == shown(ours)
    objects: list[list[Any]] = [
        [found for maker in all_of for found in [outcome(maker)] if not isinstance(found, tuple)]
        for all_of in makers
    ]
    for (a, x), (b, y) in product(zip(*objects, strict=True), repeat=2):
        assert (a == b, a != b) == (x == y, x != y)
        if options["frozen"] and options["eq"]:
            assert outcome(lambda a=a: hash(a)) == outcome(lambda x=x: hash(x))
    for theirs, ours in zip(*objects, strict=True):
        assert theirs != ours  # of different classes
        for change in CHANGES:
            expected, found = copy.copy(theirs), copy.copy(ours)
            result = shown(partial(change, expected))
            if "super(type, obj)" in str(result):
                continue  # Python's forgets that slots make another class
            assert result == shown(partial(change, found))
            assert shown(lambda value=expected: value) == shown(lambda value=found: value)
    assert str(inspect.signature(pair[0])) == str(inspect.signature(pair[1]))
    assert (pair[0].__hash__ is None) == (pair[1].__hash__ is None)
    assert getattr(pair[0], "__match_args__", ()) == getattr(pair[1], "__match_args__", ())


@own.dataclass(frozen=True, slots=True)
class Pickled:
    """A class that is found by its name."""

    first: int
    second: list[Pickled]


def test_frozen_ones_without_a_dictionary_are_pickled() -> None:
    made = Pickled(1, [Pickled(2, [])])
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(FrozenInstanceError):
        made.first = 3  # type: ignore[misc]  # which is refused
    with pytest.raises(FrozenInstanceError):
        made.third = 3  # type: ignore[attr-defined]


def test_one_that_holds_itself_has_a_text() -> None:
    made = Pickled(1, [])
    made.second.append(made)
    assert "..." in repr(made)


def test_nothing_is_compiled_before_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    real = own._initialiser
    monkeypatch.setattr(
        own, "_initialiser", lambda cls, *rest: compiled.append(cls) or real(cls, *rest)
    )
    made = with_defaults(own.dataclass(frozen=True, slots=True))
    assert fields(made) and not compiled
    assert made(1) == made(1)
    assert compiled == [made]


def test_no_module_uses_the_standard_librarys() -> None:
    users = set()
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "dataclasses":
                users |= {name for alias in node.names if alias.name == "dataclass"}
    users = {name for name in users if not name.startswith(("benchmarks", "kernels"))}
    assert users == {"base.dataclass"}
