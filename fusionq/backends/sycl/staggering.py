"""Where arrays begin, so that they do not compete for the same sets of a cache (inter-variable
padding).

Allocators give all but small blocks at the beginning of a page.  Elements of equal indices then lie
in one and the same set of the first-level cache, and of those of fewer sets a part: a kernel that
goes through more arrays than that has ways, as fused kernels do, loses lines before it is done with
them, and loads wait for stores whose addresses end in the same bits.

Source: Rivera, Tseng: "Data transformations for eliminating conflict misses", PLDI 1998.
"""

from __future__ import annotations

from itertools import count

STAGGERED_FROM = 16 << 10
"""Bytes of the smallest block that begins somewhere else than others."""

PERIOD = 4 << 10
"""Bytes of a way of the first-level cache: addresses that differ by a multiple are in one set."""

LINE = 64
"""Bytes of a cache line; blocks begin with one."""

STEP = 5 * LINE
"""How far apart blocks begin that are allocated one after the other: room for what a work-item
reads to the left and the right and for lines that are loaded ahead; 64 steps reach all lines of a
page."""

_numbers = count()


def next_offset(nbytes: int) -> int:
    """How far behind the beginning of a page a new block of ``nbytes`` begins; a multiple of
    ``LINE`` less than ``PERIOD``."""
    return STEP * next(_numbers) % PERIOD if nbytes >= STAGGERED_FROM else 0
