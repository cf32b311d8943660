"""Whether one kernel for submissions that may join is slower than launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Literal, TypeAlias

from fusionq.analysis.item_space import ItemSpace, global_range, local_range
from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.analysis.validity import size_order
from fusionq.analysis.work_groups import group_count, largest_extents
from fusionq.base.options import FusionOptions
from fusionq.base.target import Target
from fusionq.codegen.scalar_items import slower_together
from fusionq.ir.nodes import Kernel
from fusionq.planning.clamped_rows import clamped_by
from fusionq.planning.cost import MARGIN
from fusionq.planning.joined_launches import is_faster_alone, slower_joined, vectors_lost
from fusionq.planning.members import Members
from fusionq.planning.occupied_lanes import masked_seconds, reads_columns
from fusionq.planning.own_row_launches import may_have_own_rows

Wanted: TypeAlias = Literal["profitable", "asked", "required"]
"""Which submissions join that may: where it is likely to be profitable; as that was asked for,
unless the model has one launch take ``MARGIN`` times as long as two; whatever it takes."""


def wanted_by(options: FusionOptions) -> Wanted:
    """Which submissions join by ``options``."""
    if options.require:
        return "required"
    return "asked" if options.strategy == "fused" else "profitable"


def unprofitable(
    members: Members,
    space: ItemSpace,
    before: ItemSpace,
    target: Target,
    measured: Callable[[], Target],
    wanted: Wanted,
    validity: ListValidity,
    masks: bool = True,
) -> str | None:
    """Why one kernel over ``space`` would be slower than launches, of which one runs all but the
    last of ``members`` over the space ``before``, by more than is ``wanted``; None if there is no
    reason to think so.  ``measured`` gives ``target`` with measured costs.  Where sizes decide, the
    plan serves those near today's only, which ``validity`` remembers.  ``masks``: whether guards
    that differ become masks."""
    if wanted == "required":
        return None
    submissions = members.different
    ranges = [global_range(submission) for submission in submissions]
    alike = space.mode == "ids" and (len(set(ranges)) == 1 or space.ndim == 1)
    threads = bool(target.costs.chain_seconds)
    masked = cache(lambda: masked_seconds(members.kinds, target) if masks else 0.0)
    vectors = () if threads else slower_together(submission.ir for submission in submissions)
    scalars = () if threads else vectors_lost(submissions, space)
    own_groups = any(local_range(s) is not None for s in submissions)
    reason = None
    if threads:
        if alike and space.local_range == before.local_range:
            return None
    elif space.mode != "linear" and own_groups:
        if not vectors and not any(is_faster_alone(s, target) for s in submissions):
            return None
    elif space.local_range is None:
        if wanted == "profitable":
            reason = _vectors_made(vectors) or _many_streams(members, target, validity)
        if alike and reason is None and not (masked() or vectors or scalars):
            return None  # whole groups of one dimension find out that they have nothing to do
    whole = alike and space.local_range is None
    if reason is None and wanted == "profitable" and not (threads or whole or own_groups):
        reason = _slow_shape(members, space, target)
    if reason is None:
        times = 1.0 if wanted == "profitable" else MARGIN
        reason = slower_joined(members, space, before, target, measured, times, masked)
    row = prod((space.local_range or ())[:-1]) == 1
    own_rows = not threads and any(may_have_own_rows(s, target) for s in submissions)
    by_size = threads or not (alike and row) or vectors or scalars or own_rows
    if reason is None and not by_size:
        if masked():  # which fewer work-items do, too
            for extent in sorted(set().union(*map(_extents, submissions))):
                most = max(target.launch_masked_items, size_order(extent, bits=2)[1])
                validity.demand_between(extent, 0, most)
        return None
    for extent in sorted(set().union(*map(_extents, submissions))):
        validity.demand_between(extent, *size_order(extent, bits=2))
    if reason is None or (not threads and members.work <= target.launch_operations):
        return None
    asked = wanted == "profitable" and space.mode != "linear"
    remedy = _ASK if asked else _REQUIRE
    return f"{reason}; {remedy}"


def _vectors_made(kernels: Sequence[Kernel]) -> str | None:
    """Why one launch for all submissions takes longer than a launch each, on CPUs: these
    ``kernels`` of them are done without vectors of work-items there (``codegen.scalar_items``), and
    all together are not."""
    if not kernels:
        return None
    return (
        f"the loops of {kernels[0].name}, which by itself is done without vectors of work-items, "
        "would be done by vectors, which load element by element and wait for the longest of them"
    )


def _many_streams(members: Members, target: Target, validity: ListValidity) -> str | None:
    """Why one launch for all of ``members``, whose streams of memory are more than prefetchers
    follow, takes longer than a launch each; of which sizes that is not so, ``validity``
    remembers."""
    streams = members.streams
    if streams.count <= target.free_streams or streams.joined <= MARGIN * streams.apart:
        return None
    if members.memory_bytes > target.cache_bytes:
        return (
            f"one launch would read and write {streams.count} streams of memory beyond the caches, "
            f"which is predicted to take {streams.joined / streams.apart:.1f} times as long as a "
            "launch each"
        )
    for extent in sorted(set().union(*map(_extents, members.different))):
        validity.demand_between(extent, 0, size_order(extent, bits=2)[1])
    return None


def is_slow_shape(members: Members, space: ItemSpace, target: Target, wanted: Wanted) -> bool:
    """Whether ``unprofitable`` has a reason against work-groups, those of ``space``, that does not
    depend on what launches take, so that it is quickly found."""
    if wanted != "profitable" or target.costs.chain_seconds:
        return False
    if any(local_range(submission) is not None for submission in members.different):
        return False
    slow = _slow_shape(members, space, target)
    return slow is not None and members.work > target.launch_operations


_ASK = "strategy='fused' joins them all the same"
_REQUIRE = "require=True joins them all the same"


def _slow_shape(members: Members, space: ItemSpace, target: Target) -> str | None:
    """What makes one kernel over ``space`` slower than launches, whatever its submissions do."""
    submissions = members.different
    if space.mode == "linear":
        shapes = ", ".join(dict.fromkeys(str(tuple(global_range(s))) for s in submissions))
        return (
            f"ranges {shapes} differ in shape: one kernel would find the ids by division, {_MORE}"
        )
    if space.local_range is None:
        reason = _idle(members, prod(largest_extents(submissions, space)), target)
        return None if reason is None else f"{reason}, {_MORE}"
    reason = _slow_groups(members, space, space.local_range, target)
    if reason is None:
        return None
    sizes = " × ".join(map(str, space.local_range))
    return f"work-groups of {sizes} would keep the dependences inside, but {reason}, {_MORE}"


_MORE = "which costs more than a launch"


def _slow_groups(
    members: Members, space: ItemSpace, local: tuple[int, ...], target: Target
) -> str | None:
    """What makes work-groups of ``local`` slow."""
    extents = largest_extents(members.different, space)
    items = prod(extents)
    if local[-1] < min(target.vector_width // 2, extents[-1]):
        return "are too narrow to be vectorised"
    groups = group_count(extents, local)
    units = target.device.compute_units
    if groups < min(units, items):
        return f"there are {groups} of them for {units} compute units"
    if reads_columns(members, space, target):
        return f"read {members.memory_bytes:,} bytes in columns"
    masked = members.masked(local, extents)
    if masked > _cheaper_than_launches(members, target):
        return (
            f"{masked:,} work-items would be in groups that a range ends in, which run under masks"
        )
    if target.device.splits_rows:
        kernel = clamped_by(submission.ir for submission in members.different)
        if kernel is not None:
            return (
                f"ask at each index of {kernel.name} what launches along rows ask at their ends "
                "only"
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
