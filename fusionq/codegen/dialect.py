"""What differs between the C-family languages that kernels are printed in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from fusionq.base.target import FloatMode
from fusionq.ir.nodes import Query, Space
from fusionq.ir.types import ScalarType


class Dialect(Protocol):
    """One C-family kernel language.

    Precedences and statements are C's in all of them; type names, qualifiers, work-item
    queries, the names of math functions and the file's head are not.
    """

    kernel_qualifier: str
    """Before a kernel's name, return type included."""

    function_qualifier: str
    """Before a helper function's return type."""

    restrict: str
    """Qualifier of a pointer whose memory no other pointer reaches."""

    def type_name(self, type: ScalarType) -> str:
        """The type of a value; bool has one of its own."""

    def storage_name(self, type: ScalarType) -> str:
        """The type of an element in memory and of a kernel argument: bool is one byte."""

    def aliased_type(self, type: ScalarType) -> tuple[str, str]:
        """A type like ``storage_name(type)`` that may lie in the same memory as any other, and
        the line that defines it: C's compilers take it that different types do not."""

    def space_qualifier(self, space: Space) -> str:
        """Address-space qualifier with a trailing blank, or an empty string."""

    def work_item_query(self, query: Query, dim: int, ndim: int) -> str:
        """Call that gives an id or range, of an unsigned type; ``dim`` in SYCL order."""

    def function_name(self, function: str, type: ScalarType) -> str:
        """The name of a math function, by its name in ``ir.functions``."""

    def device_function(self, function: str, *arguments: str) -> str:
        """What gives the value of one of ``ir.functions.DEVICE_FUNCTIONS``, in parentheses where
        it is more than a call."""

    def saturating_cast(self, target: ScalarType, source: ScalarType) -> str:
        """Name of the floating to integer conversion that truncates and saturates."""

    def infinity(self, type: ScalarType) -> str:
        """Positive infinity."""

    def not_a_number(self, type: ScalarType) -> str:
        """A quiet NaN."""

    def loop_in_order(self) -> list[str]:
        """The lines before a loop whose floating sums have to keep the order of its turns."""

    def is_reserved(self, identifier: str) -> bool:
        """True for words a user's name must not take: keywords, types, macros, builtins."""

    def prologue(
        self, types: Iterable[ScalarType], fp: FloatMode, functions: Iterable[str] = ()
    ) -> list[str]:
        """The first lines of a file that uses ``types``, and ``functions`` of the device."""

    def build_options(self, fp: FloatMode) -> str:
        """The compiler options that go with the text."""
