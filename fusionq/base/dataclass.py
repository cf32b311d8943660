"""Dataclasses that compile nothing when their module is imported.

The standard library's decorator writes six functions as text and compiles each when a class is
made, whether they are ever called: a third of a millisecond, 200 times in a process whose plans are
on disk.  Here ``__init__`` is compiled when it is first looked for, and nothing else needs text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # as type checkers know it
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True):
        """As ``dataclasses.dataclass``: equal fields, comparisons, hashes, errors, signatures.

        Its bases are made here, too, where they are dataclasses.
        """
        if cls is None:
            return lambda cls: _made(cls, frozen, slots, eq)
        return _made(cls, frozen, slots, eq)


def _made(cls: type, frozen: bool, slots: bool, eq: bool) -> type:
    own = dict(vars(cls))
    if not cls.__doc__:
        cls.__doc__ = cls.__name__  # or it were made of the signature
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    fields = dataclasses.fields(cls)
    added: dict[str, Any] = {"__init__": _Init(cls, frozen, slots), "__repr__": _represent}
    if eq:
        added["__eq__"] = _equality(_getter([f.name for f in fields if f.compare]))
        hashed = [f.name for f in fields if (f.compare if f.hash is None else f.hash)]
        added["__hash__"] = _hash(_getter(hashed)) if frozen else None
        if own.get("__hash__") is None:
            own.pop("__hash__", None)  # which is None where a class has only __eq__
    if frozen:
        names = frozenset(field.name for field in fields)
        added["__setattr__"], added["__delattr__"] = _frozen(cls, names)
        if slots:
            added["__getstate__"], added["__setstate__"] = _state, _set_state
    for name, value in added.items():
        if name not in own:
            setattr(cls, name, value)
    return cls


class _Factory:
    """The default of a parameter that a ``default_factory`` is called for."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


class _Init:
    """``__init__`` of a dataclass: compiled, and put in this one's place, when it is looked for."""

    def __init__(self, cls: type, frozen: bool, slots: bool) -> None:
        self._cls, self._frozen, self._slots = cls, frozen, slots

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        cls = self._cls
        if cls.__dict__.get("__init__") is self:
            # A type checker forbids what dataclasses do to classes.
            setattr(cls, "__init__", _initialiser(cls, self._frozen, self._slots))  # noqa: B010
        return cls.__dict__["__init__"].__get__(instance, owner)


def _initialiser(cls: Any, frozen: bool, slots: bool) -> Callable[..., None]:
    """The function, with the parameters that the standard library gives it."""
    names: dict[str, Any] = {"FACTORY": _FACTORY, "store": object.__setattr__}
    own: dict[str, str] = {}
    """What the text calls the fields, and what they are called."""
    positional: list[str] = []
    by_name: list[str] = []
    body: list[str] = []
    defaults: dict[str, Any] = {}
    for k, field in enumerate(dataclasses.fields(cls)):
        value = f"value{k}"
        own[value] = own[f"attribute{k}"] = field.name
        if field.default is not dataclasses.MISSING:
            defaults[field.name] = names[f"default{k}"] = field.default
            value = value if field.init else f"default{k}"
        elif field.default_factory is not dataclasses.MISSING:
            defaults[field.name] = _FACTORY
            names[f"make{k}"] = field.default_factory
            made = f"make{k}()"
            value = f"{made} if {value} is FACTORY else {value}" if field.init else made
        if field.init:
            (by_name if field.kw_only else positional).append(f"value{k}")
        elif field.name not in defaults or (field.default is not dataclasses.MISSING and not slots):
            continue  # not set, or the class has its value
        if frozen and slots:
            names[f"set{k}"] = getattr(cls, field.name).__set__
            body.append(f"set{k}(self, {value})")
        elif frozen:
            names[f"name{k}"] = field.name
            body.append(f"store(self, name{k}, {value})")
        else:
            body.append(f"self.attribute{k} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join(["self", *positional, *(["*", *by_name] if by_name else [])])
    code = _compiled("\n ".join([f"def __init__({parameters}):", *(body or ["pass"])]))
    code = code.replace(
        co_varnames=tuple([own.get(name, name) for name in code.co_varnames]),
        co_names=tuple([own.get(name, name) for name in code.co_names]),
    )
    function = FunctionType(code, names, "__init__")
    function.__defaults__ = tuple([defaults[own[v]] for v in positional if own[v] in defaults])
    function.__kwdefaults__ = {own[v]: defaults[own[v]] for v in by_name if own[v] in defaults}
    function.__module__ = cls.__module__
    function.__qualname__ = f"{cls.__qualname__}.__init__"
    types = {field.name: field.type for field in dataclasses.fields(cls) if field.init}
    function.__annotations__ = {**types, "return": None}
    return function


@cache
def _compiled(text: str) -> CodeType:
    """A function's code; classes with as many fields of the same kinds share it."""
    code = compile(text, "<dataclass>", "exec").co_consts[0]
    assert isinstance(code, CodeType)
    return code


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """The values of some attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda value: ()
    one = attrgetter(names[0])
    return lambda value: (one(value),)


def _equality(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], Any]:
    def __eq__(self: Any, other: object) -> Any:
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    return __eq__


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _frozen(cls: Any, names: frozenset[str]) -> tuple[Callable[..., None], Callable[..., None]]:
    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


@recursive_repr()
def _represent(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _state(self: Any) -> list[Any]:
    """What is pickled or copied of a frozen object without a dictionary."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
