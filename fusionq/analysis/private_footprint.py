"""Can a buffer live in private memory? What each work-item owns of it.

Private memory is safe if every element is touched by one work-item only and every read is
preceded, in that work-item, by a write that certainly happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fusionq.analysis.footprint import (
    Footprint,
    Use,
    argument_of,
    bounding_box,
    item_elements,
    shared_by_owners,
    uncovered_read,
    unfit_for_promotion,
    union,
)
from fusionq.analysis.item_space import Mode
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.proof import TooManyOperations, answered
from fusionq.ir.nodes import Atomic

UNCOVERED = "is not certain to be preceded by a write of the same element in the same work-item"


def private_footprint(
    analysis: ListAnalysis, uses: Sequence[Use], mode: Mode, private_bytes: int
) -> Footprint | str:
    """What each work-item owns of the memory that ``uses`` (all its accesses in one fused
    kernel, in program order) touch, ``private_bytes`` at most; or the reason why it cannot be
    private."""
    try:
        return answered(lambda: _footprint(analysis, uses, mode, private_bytes), questions=20)
    except TooManyOperations as error:
        return str(error)


def _footprint(
    analysis: ListAnalysis, uses: Sequence[Use], mode: Mode, private_bytes: int
) -> Footprint | str:
    unfit = unfit_for_promotion(analysis, uses)
    if unfit is not None:
        return unfit
    for _, access in uses:
        if isinstance(access.node, Atomic):
            return f"the atomic operation at {access.span} shares it between work-items"
    everything = union([item_elements(analysis, use, mode) for use in uses])
    if shared_by_owners(analysis, everything):
        return "an element is touched by more than one work-item"
    uncovered = uncovered_read(analysis, uses, mode)
    if uncovered is not None:
        return f"the read at {uncovered.span} {UNCOVERED}"
    box = bounding_box(analysis, everything)
    if isinstance(box, str):
        return box
    size = prod(box.extents) * argument_of(analysis, uses[0]).dtype.nbytes
    if size > private_bytes:
        return (
            f"a work-item's {' x '.join(map(str, box.extents))} elements take {size} bytes, more "
            f"than the {private_bytes} that private memory is used for"
        )
    return box
