"""Whether joined submissions take longer than launches on devices whose work-items are threads that
wait (GPUs): by what each of them takes in the work-groups of either.

A work-item takes as long as its operations one after the other.  Work-groups take longer where
their compute units have more to access than that: work-groups that are chosen for a dependence may
be fewer than a launch of its own would have, or narrower than the sub-groups that access memory
together.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from fusionq.analysis.item_space import ItemSpace, global_range, local_range
from fusionq.analysis.submission import Submission
from fusionq.analysis.work_groups import largest_extents
from fusionq.base.target import Target
from fusionq.codegen.launch_shape import launch_shape
from fusionq.ir.nodes import For, Kernel, Load, Store, While
from fusionq.ir.walk import expressions, statements
from fusionq.planning.cost import NOTHING, grouped_seconds
from fusionq.planning.members import Kind, Members


def slower_joined(
    members: Members, space: ItemSpace, before: ItemSpace, target: Target
) -> str | None:
    """Why one launch of ``members`` over ``space`` takes longer than one of all but the last over
    the space ``before`` and one of the last; None if it does not."""
    *others, last = members.kinds
    alone = last.submission
    apart = target.costs.launch_seconds + _seconds(last, _alone(alone), [alone], target)
    joined = 0.0
    earlier = [*others, *([replace(last, count=last.count - 1)] if last.count > 1 else ())]
    submissions = [kind.submission for kind in earlier]
    for kind in earlier:
        joined += kind.count * _seconds(kind, space, members.different, target)
        apart += kind.count * _seconds(kind, before, submissions, target)
    joined += _seconds(last, space, members.different, target)
    if joined <= apart:
        return None
    return (
        f"one launch of them {_text(space)} is predicted to take {joined * 1e6:,.1f} µs, and "
        f"{apart * 1e6:,.1f} µs without the last of them and with a launch of that"
    )


def _alone(submission: Submission) -> ItemSpace:
    return ItemSpace("ids", len(global_range(submission)), local_range(submission))


def _text(space: ItemSpace) -> str:
    if space.local_range is not None:
        return f"in work-groups of {' × '.join(map(str, space.local_range))}"
    return "by linear ids" if space.mode == "linear" else "over the largest range"


def _seconds(kind: Kind, space: ItemSpace, members: list[Submission], target: Target) -> float:
    """What a submission of a ``kind`` takes in a launch of ``members`` over ``space``."""
    submission, costs = kind.submission, target.costs
    extents = largest_extents(members, space)
    local = space.local_range
    if local is None:
        if 0 in extents:
            return 0.0
        local = launch_shape(extents, target).local_range
    range_ = global_range(submission)
    own = _in_space(tuple(range_), space)
    groups = prod(-(-n // size) for n, size in zip(own, local, strict=True))
    row = max(min(local[-1], own[-1]), 1)
    seconds = grouped_seconds(kind.work, kind.operations, range_.size, groups, row, target)
    if space.mode == "linear" and len(range_) > 1:
        seconds += grouped_seconds(
            NOTHING, costs.division_operations, range_.size, groups, row, target
        )
    if space.local_range is not None and local_range(submission) is None:
        seconds *= costs.ordered_slowdown if _stores_in_loops(submission.ir) else 1.0
    return seconds


def _in_space(range_: tuple[int, ...], space: ItemSpace) -> tuple[int, ...]:
    """The extents of what a range takes of ``space``."""
    if space.mode == "linear":
        return (prod(range_),)
    more = (1,) * (space.ndim - len(range_))
    return (*range_, *more) if space.mode == "first" else (*more, *range_)


def _stores_in_loops(kernel: Kernel) -> bool:
    """Whether a loop both loads and stores elements of arrays."""
    return any(
        any(isinstance(s, Store) for s in statements(loop.body))
        and any(isinstance(e, Load) for e in expressions(loop.body))
        for loop in statements(kernel.body)
        if isinstance(loop, (For, While))
    )
