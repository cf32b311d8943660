"""Whether one launch of submissions takes longer than two, by what each of them takes in either."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fusionq.analysis.item_space import ItemSpace, global_range, local_range
from fusionq.analysis.submission import Submission
from fusionq.analysis.work_groups import largest_extents
from fusionq.base.target import Target
from fusionq.codegen.scalar_items import slower_together, without_vectors
from fusionq.ir.nodes import For, Kernel, While
from fusionq.ir.walk import statements
from fusionq.planning.clamped_rows import clamped_by
from fusionq.planning.jammed_launches import jammed_share
from fusionq.planning.members import Kind, Members
from fusionq.planning.occupied_lanes import (
    computing_seconds,
    lost_lanes,
    masked_seconds,
    reads_columns,
    starting_seconds,
)
from fusionq.planning.own_row_launches import own_row_share
from fusionq.planning.waiting_threads import waiting_launch_seconds


def slower_joined(
    members: Members,
    space: ItemSpace,
    before: ItemSpace,
    target: Target,
    measured: Callable[[], Target],
    times: float,
    masked: Callable[[], float],
) -> str | None:
    """Why one launch of ``members`` over ``space`` takes more than ``times`` as long as one of all
    but the last over the space ``before`` and one of the last; None if it does not.  ``measured``
    gives ``target`` with measured costs, of which there is no need where lanes are vectors of
    which no more are done than before, and none under masks that were not there; ``masked`` what
    the stores of ``members`` take under masks."""
    *others, last = members.kinds
    one = replace(last, count=1)
    alone = ItemSpace("ids", len(global_range(last.submission)), local_range(last.submission))
    earlier = [*others, *([replace(last, count=last.count - 1)] if last.count > 1 else ())]
    threads = bool(target.costs.chain_seconds)
    why = None
    if not threads:
        parts = [*((kind, before) for kind in earlier), (last, alone)]
        lost = (lost_lanes(kind.submission, space, own, target) for kind, own in parts)
        why = next(filter(None, lost), None) or _lost(members, space, earlier, before, target)
        if why is None and not masked():
            return None
        why = why or "guards that differ are masks"
        target = measured()
    joined = launch_seconds([*earlier, one], space, members.different, target)
    apart = launch_seconds(earlier, before, [k.submission for k in earlier], target)
    apart += launch_seconds([one], alone, [last.submission], target)
    if not threads:
        joined = max(joined, _memory_seconds(members, space, target))
        apart = max(apart, _memory_seconds(members, before, target))
    if masked():
        joined += masked()
        apart += masked_seconds(earlier, target)
    apart += target.costs.launch_seconds
    if joined <= times * apart:
        return None
    where = _text(space) if why is None else f"{_text(space)}, where {why},"
    return (
        f"one launch of them {where} is predicted to take {joined * 1e6:,.1f} µs, and "
        f"{apart * 1e6:,.1f} µs without the last of them and with a launch of that"
    )


def launch_seconds(
    kinds: Sequence[Kind], space: ItemSpace, members: Sequence[Submission], target: Target
) -> float:
    """What a launch of submissions of ``kinds`` over ``space`` takes but for the launch itself;
    ``members`` has one of each kind."""
    if target.costs.chain_seconds:
        return sum(k.count * waiting_launch_seconds(k, space, members, target) for k in kinds)
    started = starting_seconds(largest_extents(members, space), space, target)
    slower = slower_together(k.submission.ir for k in kinds)
    scalars = vectors_lost([k.submission for k in kinds], space)

    together = space.local_range is None and space.mode == "ids"
    in_rows = together and _go_along_rows([k.submission for k in kinds], target)

    def seconds(kind: Kind) -> float:
        times = target.costs.vectors_slowdown if kind.submission.ir in slower else 1.0
        times *= target.costs.scalars_slowdown if kind.submission.ir in scalars else 1.0
        times *= jammed_share(kind.submission, target) if together else 1.0
        times *= own_row_share(kind.submission, target) if in_rows else 1.0
        return kind.count * times * computing_seconds(kind, space, target)

    return started + sum(map(seconds, kinds))


def vectors_lost(submissions: Sequence[Submission], space: ItemSpace) -> tuple[Kernel, ...]:
    """The kernels of ``submissions`` of whose work-items no vectors are made in one launch of them
    over ``space``, since others are faster without."""
    if space.local_range is not None:
        return ()
    return without_vectors(submission.ir for submission in submissions)


def _go_along_rows(submissions: Sequence[Submission], target: Target) -> bool:
    """Whether the work-items of a launch of ``submissions`` go along rows of their own: those of
    some do, over ranges of equal dimensions, and the others do no loops."""
    if len({len(global_range(submission)) for submission in submissions}) > 1:
        return False
    return all(
        own_row_share(submission, target) < 1
        or not any(isinstance(s, For | While) for s in statements(submission.ir.body))
        for submission in submissions
    )


def is_faster_alone(submission: Submission, target: Target) -> bool:
    """Whether a launch of ``submission`` does its work-items in a way that no work-groups with
    barriers do: decides at the ends of rows, does several neighbours together, or goes along rows
    of their own without vectors."""
    if local_range(submission) is not None:
        return False
    along_rows = target.device.splits_rows and clamped_by((submission.ir,)) is not None
    shares = jammed_share(submission, target), own_row_share(submission, target)
    return along_rows or min(shares) < 1


def _lost(
    members: Members,
    space: ItemSpace,
    earlier: Sequence[Kind],
    before: ItemSpace,
    target: Target,
) -> str | None:
    """What makes some of ``members`` slower together over ``space`` than the ``earlier`` ones
    ``before``, whatever lanes there are; None if nothing does."""
    slower = slower_together(submission.ir for submission in members.different)
    known = slower_together(kind.submission.ir for kind in earlier)
    for kernel in slower:
        if kernel not in known:
            return f"vectors would be made of work-items of {kernel.name}, which is faster without"
    scalars = vectors_lost(members.different, space)
    known = vectors_lost([kind.submission for kind in earlier], before)
    for kernel in scalars:
        if kernel not in known:
            return f"no vectors would be made of work-items of {kernel.name}"
    if space.local_range is not None:
        new = members.kinds[-1:] if before.local_range is not None else members.kinds
        for kind in new:
            if jammed_share(kind.submission, target) < 1:
                name = kind.submission.ir.name
                return f"work-items of {name} would not do several neighbours together"
            if own_row_share(kind.submission, target) < 1:
                name = kind.submission.ir.name
                return f"work-items of {name} would not go along rows of their own by themselves"
    if reads_columns(members, space, target) and not reads_columns(members, before, target):
        return f"they would read {members.memory_bytes:,} bytes in columns"
    return None


def _memory_seconds(members: Members, space: ItemSpace, target: Target) -> float:
    """What the memory of ``members`` takes at least, where it is more than caches keep, or is read
    in columns."""
    costs, columns = target.costs, reads_columns(members, space, target)
    if members.memory_bytes > target.kept_bytes:
        bandwidth = costs.memory_bandwidth
    elif columns:
        bandwidth = costs.cache_bandwidth
    else:
        return 0.0
    return members.memory_bytes / bandwidth * (costs.columns_slowdown if columns else 1.0)


def _text(space: ItemSpace) -> str:
    if space.local_range is not None:
        return f"in work-groups of {' × '.join(map(str, space.local_range))}"
    where = {"linear": "by linear ids", "hull": "over the hull of their ranges"}
    return where.get(space.mode, "over the largest range")
