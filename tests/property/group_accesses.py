"""How random kernels divide arrays among work-groups and their work-items.

A *tile* is what one work-group has of an array.  In a dimension its work-items own the slots
``local id * elements + e``; a one-to-one map takes a slot to its place in the tile, and any map
does for what the group only reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from hypothesis import strategies as st

from fusionq.ir.types import ScalarType
from tests.property.kernel_expressions import Draw
from tests.property.kernel_parameters import Axis, Parameter

ATOMIC_TYPES = ("int32", "int64", "uint32", "uint64")
ATOMIC_METHODS = (("add", "sub"), ("min",), ("max",), ("xor",), ("and",), ("or",))
"""Operations that commute with each other, so that their order is not seen."""


@dataclass(frozen=True)
class TileArray:
    """An array in global memory of which each work-group has the tile after the one of the group
    before; ``elements`` an item in the last dimension.  Elements beyond the array are left out."""

    name: str
    dtype: ScalarType
    tile: tuple[int, ...]
    """The tile's extents."""
    elements: int
    offset: tuple[int, ...]
    reverse: tuple[bool, ...]
    written: bool
    made: bool = False
    """Written and never read: what may have been in it does not matter."""

    @property
    def ndim(self) -> int:
        return len(self.tile)

    def index(self, dim: int, place: str) -> str:
        """The index of a place in the group's tile."""
        extent = self.tile[dim]
        index = "ijk"[dim] if place == f"l{dim}" else f"g{dim} * {extent} + {place}"
        if self.offset[dim]:
            index = f"{index} + {self.offset[dim]}"
        return f"{self.name}.shape[{dim}] - 1 - ({index})" if self.reverse[dim] else index

    def checks(self, indices: Sequence[str]) -> list[str]:
        """Conditions under which the element exists."""
        return [
            f"{'0 <= ' if reverse else ''}{index} < {self.name}.shape[{d}]"
            for d, (index, reverse) in enumerate(zip(indices, self.reverse, strict=True))
        ]


@dataclass(frozen=True)
class LocalTile:
    """A LocalAccessor: one tile for each group; over linear local ids if it has one dimension
    and the range has more."""

    name: str
    dtype: ScalarType
    tile: tuple[int, ...]
    elements: int
    linear: bool

    @property
    def ndim(self) -> int:
        return len(self.tile)


@dataclass(frozen=True)
class SharedArray:
    """An array in global memory that all work-items change, by atomic ``methods`` only."""

    name: str
    dtype: ScalarType
    ndim: int
    methods: tuple[str, ...]
    written: bool = True


GroupParameter = Parameter | TileArray | LocalTile | SharedArray


def own_place(draw: Draw, dim: str, extent: int, elements: int, turn: str) -> str:
    """Where a work-item's element lies in a tile: no two have one place.

    ``dim``: the local id; ``turn``: which of its ``elements``.
    """
    if elements == 1:
        slot = dim
    elif draw(st.booleans()):
        slot = f"{dim} * {elements} + {turn}"
    else:
        slot = f"{turn} * {extent // elements} + {dim}"
    maps = [slot, slot, slot, f"{extent - 1} - ({slot})"]
    if extent > 1:
        shift = draw(st.integers(1, extent - 1))
        factors = [n for n in range(2, 2 * extent) if gcd(n, extent) == 1]
        factor = draw(st.sampled_from(factors))
        maps += [f"({slot} + {shift}) % {extent}", f"({slot}) * {factor} % {extent}"]
        if extent % 2 == 0:
            maps.append(f"({slot}) + 1 - 2 * (({slot}) % 2)")
        if extent & (extent - 1) == 0:
            maps.append(f"(({slot}) ^ {shift})")
    return str(draw(st.sampled_from(maps)))


def any_place(draw: Draw, dim: str, extent: int, elements: int, turn: str, index: str) -> str:
    """A place in a tile, of this or another work-item; ``index`` is any integer."""
    slot = own_place(draw, dim, extent, elements, turn)
    places = [
        slot,
        f"max({slot} - 1, 0)",
        f"min({slot} + 1, {extent - 1})",
        f"({slot} + 1) % {extent}",
        str(draw(st.integers(0, extent - 1))),
        f"({slot}) // 2",
        f"({index}) % {extent}",
    ]
    return str(draw(st.sampled_from(places)))


@dataclass(frozen=True)
class BlockAxis(Axis):
    """An index that stays inside a block of ``width`` neighbouring ids; ``reverse`` of the axis
    is not used."""

    width: int = 2
    way: str = "reversed"

    def text(self, extent: str) -> str:
        i, w = "ijk"[self.dim], self.width
        return {
            "reversed": f"{i} // {w} * {w} + {w - 1} - {i} % {w}",
            "backwards": f"{i} - {i} % {w} + {w - 1} - {i} % {w}",
            "rotated": f"{i} // {w} * {w} + ({i} % {w} + 1) % {w}",
            "first": f"{i} // {w} * {w}",
            "next": f"min({i} + 1, {i} // {w} * {w} + {w - 1})",
        }[self.way]

    def value(self, ids: Sequence[int], extent: int) -> int:
        i, w = ids[self.dim], self.width
        first = i // w * w
        return {
            "reversed": first + w - 1 - i % w,
            "backwards": first + w - 1 - i % w,
            "rotated": first + (i % w + 1) % w,
            "first": first,
            "next": min(i + 1, first + w - 1),
        }[self.way]


def block_axis(draw: Draw, dim: int, written: bool) -> BlockAxis:
    """An axis that exchanges elements inside blocks; one-to-one if the array is ``written``."""
    ways = ["reversed", "rotated", "backwards"] + ["first", "next"] * (not written)
    width = draw(st.sampled_from((4, 2, 3, 5, 6)))
    return BlockAxis(dim, width=width, way=draw(st.sampled_from(ways)))
