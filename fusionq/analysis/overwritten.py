"""Which elements that one submission touches another writes, for all sizes and scalars.

What may be written counts as written here: dependences do so too, and it is dependences that follow
from others where elements are written between.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from fusionq.analysis.access import Access
from fusionq.analysis.list_analysis import ListAnalysis, addresses, bounds_box
from fusionq.analysis.proof import TooManyOperations, answered
from fusionq.analysis.submission import ArrayArgument


def is_overwritten(analysis: ListAnalysis, position: int) -> bool:
    """Of two submissions: whether the second writes all elements that an access of the first, by
    ``position``, touches."""
    access = analysis.accesses[0].accesses[position]
    return _written(analysis, [access], analysis.shares(0, access).group)


def writes_within(analysis: ListAnalysis) -> frozenset[int]:
    """Of two submissions: the arguments of the first, by position, whose memory the second writes
    wherever the first writes it."""
    groups: dict[int, list[Access]] = {}
    for access in analysis.accesses[0].accesses:
        if access.kind == "write":
            groups.setdefault(analysis.shares(0, access).group, []).append(access)
    inside = {group for group, own in groups.items() if _written(analysis, own, group)}
    return frozenset(
        k for (s, k), place in analysis.place.items() if s == 0 and place.group in inside
    )


def _written(analysis: ListAnalysis, accesses: Sequence[Access], group: int) -> bool:
    """Whether the second submission writes all elements of a memory that ``accesses`` of the first
    touch; False, too, where that takes too long to decide."""
    writes = [
        access
        for access in analysis.accesses[1].accesses
        if access.kind == "write" and analysis.is_placed(1, access, group)
    ]
    context = analysis.symbols.context

    def written() -> bool:
        # An access with an unknown index has work-items that are ordered with all others, if it
        # has any.
        certain = [
            access
            for access in writes
            if access.indices is not None or context.is_subset(access.instances.params())
        ]
        if not certain:
            return False
        touched = _elements(analysis, 0, accesses).intersect_params(context)
        return bool(touched.is_subset(_elements(analysis, 1, certain)))

    try:
        return answered(written)
    except TooManyOperations:
        return False


def _elements(analysis: ListAnalysis, submission: int, accesses: Sequence[Access]) -> isl.Set:
    """The elements (or addresses) that ``accesses`` to one memory may touch."""
    whole: isl.Set | None = None
    for access in accesses:
        relation = analysis.elements(submission, access)
        one = _all_elements(analysis, submission, access) if relation is None else relation.range()
        whole = one if whole is None else whole.union(one)
    assert whole is not None
    return whole.coalesce()


def _all_elements(analysis: ListAnalysis, submission: int, access: Access) -> isl.Set:
    """All elements of the array of ``access``, whose index is not known."""
    argument = analysis.submissions[submission].arguments[
        analysis.argument_index(submission, access.array)
    ]
    assert isinstance(argument, ArrayArgument)
    box = bounds_box([analysis.symbols.size(n) for n in argument.shape], analysis.symbols)
    lie = analysis.shares(submission, access).by_address
    return box if lie is None else box.apply(addresses(lie, analysis.symbols))
