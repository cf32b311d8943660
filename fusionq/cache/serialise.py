"""Frozen dataclasses as JSON-able data and back, by their own field types.

A dataclass becomes ``[its name, its fields …]``, a tuple a list, a dict with strings for keys an
object.  Reading follows the declared types and takes nothing else: no name is looked up but those
of the expected classes, no code is run, and what comes back has the types that it says.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

from fusionq.base.articles import with_article

T = TypeVar("T")
Known = dict[tuple[int, type], Any]
"""What the data of an instance, by identity, has been decoded to."""

Decoder = Callable[[Any, Known], Any]


class MalformedData(ValueError):
    """Data that is not of the expected type."""


def encode(value: object) -> Any:
    """``value`` (None, bool, int, float, str; tuples, frozensets, dicts with strings for keys, and
    dataclasses of these) as JSON-able data; TypeError for anything else.  A dataclass that occurs
    several times is the same list each time."""
    return _encoded(value, {})


def _encoded(value: object, known: dict[int, Any]) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, tuple):
        return [item if type(item) is int else _encoded(item, known) for item in value]
    if isinstance(value, frozenset):
        return sorted((_encoded(item, known) for item in value), key=repr)
    if isinstance(value, dict):
        if not all(type(key) is str for key in value):
            raise TypeError(f"a dict whose keys are not all strings cannot be kept: {value!r:.80}")
        return {key: _encoded(item, known) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        data = known.get(id(value))
        if data is None:
            names = _field_names(type(value))
            members = [_encoded(getattr(value, name), known) for name in names]
            data = known[id(value)] = [type(value).__name__, *members]
        return data
    raise TypeError(f"{with_article(type(value).__name__)} cannot be kept as data: {value!r}")


def decode(type: type[T], data: Any) -> T:
    """The ``type`` (a dataclass) that ``encode`` made ``data`` of; MalformedData if it is none.
    One list that occurs several times becomes one instance."""
    hint: Any = type
    decoded: T = _decoder(hint)(data, {})
    return decoded


@lru_cache(maxsize=256)
def _field_names(type: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(type))


def _fail(expected: object, data: object) -> MalformedData:
    return MalformedData(f"expected {expected}, found {data!r:.80}")


@lru_cache(maxsize=1024)
def _decoder(hint: Any) -> Decoder:
    """What turns data into a value of the type ``hint``."""
    if hint in (bool, int, float, str, type(None)):
        return _plain(hint)
    if is_dataclass(hint):
        kind: Any = hint
        return _Instance(kind)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _literal(arguments)
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if origin is frozenset:
        inside = _tuple((arguments[0], ...))
        return lambda data, known: frozenset(inside(data, known))
    if origin is tuple:
        return _tuple(arguments)
    if origin is dict and arguments[0] is str:
        return _object(arguments[1])
    raise TypeError(f"fields of the type {hint} cannot be kept as data")


def _plain(kind: type) -> Decoder:
    def decoded(data: Any, known: Known) -> Any:
        if type(data) is not kind:
            raise _fail(kind.__name__, data)
        return data

    return decoded


def _literal(values: tuple[Any, ...]) -> Decoder:
    def decoded(data: Any, known: Known) -> Any:
        if not any(data == value and type(data) is type(value) for value in values):
            raise _fail(f"one of {values}", data)
        return data

    return decoded


def _tuple(arguments: tuple[Any, ...]) -> Decoder:
    if len(arguments) == 2 and arguments[1] is ...:
        each = _decoder(arguments[0])

        def uniform(data: Any, known: Known) -> Any:
            if type(data) is not list:
                raise _fail("a list", data)
            return tuple([each(item, known) for item in data])

        return uniform
    members = tuple(_decoder(argument) for argument in arguments)

    def fixed(data: Any, known: Known) -> Any:
        if type(data) is not list or len(data) != len(members):
            raise _fail(f"a list of {len(members)}", data)
        return tuple([member(item, known) for member, item in zip(members, data, strict=True)])

    return fixed


def _object(hint: Any) -> Decoder:
    each = _decoder(hint)

    def decoded(data: Any, known: Known) -> Any:
        if type(data) is not dict:
            raise _fail("an object", data)
        return {key: each(item, known) for key, item in data.items()}

    return decoded


def _union(members: tuple[Any, ...]) -> Decoder:
    """Dataclasses are told apart by name, plain types by the data's own type; of other members
    there may be one."""
    classes = {m.__name__: _decoder(m) for m in members if _is_class_of_data(m)}
    plain = tuple(m for m in members if m in (bool, int, float, str, type(None)))
    others = [m for m in members if m not in plain and not _is_class_of_data(m)]
    if len(others) > 1:
        raise TypeError(f"cannot tell the members of {members} apart as data")
    other = _decoder(others[0]) if others else None

    def decoded(data: Any, known: Known) -> Any:
        if type(data) in plain:
            return data
        if type(data) is list and data and type(data[0]) is str and data[0] in classes:
            return classes[data[0]](data, known)
        if other is None:
            raise _fail(members, data)
        return other(data, known)

    return decoded


@lru_cache(maxsize=1024)
def _named_type(module: types.ModuleType, text: Any) -> Any:
    """The type that an annotation in the source of ``module`` stands for.

    As ``typing.get_type_hints``, but each text is evaluated once, not once for each field.
    """
    return eval(text, vars(module)) if isinstance(text, str) else text


def _is_class_of_data(member: Any) -> bool:
    return is_dataclass(member)


class _Instance:
    """Makes instances of a dataclass; its fields' types are looked up when first needed, since
    they may be that class again."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.members: tuple[Decoder, ...] | None = None

    def __call__(self, data: Any, known: Known) -> Any:
        found = known.get((id(data), self.kind))
        if found is None:
            found = known[id(data), self.kind] = self._made(data, known)
        return found

    def _made(self, data: Any, known: Known) -> Any:
        members = self.members
        if members is None:
            module = sys.modules[self.kind.__module__]
            members = self.members = tuple(
                _decoder(_named_type(module, cast(Any, field.type))) for field in fields(self.kind)
            )
        if (
            type(data) is not list
            or len(data) != len(members) + 1
            or type(data[0]) is not str
            or data[0] != self.kind.__name__
        ):
            raise _fail(self.kind.__name__, data)
        inside = [member(item, known) for member, item in zip(members, data[1:], strict=True)]
        return self.kind(*inside)
