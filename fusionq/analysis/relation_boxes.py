"""The boxes around today's work-items of relations, by which most that does not follow is seen."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from fusionq.analysis.isl_operations import TooManyOperations, found_within
from fusionq.analysis.list_analysis import kernel_shape
from fusionq.analysis.submission import Submission
from fusionq.analysis.symbols import Symbols
from fusionq.base.frozen import dataclass

OPERATIONS = 1_000
"""isl operations that the boxes of a relation may take."""

Box = tuple[tuple[int, int], ...]
"""The first and the last id in each dimension; none of these of what is empty."""


@dataclass(frozen=True, slots=True)
class RelationBoxes:
    """The boxes around the work-items that a relation relates, of the later and of the earlier
    stage."""

    later: Box
    earlier: Box


def relation_boxes(items: isl.Map, submissions: Sequence[Submission]) -> RelationBoxes | None:
    """The boxes of a relation in the symbols of ``submissions``, with their sizes and scalars; None
    where they are not known."""
    symbols = Symbols()
    for submission in submissions:
        kernel_shape(submission, symbols)
    try:
        return found_within(OPERATIONS, lambda: _boxes(items.intersect_params(symbols.point)))
    except TooManyOperations:  # nothing about the list is answered any longer
        return None


def may_follow(
    needed: RelationBoxes | None,
    ways: Sequence[tuple[RelationBoxes | None, RelationBoxes | None]],
) -> bool:
    """Whether work-items that have the first relation to some of each of ``ways``, which have its
    second, may together reach all to which they have the ``needed`` one: False where the boxes say
    that they do not."""
    if needed is None or not needed.later:
        return True
    known: list[RelationBoxes] = []
    for near, far in ways:
        if near is None or far is None:
            return True
        if near.later and far.later:
            known += near, far
    return _holds([near.later for near in known[::2]], needed.later) and _holds(
        [far.earlier for far in known[1::2]], needed.earlier
    )


def _holds(boxes: Sequence[Box], box: Box) -> bool:
    """Whether ``box`` lies inside the box around ``boxes``."""
    return bool(boxes) and all(
        min(sides)[0] <= low and high <= max([last for _, last in sides])
        for (low, high), *sides in zip(box, *boxes, strict=True)
    )


def _boxes(items: isl.Map) -> RelationBoxes:
    if items.is_empty():
        return RelationBoxes((), ())
    return RelationBoxes(_box(items.domain()), _box(items.range()))


def _box(items: isl.Set) -> Box:
    return tuple(
        (int(items.dim_min_val(d).to_python()), int(items.dim_max_val(d).to_python()))
        for d in range(items.dim(isl.dim_type.set))
    )
