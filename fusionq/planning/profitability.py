"""Whether one kernel for submissions that may join is slower than launches."""

from __future__ import annotations

from math import prod

from fusionq.analysis.item_space import ItemSpace, global_range, local_range
from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.analysis.validity import size_order
from fusionq.analysis.work_groups import largest_extents
from fusionq.base.target import Target
from fusionq.planning.members import Members


def unprofitable(
    members: Members, space: ItemSpace, before: ItemSpace, target: Target, validity: ListValidity
) -> str | None:
    """Why one kernel over ``space`` would be slower than launches, of which one runs all but the
    last of ``members`` over the space ``before``; None if there is no reason to think so.  Where
    sizes decide, the plan serves those near today's only, which ``validity`` remembers."""
    submissions = members.different
    ranges = [global_range(submission) for submission in submissions]
    if target.costs.chain_seconds:
        from fusionq.planning.waiting_threads import slower_joined

        alike = space.mode == "ids" and (len(set(ranges)) == 1 or space.ndim == 1)
        if alike and space.local_range == before.local_range:
            return None
        reason = slower_joined(members, space, before, target)
        for extent in sorted(set().union(*map(_extents, submissions))):
            validity.demand_between(extent, *size_order(extent, bits=2))
        return None if reason is None else f"{reason}; {_ASK}"
    if space.mode == "linear":
        shapes = ", ".join(dict.fromkeys(str(tuple(range_)) for range_ in ranges))
        reason = f"ranges {shapes} differ in shape: one kernel would find the ids by division"
    elif any(local_range(s) is not None for s in submissions):
        return None
    elif space.local_range is None:
        if space.mode == "ids" and (len(set(ranges)) == 1 or space.ndim == 1):
            return None  # whole groups of one dimension find out that they have nothing to do
        reason = _idle(members, prod(largest_extents(submissions, space)), target)
    else:
        reason = _slow_groups(members, space, space.local_range, target)
        if reason is not None:
            sizes = " × ".join(map(str, space.local_range))
            reason = f"work-groups of {sizes} would keep the dependences inside, but {reason}"
        elif len(set(ranges)) == 1 and prod(space.local_range[:-1]) == 1:
            return None
    for extent in sorted(set().union(*map(_extents, submissions))):
        validity.demand_between(extent, *size_order(extent, bits=2))
    if reason is None or members.work <= target.launch_operations:
        return None
    return f"{reason}, which costs more than a launch; {_ASK}"


_ASK = "strategy='fused' joins them all the same"


def _slow_groups(
    members: Members, space: ItemSpace, local: tuple[int, ...], target: Target
) -> str | None:
    """What makes work-groups of ``local`` slow."""
    extents = largest_extents(members.different, space)
    items = prod(extents)
    if local[-1] < min(target.vector_width // 2, extents[-1]):
        return "are too narrow to be vectorised"
    groups = prod(-(-n // size) for n, size in zip(extents, local, strict=True))
    units = target.device.compute_units
    if groups < min(units, items):
        return f"there are {groups} of them for {units} compute units"
    if prod(local[:-1]) > 1 and local[-1] < extents[-1]:
        touched = members.memory_bytes
        if touched > target.worker_cache_bytes and members.work < target.machine_balance * touched:
            return f"read {touched:,} bytes in columns"
    masked = members.masked(local, extents)
    if masked > _cheaper_than_launches(members, target):
        return (
            f"{masked:,} work-items would be in groups that a range ends in, which run under masks"
        )
    return _idle(members, items, target)


def _idle(members: Members, items: int, target: Target) -> str | None:
    """What is wrong with how many of ``items`` work-items have nothing to do."""
    idle = members.idle(items)
    if idle > _cheaper_than_launches(members, target):
        return f"{idle:,} times a work-item would have nothing to do but wait"
    return None


def _cheaper_than_launches(members: Members, target: Target) -> int:
    """Idle work-items that take less than the launches that one kernel saves; those under masks
    take about as much more than others."""
    return target.launch_idle_items * target.device.compute_units * (len(members.numbers) - 1)


def _extents(submission: Submission) -> set[int]:
    """The extents of a submission's range and arrays."""
    arrays = [a for a in submission.arguments if isinstance(a, ArrayArgument)]
    return {*global_range(submission), *(n for a in arrays for n in a.shape)}
