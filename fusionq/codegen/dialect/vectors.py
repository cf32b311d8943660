"""The vocabulary of functions in which a work-item does several neighbours as a vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from fusionq.codegen.dialect.scalars import Scalars


class Vectors(Protocol):
    """How the compiler is brought to load and store several elements at once."""

    nbytes: int
    """What one instruction loads or stores at most."""

    scalars: Scalars
    """For such functions: elements of memory are plain types, of which the compiler makes
    vectors."""

    def assumed(
        self, pointers: Mapping[str, tuple[str, int]], multiples: Mapping[str, int]
    ) -> list[str]:
        """Lines after which the compiler knows that each of ``pointers``, of the type that comes
        with it, is a multiple of so many bytes, and each argument of ``multiples`` of so much."""

    def aligned(
        self, pointers: Mapping[str, tuple[str, int]], multiples: Mapping[str, int]
    ) -> list[str]:
        """Conditions of which all hold where that does."""

    def known(
        self,
        pointers: Mapping[str, tuple[str, int]],
        multiples: Mapping[str, int],
        lines: Sequence[str],
    ) -> list[str]:
        """``lines``, in which the compiler knows that; a pointer may be a structure that becomes
        one."""
