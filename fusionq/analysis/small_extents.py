"""The last extents of arrays of points, pixels or small matrices, which kernels have as constants.

    rgb[y, x, 0]   of shape (h, w, 3)   →   rgb[(y * w + x) * 3 + 0]

With a constant stride a compiler for CPUs makes vectors of neighbouring work-items' loads, which it
takes apart; of a stride that it does not know it loads each element by itself.  Three channels of a
pixel took 1.3 ns so, and 0.5 as constants (AMD EPYC, AVX2); rows of 8 elements 3.8 and 2.4, rows of
9 the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.analysis.aliasing import is_contiguous
from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.analysis.symbol_sources import Source

SMALL_EXTENT = 4
"""The largest of them: a plan serves one each."""


def small_extents(array: ArrayArgument) -> tuple[int, ...]:
    """The last extents of a C-contiguous array that are small, behind a larger one; none of an
    array of the plan's own, whose extents may be a range's."""
    of_the_plan = array.storage < 0 and array.address is None
    if of_the_plan or len(array.shape) < 2 or not is_contiguous(array):
        return ()
    for dim in reversed(range(len(array.shape))):
        if not 0 < array.shape[dim] <= SMALL_EXTENT:
            return array.shape[dim + 1 :] if array.shape[dim] else ()
    return ()


def sources_of_small_extents(submissions: Sequence[Submission]) -> tuple[tuple[Source, int], ...]:
    """Where those of all arrays of a list are found, with their values."""
    found = []
    for s, submission in enumerate(submissions):
        for k, argument in enumerate(submission.arguments):
            if isinstance(argument, ArrayArgument):
                known = small_extents(argument)
                first = len(argument.shape) - len(known)
                found += [(Source(s, k, first + n), extent) for n, extent in enumerate(known)]
    return tuple(found)
