"""Which elements that one submission touches another writes, for all sizes and scalars.

What may be written counts as written here: dependences do so too, and it is dependences that follow
from others where elements are written between.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.analysis.kernel_accesses import Access
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.proof import TooManyOperations, answered


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
        touched, anew = analysis.touched(0, accesses), analysis.touched(1, certain)
        return analysis.once(
            ("written", id(touched), id(anew)),
            lambda: bool(touched.intersect_params(context).is_subset(anew)),
        )

    try:
        return answered(written)
    except TooManyOperations:
        return False
