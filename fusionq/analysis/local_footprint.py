"""Can a buffer live in local memory? What each work-group owns of it.

Local memory is safe if every element is touched by one work-group only and every read is
preceded by a write that certainly happens: in the same work-item, or in an earlier submission
by any work-item of the group, with a barrier between the two.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from fusionq.analysis.footprint import (
    Footprint,
    Use,
    bounding_box,
    item_elements,
    shared_by_owners,
    uncovered_read,
    unfit_for_promotion,
    union,
)
from fusionq.analysis.isl_operations import TooManyOperations, answered
from fusionq.analysis.item_space import Mode
from fusionq.analysis.kernel_accesses import item_dims
from fusionq.analysis.list_analysis import ListAnalysis


def local_footprint(
    analysis: ListAnalysis, uses: Sequence[Use], mode: Mode, local: tuple[int, ...]
) -> Footprint | str:
    """What each work-group of ``local`` owns of the memory that ``uses`` (all its accesses in
    one fused kernel, in program order) touch, or the reason why it cannot be local."""
    try:
        return answered(lambda: _footprint(analysis, uses, mode, local), questions=20)
    except TooManyOperations as error:
        return str(error)


def _footprint(
    analysis: ListAnalysis, uses: Sequence[Use], mode: Mode, local: tuple[int, ...]
) -> Footprint | str:
    unfit = unfit_for_promotion(analysis, uses)
    if unfit is not None:
        return unfit
    groups = group_of(local)
    everything = union([item_elements(analysis, use, mode) for use in uses])
    by_group = everything.apply_domain(groups).coalesce()
    if shared_by_owners(analysis, by_group):
        return "an element is touched by more than one work-group"
    uncovered = uncovered_read(analysis, uses, mode, groups)
    if uncovered is not None:
        return (
            f"the read at {uncovered.span} is not certain to be preceded by a write of the same "
            "element in the same work-group"
        )
    return bounding_box(analysis, by_group)


def group_of(local: tuple[int, ...]) -> isl.Map:
    """Work-items to the ids of their group."""
    ids = item_dims(len(local))
    group = ", ".join(f"floor({i}/{size})" for i, size in zip(ids, local, strict=True))
    return isl.Map(f"{{ [{', '.join(ids)}] -> [{group}] }}")
