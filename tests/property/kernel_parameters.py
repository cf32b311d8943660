"""Random kernels: their parameters, and which elements belong to which work-item."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, product
from types import FunctionType
from typing import Any

from fusionq.frontend.kernel import KernelFunction, kernel
from fusionq.ir.types import (
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    ScalarType,
)

DTYPES = (
    FLOAT32, INT64, INT32, FLOAT64, BOOL, UINT8, INT8, INT16, UINT16, UINT32, UINT64, FLOAT16,
)  # fmt: skip


@dataclass(frozen=True)
class Axis:
    """One index of an item's element: ``scale * id + offset``, or that counted from the end."""

    dim: int
    scale: int = 1
    offset: int = 0
    reverse: bool = False

    def text(self, extent: str) -> str:
        index = "ijk"[self.dim]
        index = index if self.scale == 1 else f"{self.scale} * {index}"
        index = index if self.offset == 0 else f"{index} + {self.offset}"
        return f"{extent} - 1 - ({index})" if self.reverse else index

    def value(self, ids: Sequence[int], extent: int) -> int:
        index = self.scale * ids[self.dim] + self.offset
        return extent - 1 - index if self.reverse else index

    def values(self, ids: Sequence[int], extent: int) -> Sequence[int]:
        """The indices of the item's elements."""
        return [self.value(ids, extent)]

    def guard(self, extent: str) -> str:
        """The condition under which the item has an element."""
        return f"0 <= {self.text(extent)} < {extent}"


@dataclass(frozen=True)
class ShiftedAxis(Axis):
    """``id + shift``, with a scalar of the kernel."""

    def text(self, extent: str) -> str:
        return f"{'ijk'[self.dim]} + shift"

    def values(self, ids: Sequence[int], extent: int) -> Sequence[int]:
        """Any, since only the scalar's value says."""
        return range(extent)


@dataclass(frozen=True)
class LoopAxis(Axis):
    """The variable ``t`` of a loop: ``width`` neighbouring indices of each item, or every
    ``width``-th one of the first ``width`` items."""

    width: int = 2
    blocks: bool = True

    def text(self, extent: str) -> str:
        return "t"

    @property
    def first(self) -> str:
        """The first index of an item."""
        return f"{'ijk'[self.dim]} * {self.width}" if self.blocks else "ijk"[self.dim]

    @property
    def step(self) -> int:
        """From an index of an item to its next."""
        return 1 if self.blocks else self.width

    def loop(self, extent: str) -> str:
        """The range of the loop."""
        i, w = "ijk"[self.dim], self.width
        if self.blocks:
            return f"range({i} * {w}, min({i} * {w} + {w}, {extent}))"
        return f"range({i} if {i} < {w} else {extent}, {extent}, {w})"

    def values(self, ids: Sequence[int], extent: int) -> Sequence[int]:
        i, w = ids[self.dim], self.width
        if self.blocks:
            return range(i * w, min(i * w + w, extent))
        return range(i if i < w else extent, extent, w)


@dataclass(frozen=True)
class ItemArray:
    """An array whose elements each belong to at most one work-item, if it is written.

    ``axes``: one index for each dimension; None for a dimension that the item owns whole.
    """

    name: str
    dtype: ScalarType
    axes: tuple[Axis | None, ...]
    written: bool

    @property
    def ndim(self) -> int:
        return len(self.axes)

    def elements(self, ids: Sequence[int], shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """The indices inside ``shape`` that the work-item ``ids`` may access."""
        ranges = []
        for axis, extent in zip(self.axes, shape, strict=True):
            own = range(extent) if axis is None else axis.values(ids, extent)
            ranges.append([i for i in own if 0 <= i < extent])
        return product(*ranges)

    def lies_inside(self, extents: Sequence[int], shape: Sequence[int]) -> bool:
        """Whether ``shape`` has the elements of all work-items of a range."""
        last = [extent - 1 for extent in extents]
        return 0 in extents or all(
            axis is None or 0 <= axis.value(ids, extent) < extent
            for axis, extent in zip(self.axes, shape, strict=True)
            for ids in ([0] * len(last), last)
        )


@dataclass(frozen=True)
class GatherArray:
    """An array that the kernel reads anywhere and never writes."""

    name: str
    dtype: ScalarType
    ndim: int


@dataclass(frozen=True)
class ScalarParameter:
    """A scalar; Python numbers have a weak type."""

    name: str
    type: ScalarType


Parameter = ItemArray | GatherArray | ScalarParameter


@dataclass(frozen=True)
class RandomKernel:
    """A kernel's source text (with the functions that it calls) and what it is called with;
    ``guarded``: it leaves out elements beyond an array."""

    source: str
    ndim: int
    parameters: tuple[Any, ...]
    nd_item: bool = False
    sub_group_size: int | None = None
    guarded: bool = True

    def made(self) -> KernelFunction:
        """The kernel, with its options."""
        return kernel(sub_group_size=self.sub_group_size)(self.define())

    def define(self) -> FunctionType:
        """The Python function, with its source where the front end finds it."""
        return define(self.source, "kernel")


_numbers = count()


def define(source: str, name: str) -> FunctionType:
    """The function ``name`` that ``source`` defines."""
    file = f"<random kernel {next(_numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": "random_kernel"}
    exec(compile(source, file, "exec"), names)
    function = names[name]
    assert isinstance(function, FunctionType)
    return function
