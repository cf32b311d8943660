"""What code generation hands to a backend: the source text and its argument list."""

from __future__ import annotations

from typing import TypeAlias

from fusionq.base.frozen import dataclass
from fusionq.ir.types import ScalarType


@dataclass(frozen=True, slots=True)
class Pointer:
    """The address of element [0, …] of array parameter ``param``, as an unsigned 64-bit integer."""

    param: str


@dataclass(frozen=True, slots=True)
class ExtentArgument:
    """``param.shape[dim]``, int64."""

    param: str
    dim: int


@dataclass(frozen=True, slots=True)
class Stride:
    """The stride of dimension ``dim`` of array ``param``, in elements, int64."""

    param: str
    dim: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """The value of scalar parameter ``param``, of its type (bool: one byte, 0 or 1)."""

    param: str


Slot: TypeAlias = Pointer | ExtentArgument | Stride | Scalar


@dataclass(frozen=True, slots=True)
class WorkerBlock:
    """A worker of a persistent kernel that is not as the target has it: ``lanes`` that take
    instructions, ``threads`` of its work-group in all, and the bytes of local memory that a launch
    gives it."""

    lanes: int
    threads: int
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class DeviceSource:
    """A kernel as device source text.

    ``slots`` is the calling convention: one entry for each argument of ``entry_point``, in
    order; what the kernel does not use is not passed.  ``types`` are the scalar types that
    occur, for a backend to check what its device supports.
    """

    text: str
    entry_point: str
    slots: tuple[Slot, ...]
    types: frozenset[ScalarType]
    neighbours: int = 0
    """Where ``<entry_point>_wide`` does the same for a range with so many times fewer work-items in
    the last dimension: how many each does then, and of how many elements the arrays and their rows
    have to begin at multiples.  0 where there is none."""
    keeps_loads: bool = False
    """Whether a work-item keeps many values that it has loaded ahead, for which it needs
    registers."""
    worker: WorkerBlock | None = None
    """Of a persistent kernel, where it is not the target's."""
    is_packed: bool = False
    """Whether the arguments are the members of one structure, which is the only argument; each lies
    at the next multiple of its size."""

    @property
    def wide_entry_point(self) -> str:
        """That function's name."""
        return f"{self.entry_point}_wide"
