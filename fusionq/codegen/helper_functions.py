"""The helper functions that a kernel turned out to need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from fusionq.ir.nodes import ArrayDecl
from fusionq.ir.types import BFLOAT16, ScalarType

PREFIX = "fq_"
"""What the helpers' names start with, and no name of the user's kernel does."""


def suffix(type: ScalarType) -> str:
    """How a type is named in a helper's name: ``i32``, ``f64``, ``b8``."""
    return "bf16" if type == BFLOAT16 else f"{type.kind}{type.bits}"


class HelperFunctions(ABC):
    """Names of helper functions, and their texts in the order of first need."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._tables: dict[str, str] = {}

    @property
    def texts(self) -> list[str]:
        """Their definitions, callees first."""
        return list(self._texts.values())

    def add(self, name: str, text: str) -> None:
        """Take in a function that was printed elsewhere."""
        self._texts.setdefault(name, text)

    def table(self, array: ArrayDecl, definition: Callable[[str], str]) -> str:
        """The name of the constant array with these contents; ``definition`` gives its text."""
        key = f"{array.dtype} {array.shape} {array.contents}"
        if key not in self._tables:
            self._tables[key] = name = f"{PREFIX}table_{len(self._tables)}"
            self._texts[name] = definition(name)
        return self._tables[key]

    def operation(self, operation: str, type: ScalarType) -> str:
        """The name of the helper for ``operation`` on operands of ``type``."""
        name = f"{PREFIX}{operation}_{suffix(type)}"
        return self._made(name, lambda: self.operation_text(name, operation, type))

    def range_length(self) -> str:
        """The name of the helper that counts ``range(start, stop, step)``; 0 for a step of 0."""
        name = f"{PREFIX}range_length"
        return self._made(name, lambda: self.range_length_text(name))

    def saturating_cast(self, target: ScalarType, source: ScalarType) -> str:
        """The name of the floating to integer conversion that truncates, saturates, and gives
        0 for NaN."""
        name = f"{PREFIX}{suffix(target)}_of_{suffix(source)}"
        return self._made(name, lambda: self.saturating_cast_text(name, target, source))

    def _made(self, name: str, text: Callable[[], str]) -> str:
        if name not in self._texts:
            self._texts[name] = text()  # after those that it calls
        return name

    @abstractmethod
    def operation_text(self, name: str, operation: str, type: ScalarType) -> str:
        """The definition of ``operation``."""

    @abstractmethod
    def range_length_text(self, name: str) -> str:
        """The definition of ``range_length``."""

    @abstractmethod
    def saturating_cast_text(self, name: str, target: ScalarType, source: ScalarType) -> str:
        """The definition of ``saturating_cast``."""
