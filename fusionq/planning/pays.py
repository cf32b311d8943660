"""Whether one kernel for submissions that may join is slower than launches."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fusionq.analysis.item_space import ItemSpace, global_range, local_range
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.submission import ArrayArgument
from fusionq.analysis.work_groups import largest_extents
from fusionq.base.target import DeviceInfo
from fusionq.planning.validity import size_order
from fusionq.planning.work import work_of

LITTLE_WORK = 1 << 14
"""Scalar operations of all work-items that take about as long as a launch, whatever is done to
them: submissions with no more join unasked."""

NARROWEST = 8
"""Work-items in a group's last dimension, which is what a compiler vectorises; fewer are slow."""

IN_CACHE = 1 << 20
"""Bytes that work-groups may go through in columns: their neighbours' lines stay in the cache."""

BUSY = 16
"""Operations for each byte, from which on it does not matter in which order memory is read."""

IDLE_ITEMS = 1 << 16
"""Work-items on a compute unit that have nothing to do between two barriers, but have to find that
out: so many take as long as a launch (0.2 to 0.3 ns each, measured with softmax by rows)."""


def too_slow(
    analysis: ListAnalysis, members: Sequence[int], space: ItemSpace, info: DeviceInfo
) -> str | None:
    """Why one kernel over ``space`` would be slower than launches; None if there is no reason to
    think so.  Where sizes decide, the plan serves those near today's only."""
    submissions = [analysis.submissions[m] for m in members]
    ranges = [global_range(submission) for submission in submissions]
    if space.mode == "linear":
        shapes = ", ".join(dict.fromkeys(str(tuple(range_)) for range_ in ranges))
        reason: str | None = (
            f"ranges {shapes} differ in shape: one kernel would find the ids by division"
        )
    elif space.local_range is None or any(local_range(s) is not None for s in submissions):
        return None
    else:
        reason = _slow_groups(analysis, members, space, space.local_range, info)
        if reason is not None:
            sizes = " × ".join(map(str, space.local_range))
            reason = f"work-groups of {sizes} would keep the dependences inside, but {reason}"
        elif len(set(ranges)) == 1 and prod(space.local_range[:-1]) == 1:
            return None
    for extent in set().union(*(_extents(analysis, m) for m in members)):
        symbol = analysis.symbols.size(extent)
        analysis.proofs.demand_between(symbol, *size_order(extent, bits=2))
    if reason is None or sum(map(work_of, submissions)) <= LITTLE_WORK:
        return None
    return f"{reason}, which costs more than a launch; strategy='fused' joins them all the same"


def _slow_groups(
    analysis: ListAnalysis,
    members: Sequence[int],
    space: ItemSpace,
    local: tuple[int, ...],
    info: DeviceInfo,
) -> str | None:
    """What makes work-groups of ``local`` slow."""
    submissions = [analysis.submissions[m] for m in members]
    extents = largest_extents(analysis, members, space)
    items = prod(extents)
    if local[-1] < min(NARROWEST, extents[-1]):
        return "are too narrow to be vectorised"
    groups = prod(-(-n // size) for n, size in zip(extents, local, strict=True))
    if groups < min(info.compute_units, items):
        return f"there are {groups} of them for {info.compute_units} compute units"
    if prod(local[:-1]) > 1 and local[-1] < extents[-1]:
        touched = _bytes(analysis, members)
        if touched > IN_CACHE and sum(map(work_of, submissions)) < BUSY * touched:
            return f"read {touched:,} bytes in columns"
    idle = sum(items - global_range(submission).size for submission in submissions)
    if idle > IDLE_ITEMS * info.compute_units * (len(members) - 1):
        return f"{idle:,} times a work-item would have nothing to do but wait"
    return None


def _bytes(analysis: ListAnalysis, members: Sequence[int]) -> int:
    """The bytes of the members' arrays, each once."""
    found = {
        analysis.place[m, k]: prod(a.shape) * a.dtype.nbytes
        for m in members
        for k, a in enumerate(analysis.submissions[m].arguments)
        if isinstance(a, ArrayArgument)
    }
    return sum(found.values())


def _extents(analysis: ListAnalysis, s: int) -> set[int]:
    """The extents of a submission's range and arrays."""
    submission = analysis.submissions[s]
    arrays = [a for a in submission.arguments if isinstance(a, ArrayArgument)]
    return {*global_range(submission), *(n for a in arrays for n in a.shape)}
