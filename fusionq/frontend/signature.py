"""The types a kernel is specialised for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from fusionq.base.frozen import dataclass
from fusionq.ir.nodes import GroupOp
from fusionq.ir.record_types import RecordType
from fusionq.ir.types import ScalarType


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An n-dimensional array argument."""

    dtype: ScalarType | RecordType
    ndim: int

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(':' * self.ndim)}]"


@dataclass(frozen=True, slots=True)
class LocalType:
    """A LocalAccessor argument; its shape is known when the kernel is compiled."""

    dtype: ScalarType | RecordType
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"local {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class ConstantType:
    """What is known when the kernel is compiled: a tuple or list of numbers, nested or not, a
    string, None or a member of an enumeration.  ``text`` says it exactly, with its type."""

    text: str
    value: object = field(compare=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class ReductionType:
    """A reduction: the operation ``op`` on values of ``dtype``, of which a work-item combines its
    own in the variable ``total``."""

    dtype: ScalarType
    op: GroupOp
    total: str

    def __str__(self) -> str:
        return f"reduction {self.op} {self.dtype}"


def part_names(name: str, parameters: Sequence[str]) -> tuple[str, ...]:
    """The scalars that a kernel with these parameters has for the parts of a complex argument."""
    names = []
    for part in (f"{name}_real", f"{name}_imag"):
        while part in parameters:
            part += "_"
        names.append(part)
    return tuple(names)


ArgumentType: TypeAlias = ArrayType | ScalarType | LocalType | ConstantType | ReductionType


@dataclass(frozen=True, slots=True)
class Signature:
    """What one specialisation of a kernel depends on: the item it runs over (``item`` for a
    Range, ``nd_item`` for an NdRange), the range's dimensions, and the arguments' types
    (Python numbers are weak), of tuples, lists, strings and None also the values."""

    item: Literal["item", "nd_item"]
    ndim: int
    arguments: tuple[ArgumentType, ...]
    sub_group_size: int | None = None
    """Work-items of the kernel's sub-groups, if it asks for them; None where there are none."""
