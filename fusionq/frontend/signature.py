"""The types a kernel is specialised for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fusionq.ir.types import ScalarType


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An n-dimensional array argument."""

    dtype: ScalarType
    ndim: int

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(':' * self.ndim)}]"


@dataclass(frozen=True, slots=True)
class LocalType:
    """A LocalAccessor argument; its shape is known when the kernel is compiled."""

    dtype: ScalarType
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"local {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Signature:
    """What one specialisation of a kernel depends on: the item it runs over (``item`` for a
    Range, ``nd_item`` for an NdRange), the range's dimensions, and the arguments' types
    (Python numbers are weak)."""

    item: Literal["item", "nd_item"]
    ndim: int
    arguments: tuple[ArrayType | ScalarType | LocalType, ...]
