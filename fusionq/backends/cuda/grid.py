"""The grid of blocks for a launch shape."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.errors import DeviceError
from fusionq.base.frozen import dataclass
from fusionq.base.target import LaunchShape

LARGEST = (2**31 - 1, 65535, 65535)
"""Blocks of a grid in x, y and z (CUDA C++ Programming Guide 13, Compute Capabilities)."""

IN_ORDER = "xyz"


@dataclass(frozen=True, slots=True)
class Grid:
    """Blocks in x, y and z, and threads of a block.

    A work-group's last dimension is x, the one before y, then z; ``axes`` says by which of a
    block's indices its number in each of these is known: ``xyz``, or another order where one of
    the slower dimensions has more work-groups than a grid has blocks in y or z.
    """

    blocks: tuple[int, int, int]
    threads: tuple[int, int, int]
    axes: str

    @property
    def block_size(self) -> int:
        """Threads of a block."""
        return prod(self.threads)

    def with_fewer(self, items: int) -> Grid:
        """The same, in order, for threads that do so many work-items of the last dimension."""
        x, y, z = self.blocks
        return Grid((-(-x // items), y, z), self.threads, self.axes)


@lru_cache(1024)
def grid_of(kernel: str, shape: LaunchShape) -> Grid:
    """The grid for ``kernel``; DeviceError if no grid, or block, is so large."""
    groups = [
        whole // local for whole, local in zip(shape.global_range, shape.local_range, strict=True)
    ]
    counts, threads = ([*reversed(n), 1, 1][:3] for n in (groups, list(shape.local_range)))
    axes = _axes(counts)
    blocks = [0, 0, 0]
    for count, axis in zip(counts, axes, strict=True):
        blocks["xyz".index(axis)] = count
    if any(count > most for count, most in zip(blocks, LARGEST, strict=True)):
        raise DeviceError(
            f"kernel {kernel!r} over {shape.global_range} in work-groups of {shape.local_range} "
            f"has {' x '.join(f'{n:,}' for n in groups)} work-groups; a GPU takes "
            f"{LARGEST[0]:,} in one dimension and {LARGEST[1]:,} in each other; make the "
            "work-groups larger"
        )
    x, y, z = threads
    if z > CODE_LIMITS.block_planes:
        raise DeviceError(
            f"kernel {kernel!r} has work-groups of {shape.local_range}; a GPU takes "
            f"{CODE_LIMITS.block_planes} work-items in the first of three dimensions; "
            "give the others more"
        )
    return Grid((blocks[0], blocks[1], blocks[2]), (x, y, z), axes)


def _axes(counts: list[int]) -> str:
    """The dimension with more blocks than y and z take changes places with x."""
    if max(counts[1:]) <= LARGEST[1]:
        return IN_ORDER
    return "yxz" if counts[1] >= counts[2] else "zyx"
