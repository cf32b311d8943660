"""Can a buffer live in private memory? What each work-item owns of it.

Private memory is safe if every element is touched by one work-item only and every read is
preceded, in that work-item, by a write that certainly happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import islpy as isl

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
from fusionq.analysis.isl_operations import TooManyOperations, answered
from fusionq.analysis.item_space import Mode
from fusionq.analysis.list_analysis import ListAnalysis
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
    nbytes = argument_of(analysis, uses[0]).dtype.nbytes
    large = _too_large(_of_one_owner(analysis, everything), nbytes, private_bytes)
    if large is not None:
        return large
    uncovered = uncovered_read(analysis, uses, mode)
    if uncovered is not None:
        return f"the read at {uncovered.span} {UNCOVERED}"
    box = bounding_box(analysis, everything)
    if isinstance(box, str):
        return box
    return _too_large(box.extents, nbytes, private_bytes) or box


def _of_one_owner(analysis: ListAnalysis, elements: isl.Map) -> tuple[int, ...]:
    """The extents of the box around what some work-item has today, which no box for all is smaller
    than: that of all takes isl minutes, where a work-item has elements at a distance in rows
    whose length is no multiple of it."""
    today = elements.intersect_params(analysis.symbols.point)
    one = today.intersect_domain(isl.Map.from_basic_map(today.sample()).domain()).range()
    if one.is_empty():
        return (0,)
    return tuple(
        (one.dim_max_val(d).sub(one.dim_min_val(d))).to_python() + 1
        for d in range(one.dim(isl.dim_type.set))
    )


def _too_large(extents: Sequence[int], nbytes: int, private_bytes: int) -> str | None:
    """Why so many elements of ``nbytes`` each have no room in a work-item's private memory."""
    size = prod(extents) * nbytes
    if size <= private_bytes:
        return None
    return (
        f"a work-item's {' x '.join(map(str, extents))} elements take {size} bytes, more "
        f"than the {private_bytes} that private memory is used for"
    )
