"""Which elements that one submission touches others write.

What may be written counts as written here: dependences do so too, and it is dependences that follow
from others where elements are written between.  That elements are not all written is never wrong to
say; it only leaves more to compare.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce

import islpy as isl

from fusionq.analysis.kernel_accesses import Access
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.proof import symbols_of


def is_overwritten(analysis: ListAnalysis, position: int, here: bool = False) -> bool:
    """Of some submissions: whether those after the first together write all elements that an access
    of the first, by ``position``, touches; for all sizes and scalars, or, if ``here``, for today's
    and others that the proofs say."""
    access = analysis.accesses[0].accesses[position]
    return _written(analysis, [access], analysis.shares(0, access).group, here)


def overwritten_by_these(analysis: ListAnalysis, positions: Collection[int]) -> frozenset[int]:
    """Of two submissions: the accesses of the first, among ``positions``, all of whose elements the
    second writes.  That these do not may be said of all values, so an answer about other scalars
    serves these; here it is only one about these."""
    accesses = analysis.accesses[0].accesses
    return frozenset(
        k
        for k in positions
        if _written(
            analysis, [accesses[k]], analysis.shares(0, accesses[k]).group, here=True, these=True
        )
    )


def are_apart(analysis: ListAnalysis, positions: Collection[int]) -> bool:
    """Of two submissions: whether the second writes no element that the accesses of the first, by
    ``positions``, touch, and touches none that they write."""
    first: dict[int, list[Access]] = {}
    for k in positions:
        access = analysis.accesses[0].accesses[k]
        first.setdefault(analysis.shares(0, access).group, []).append(access)
    second: dict[int, list[Access]] = {}
    for access in analysis.accesses[1].accesses:
        second.setdefault(analysis.shares(1, access).group, []).append(access)
    return all(_share_nothing(analysis, own, second.get(g, ())) for g, own in first.items())


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


def _share_nothing(
    analysis: ListAnalysis, first: Sequence[Access], second: Sequence[Access]
) -> bool:
    """Whether of a memory to which two submissions have these accesses neither writes an element
    that the other touches."""
    reads, writes = ([a for a in first if a.kind == kind] for kind in ("read", "write"))
    written = [b for b in second if b.kind == "write"]
    return _never_meet(analysis, writes, second) and _never_meet(analysis, reads, written)


def _never_meet(analysis: ListAnalysis, first: Sequence[Access], second: Sequence[Access]) -> bool:
    if not first or not second:
        return True

    def apart() -> bool:
        one, other = analysis.touched(0, first), analysis.touched(1, second)
        key = "apart", id(one), id(other)
        return analysis.once(key, lambda: _is_empty(analysis, one.intersect(other)))

    own, others = (
        tuple([analysis.lies(s, access) for access in accesses])
        for s, accesses in enumerate((first, second))
    )
    return analysis.answered_once(("apart", own, others), apart, lambda _: False)


def _is_empty(analysis: ListAnalysis, shared: isl.Set) -> bool:
    """Whether there are no elements ``shared``; that there are some is right of all values."""
    return not analysis.proofs.is_found_today(shared) and analysis.proofs.is_empty(shared)


def _written(
    analysis: ListAnalysis,
    accesses: Sequence[Access],
    group: int,
    here: bool = False,
    these: bool = False,
) -> bool:
    """Whether the submissions after the first write all elements of a memory that ``accesses`` of
    the first touch; False, too, where that takes too long to decide, or has been said of other
    values, unless only ``these`` count."""
    context = analysis.symbols.context

    def certain(s: int) -> list[Access]:
        """Those writes of a submission that are ordered with all that touches what they write: one
        with an unknown index has work-items that are ordered with all others, if it has any."""
        return [
            access
            for access in analysis.accesses[s].accesses
            if access.kind == "write"
            and analysis.is_placed(s, access, group)
            and (access.indices is not None or context.is_subset(access.instances.params()))
        ]

    def written() -> bool:
        by_submission = {s: certain(s) for s in range(1, len(analysis.submissions))}
        parts = [analysis.touched(s, writes) for s, writes in by_submission.items() if writes]
        if not parts:
            return False
        touched = analysis.touched(0, accesses)
        key = "written", here, id(touched), *map(id, parts), these and analysis.symbols.today
        return analysis.once(key, lambda: _is_within(analysis, touched, parts, here))

    writes = tuple(
        tuple([
            analysis.lies(s, access)
            for access in analysis.accesses[s].accesses
            if access.kind == "write" and analysis.is_placed(s, access, group)
        ])
        for s in range(1, len(analysis.submissions))
    )
    key = "written", here, these, tuple([analysis.lies(0, access) for access in accesses]), writes
    return analysis.answered_once(key, written, lambda _: False, len(writes))


def _is_within(
    analysis: ListAnalysis, touched: isl.Set, parts: Sequence[isl.Set], here: bool
) -> bool:
    """Whether the elements ``touched`` are all in one of ``parts``."""
    symbols, proofs = analysis.symbols, analysis.proofs
    anew = reduce(isl.Set.union, parts)
    point = symbols.point  # of today's sizes that is a fraction of the work
    if not touched.intersect_params(point).is_subset(anew.intersect_params(point)):
        return False
    if not here:
        return bool(touched.intersect_params(symbols.context).is_subset(anew))
    if not proofs.is_empty_for_others(
        lambda: touched.subtract(anew)
    ) and not proofs.is_empty_in_cell((touched, anew), lambda sets: sets[0].subtract(sets[1])):
        proofs.demand_today(symbols_of(touched) | symbols_of(anew))
    return True
