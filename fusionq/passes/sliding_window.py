"""Overlapped tiles as a sliding window over a ring of rows or planes.

A work-group does several tiles, one after the other along the first dimension, and each keeps what
it has in common with the one before:

    for i in range(64*group - 1, 64*group + 65):    for tile in range(64*group, 64*group + 64):
        t[i - (64*group - 1)] = row of a                for i in (the new ones of tile-1 … tile+1):
    group_barrier(group)                        →           t[i % 4] = row of a
    for i in range(64*group, 64*group + 64):            group_barrier(group)
        b[i] = t[i - 1 - …] + t[i + 1 - …]              b[tile] = t[(tile-1) % 4] + t[(tile+1) % 4]

So local memory holds the planes that a tile reads, not those of all of the work-group's tiles, and
tiles may be wide in the other dimensions: less of them is halo.

Why that is right: the boxes of a tile, of a producer's work-items and of its elements, are proved
to hold all that the tile needs and all that these work-items touch.  Of two tiles side by side
they are the same boxes, some planes farther on (``advance_of`` in ``analysis.overlapped_tiles``).
So the work-items of a tile's box which are not new were done for a tile before; what they wrote
lies in the element boxes of all tiles since, of which none has two elements in one place of the
ring, that being no shorter than the box; and each element is written by one work-item.

Halide's ``store_at`` outside of ``compute_at`` with storage folding is the same: Ragan-Kelley et
al., "Halide: a language and compiler for optimizing parallelism, locality, and recomputation in
image processing pipelines", 2013.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.analysis.footprint import Footprint
from fusionq.base.frozen import dataclass
from fusionq.ir.nodes import Barrier, Binary, Compare, Const, Expr, For, Select, Stmt, Var
from fusionq.ir.types import INT64


@dataclass(frozen=True, slots=True)
class Window:
    """The tiles of a work-group: ``tile`` from the ``first`` up to ``end``."""

    tile: Var
    first: Var
    end: Var

    def loop(self, body: Sequence[Stmt]) -> Stmt:
        """``body`` for each tile, once what it replaces has been read."""
        inside = (Barrier(global_memory=False), *body)
        return For(self.tile.name, self.first, self.end, Const(INT64, 1), inside)

    def first_new(self, first: Expr, length: int, advance: int) -> Expr:
        """Where the items of a part begin that the tile before has not done, of the ``length`` ones
        from ``first`` on."""
        new = Binary(INT64, "add", first, Const(INT64, max(length - advance, 0)))
        return Select(INT64, Compare("eq", self.tile, self.first), first, new)


def ring_of(planes: int) -> int:
    """The planes of local memory for elements of which a tile has so many ``planes``: a power of
    two, so that a plane's place is found without a division."""
    return 1 << (planes - 1).bit_length()


def rows_of_step(items: Footprint, advance: int) -> tuple[int, ...]:
    """The extents of what all tiles but the first do of the box ``items``."""
    return (min(advance, items.extents[0]), *items.extents[1:])
