"""What a kernel sees of its surroundings: globals, closures and the functions it calls.

Everything is read once, when the kernel is first specialised or its fingerprint first asked
for, and never again (as numba does): a global changed later is seen by a new kernel only.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections.abc import Iterator
from enum import Enum
from types import FunctionType, ModuleType

import numpy as np

from fusionq.base.errors import KernelLanguageError
from fusionq.frontend.source import FunctionSource, KernelText, function_source


class _Missing:
    """Stands for a name that is not defined."""


MISSING = _Missing()


def is_inlinable(obj: object) -> bool:
    """Whether a call of ``obj`` is inlined: a plain Python function, and none of NumPy's or of
    the kernel language's own."""
    if not isinstance(obj, FunctionType):
        return False
    module = obj.__module__ or ""
    return module.split(".")[0] != "numpy" and not module.startswith("fusionq.language.")


class Captures:
    """The names that a kernel and the functions it calls refer to, each read once."""

    def __init__(self, kernel: FunctionType) -> None:
        self._kernel = kernel
        self._names: dict[tuple[FunctionType, str], object] = {}
        self._attributes: dict[tuple[int, str], object] = {}
        self._sources: dict[FunctionType, FunctionSource] = {}
        self._keep: list[object] = []  # so that no id in _attributes is reused
        self.fingerprint = self._scan()
        """sha256 hex of the normalised source text of all functions and of the constants."""
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

    def attribute(self, owner: object, name: str) -> object:
        """An attribute of a module or another compile-time object, or MISSING."""
        key = (id(owner), name)
        if key not in self._attributes:
            self._keep.append(owner)
            self._attributes[key] = getattr(owner, name, MISSING)
        return self._attributes[key]

    def _scan(self) -> str:
        digest = hashlib.sha256()
        number = {self._kernel: 0}  # two functions that go by one name are still two
        waiting = [self._kernel]
        while waiting:
            function = waiting.pop()
            source = self.source(function)
            parts = [source.normalised]
            found = list(_references(self, source))
            for default in (function.__defaults__ or ()) + tuple(
                (function.__kwdefaults__ or {}).values()
            ):
                found.append(("default", default))
            for label, obj in found:
                parts.append(f"{label} = {_identity(obj)}")
                for inner in _flatten(obj):
                    if is_inlinable(inner) and self._has_source(inner):
                        assert isinstance(inner, FunctionType)
                        if inner not in number:
                            number[inner] = len(number)
                            waiting.append(inner)
                        parts.append(f"function {number[inner]}")
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

    def _has_source(self, function: object) -> bool:
        assert isinstance(function, FunctionType)
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


def _references(captures: Captures, source: FunctionSource) -> Iterator[tuple[str, object]]:
    """Each free name of a function, and each attribute of a module, with what it stands for."""

    def resolve(node: ast.expr) -> tuple[str, object] | None:
        if isinstance(node, ast.Name):
            if node.id in source.local_names:
                return None
            return node.id, captures.name(source.function, node.id)
        if isinstance(node, ast.Attribute):
            owner = resolve(node.value)
            if owner is not None and isinstance(owner[1], ModuleType):
                return f"{owner[0]}.{node.attr}", captures.attribute(owner[1], node.attr)
        return None

    found: dict[str, object] = {}
    for statement in source.tree.body:
        for node in ast.walk(statement):
            if isinstance(node, (ast.Name, ast.Attribute)):
                reference = resolve(node)
                if reference is not None:
                    found[reference[0]] = reference[1]
    yield from sorted(found.items())


def _flatten(obj: object) -> Iterator[object]:
    if isinstance(obj, tuple):
        for item in obj:
            yield from _flatten(item)
    else:
        yield obj


def _identity(obj: object) -> str:
    """Text that differs for constants that differ; objects go by their name."""
    if isinstance(obj, tuple):
        return f"({', '.join(map(_identity, obj))})"
    if isinstance(obj, (bool, int, float, str, np.generic, type(None))):
        return f"{type(obj).__name__} {obj!r}"
    if isinstance(obj, Enum):
        return str(obj)
    if isinstance(obj, (np.finfo, np.iinfo)):
        return f"{type(obj).__name__} {obj.dtype}"
    if isinstance(obj, np.dtype):
        return repr(obj)
    module = getattr(obj, "__module__", None)
    name = getattr(obj, "__qualname__", getattr(obj, "__name__", type(obj).__qualname__))
    return f"{module}.{name}"
