"""Whether one kernel for submissions that may join is slower than launches."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fusionq.analysis.item_space import ItemSpace, global_range, local_range
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.submission import ArrayArgument
from fusionq.analysis.work_groups import largest_extents
from fusionq.base.target import Target
from fusionq.planning.validity import size_order
from fusionq.planning.work import work_of


def too_slow(
    analysis: ListAnalysis, members: Sequence[int], space: ItemSpace, target: Target
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
        reason = _slow_groups(analysis, members, space, space.local_range, target)
        if reason is not None:
            sizes = " × ".join(map(str, space.local_range))
            reason = f"work-groups of {sizes} would keep the dependences inside, but {reason}"
        elif len(set(ranges)) == 1 and prod(space.local_range[:-1]) == 1:
            return None
    for extent in set().union(*(_extents(analysis, m) for m in members)):
        symbol = analysis.symbols.size(extent)
        analysis.proofs.demand_between(symbol, *size_order(extent, bits=2))
    if reason is None or sum(map(work_of, submissions)) <= target.launch_operations:
        return None
    return f"{reason}, which costs more than a launch; strategy='fused' joins them all the same"


def _slow_groups(
    analysis: ListAnalysis,
    members: Sequence[int],
    space: ItemSpace,
    local: tuple[int, ...],
    target: Target,
) -> str | None:
    """What makes work-groups of ``local`` slow."""
    submissions = [analysis.submissions[m] for m in members]
    extents = largest_extents(analysis, members, space)
    items = prod(extents)
    if local[-1] < min(target.vector_width // 2, extents[-1]):
        return "are too narrow to be vectorised"
    groups = prod(-(-n // size) for n, size in zip(extents, local, strict=True))
    units = target.device.compute_units
    if groups < min(units, items):
        return f"there are {groups} of them for {units} compute units"
    if prod(local[:-1]) > 1 and local[-1] < extents[-1]:
        touched = _bytes(analysis, members)
        work = sum(map(work_of, submissions))
        if touched > target.worker_cache_bytes and work < target.machine_balance * touched:
            return f"read {touched:,} bytes in columns"
    idle = sum(items - global_range(submission).size for submission in submissions)
    if idle > target.launch_idle_items * units * (len(members) - 1):
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
