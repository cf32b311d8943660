"""The vocabulary of non-temporal stores."""

from __future__ import annotations

from typing import Protocol

from fusionq.ir.types import ScalarType


class Streaming(Protocol):
    """How the compiler is brought to store vectors around the caches."""

    lanes: int
    """Work-items that store one vector, which has to begin at a multiple of its size."""

    def vector_type(self, type: ScalarType) -> tuple[str, str]:
        """A type like ``Scalars.storage_name(type)`` whose stores by ``lanes`` neighbours are such
        a vector, and the line that defines it."""

    def store(self, pointer: str, value: str, type: ScalarType) -> list[str]:
        """The lines that store ``value``, of ``storage_name(type)``, at ``pointer``, to elements of
        ``vector_type(type)``."""
