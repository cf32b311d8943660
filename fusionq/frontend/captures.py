"""What a kernel sees of its surroundings: globals, closures and the functions it calls.

Everything is read once, when the kernel is first specialised or its fingerprint first asked
for, and never again (as numba does): a global changed later is seen by a new kernel only.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from types import FunctionType, ModuleType

import numpy as np

from fusionq.base.errors import KernelLanguageError
from fusionq.frontend.callees import Callee, callee_of
from fusionq.frontend.constants import frozen, identity
from fusionq.frontend.source import FunctionSource, KernelText, function_source


class _Absent:
    """Stands for a name or an attribute that is not available."""


MISSING = _Absent()
"""It is not defined."""
LIKE_NUMPY = frozenset({"dpnp"})
"""Modules whose functions on numbers are NumPy's by the same names; their own are for arrays."""

UNSEEN = _Absent()
"""An attribute of an object that changes, and that the fingerprint does not have."""


class Captures:
    """The names that a kernel and the functions it calls refer to, each read once."""

    def __init__(self, kernel: Callee) -> None:
        self._kernel = kernel
        self._names: dict[tuple[FunctionType, str], object] = {}
        self._attributes: dict[tuple[int, str], object] = {}
        self._frozen: dict[int, object] = {}
        self._sources: dict[FunctionType, FunctionSource] = {}
        self._keep: list[object] = []  # so that no id in these is reused
        self._complete = False
        self.fingerprint = self._scan()
        """sha256 hex of the normalised source text of all functions and of the constants."""
        self._complete = True
        self.text = self._text()
        """The lines of all functions."""

    def source(self, function: FunctionType) -> FunctionSource:
        """The function's source; KernelLanguageError if there is none."""
        if function not in self._sources:
            self._sources[function] = function_source(function)
        return self._sources[function]

    def name(self, function: FunctionType, name: str) -> object:
        """What a free name of the function stands for, or MISSING."""
        key = (function, name)
        if key not in self._names:
            self._names[key] = _free_name(function, name)
        return self._names[key]

    def callee(self, obj: object) -> Callee | None:
        """What a call of ``obj`` inlines; None for what is no Python code of the user's."""
        return callee_of(obj)

    def attribute(self, owner: object, name: str) -> object:
        """An attribute of a module, NumPy's where that is like it, or another compile-time object;
        MISSING, or UNSEEN where another process could see another value under the same
        fingerprint."""
        key = (id(owner), name)
        if key not in self._attributes:
            if self._complete and not isinstance(owner, _LASTING):
                return UNSEEN
            self._keep.append(owner)
            found = getattr(owner, name, MISSING)
            if isinstance(owner, ModuleType) and owner.__name__ in LIKE_NUMPY:
                found = getattr(np, name, found)
            self._attributes[key] = found
        return self._attributes[key]

    def frozen(self, obj: object) -> object:
        """A list or a small array as it was when it was first asked for, whatever becomes of it."""
        if not isinstance(obj, (tuple, list, np.ndarray)):
            return obj
        if id(obj) not in self._frozen:
            copy = self._frozen[id(obj)] = frozen(obj)
            self._frozen[id(copy)] = copy
            self._keep += [obj, copy]
        return self._frozen[id(obj)]

    def _scan(self) -> str:
        digest = hashlib.sha256()
        number = {_key(self._kernel): 0}  # two functions that go by one name are still two
        waiting = [self._kernel]
        while waiting:
            callee = waiting.pop()
            function = callee.function
            source = self.source(function)
            parts = [source.normalised]
            found = list(_references(self, source, callee.bound))
            found += [(f"bound {name}", value) for name, value in sorted(callee.bound.items())]
            for default in (function.__defaults__ or ()) + tuple(
                (function.__kwdefaults__ or {}).values()
            ):
                found.append(("default", default))
            for label, value in found:
                obj = self.frozen(value)
                parts.append(f"{label} = {identity(obj)}")
                for inner in _flatten(obj):
                    called = self.callee(inner)
                    if called is not None and self._has_source(called.function):
                        self._keep.append(called)
                        if _key(called) not in number:
                            number[_key(called)] = len(number)
                            waiting.append(called)
                        parts.append(f"{called.identity} {number[_key(called)]}")
            digest.update("\n".join(parts).encode())
            digest.update(b"\0")
        return digest.hexdigest()

    def _text(self) -> KernelText:
        digest = hashlib.sha256(self.fingerprint.encode())
        found = tuple(self._sources.values())
        for source in found:
            digest.update(b"\0")
            digest.update("".join(source.lines).encode())
        places = tuple((source.file, source.first_line, len(source.lines)) for source in found)
        return KernelText(digest.hexdigest(), places)

    def _has_source(self, function: FunctionType) -> bool:
        try:
            self.source(function)
        except KernelLanguageError:
            return False  # an error only where the kernel calls it
        return True


def _free_name(function: FunctionType, name: str) -> object:
    if name in function.__code__.co_freevars:
        cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:
            return MISSING  # assigned later, or never
    if name in function.__globals__:
        return function.__globals__[name]
    return getattr(builtins, name, MISSING)


_LASTING = (ModuleType, Enum, np.finfo, np.iinfo, np.dtype)
"""Objects whose attributes are the same in each process that has the same source."""


def _key(callee: Callee) -> tuple[object, ...]:
    bound = sorted((name, id(value)) for name, value in callee.bound.items())
    return callee.function, callee.identity, *bound


def static_object(
    node: ast.expr, name: Callable[[str], object], attribute: Callable[[object, str], object]
) -> object:
    """The object that a name or a chain of attributes, ``getattr`` with a known name included,
    stands for at compile time; MISSING where it is none.  ``name`` gives what a name stands for."""
    member: object
    match node:
        case ast.Name():
            return name(node.id)
        case ast.Attribute():
            owner, member = static_object(node.value, name, attribute), node.attr
        case ast.Call(func=ast.Name() as function, args=[inner, text], keywords=[]) if (
            name(function.id) is getattr
        ):
            known = text.value if isinstance(text, ast.Constant) else MISSING
            member = known if isinstance(known, str) else static_object(text, name, attribute)
            if not isinstance(member, str):
                return MISSING
            owner = static_object(inner, name, attribute)
        case _:
            return MISSING
    assert isinstance(member, str)
    return owner if isinstance(owner, _Absent) else attribute(owner, member)


def _references(
    captures: Captures, source: FunctionSource, bound: Mapping[str, object]
) -> Iterator[tuple[str, object]]:
    """Each free name of a function, and each attribute of an object, with what it stands for;
    ``bound``: parameters that are known."""
    local_names, assigned = source.local_names, source.assigned

    def name(name: str) -> object:
        if name not in local_names:
            return captures.name(source.function, name)
        return MISSING if name in assigned else bound.get(name, MISSING)

    for text, node in source.mentioned:
        obj = static_object(node, name, captures.attribute)
        free = isinstance(node, ast.Name) and node.id not in local_names
        if free or obj is not MISSING:
            yield text, obj


def _flatten(obj: object) -> Iterator[object]:
    if isinstance(obj, tuple):
        for item in obj:
            yield from _flatten(item)
    else:
        yield obj
