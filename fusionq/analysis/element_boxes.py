"""The boxes around the elements that a submission's accesses touch today.

They prove nothing: they say which questions about all elements need not be asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import islpy as isl

from fusionq.analysis.isl_operations import TooManyOperations, found_within
from fusionq.analysis.list_analysis import ListAnalysis

OPERATIONS = 8_000
"""isl operations that a box may take."""

Box = tuple[tuple[int, int], ...] | None
"""The first and the last index, or address, in each dimension; None if that is not known."""


def element_boxes(analysis: ListAnalysis) -> tuple[Box, ...]:
    """Those of the accesses of a single submission, by position."""
    point = analysis.symbols.point

    def box(position: int) -> Box:
        touched = analysis.touched(0, [analysis.accesses[0].accesses[position]])
        return _box(touched.intersect_params(point))

    found: list[Box] = []
    for position in range(len(analysis.accesses[0].accesses)):
        try:
            found.append(found_within(OPERATIONS, partial(box, position)))
        except TooManyOperations:  # nothing about the list is answered any longer
            found.append(None)
    return tuple(found)


def may_hold(boxes: Sequence[Box], box: Box) -> bool:
    """Whether elements of which these are the ``boxes`` may be all of those in ``box``."""
    if box is None or None in boxes or not boxes:
        return False
    return all(
        min(sides)[0] <= low and high <= max([last for _, last in sides])
        for (low, high), *sides in zip(box, *(b for b in boxes if b is not None), strict=True)
    )


def _box(elements: isl.Set) -> Box:
    if elements.is_empty():
        return None
    return tuple(
        (int(elements.dim_min_val(d).to_python()), int(elements.dim_max_val(d).to_python()))
        for d in range(elements.dim(isl.dim_type.set))
    )
