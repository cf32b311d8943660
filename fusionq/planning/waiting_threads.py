"""How long joined submissions take on devices whose work-items are threads that wait (GPUs), by
what each of them takes in the work-groups of a launch.

A work-item takes as long as its operations one after the other.  Work-groups take longer where
their compute units have more to access than that: work-groups that are chosen for a dependence may
be fewer than a launch of its own would have, or narrower than the sub-groups that access memory
together.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.analysis.item_space import ItemSpace, global_range, local_range
from fusionq.analysis.submission import Submission
from fusionq.analysis.work_groups import group_count, largest_extents
from fusionq.base.target import Target
from fusionq.codegen.launch_shape import launch_shape
from fusionq.ir.nodes import For, Kernel, Load, Store, While
from fusionq.ir.walk import expressions, statements
from fusionq.planning.cost import NOTHING, grouped_seconds
from fusionq.planning.members import Kind


def waiting_launch_seconds(
    kind: Kind, space: ItemSpace, members: Sequence[Submission], target: Target
) -> float:
    """What a submission of a ``kind`` takes in a launch of ``members`` over ``space``."""
    submission, costs = kind.submission, target.costs
    extents = largest_extents(members, space)
    local = space.local_range
    if local is None:
        if 0 in extents:
            return 0.0
        local = launch_shape(extents, target).local_range
    range_ = global_range(submission)
    own = space.extents_of(range_)
    groups = group_count(own, local)
    row = max(min(local[-1], own[-1]), 1)
    seconds = grouped_seconds(kind.work, kind.operations, range_.size, groups, row, target)
    if space.mode == "linear" and len(range_) > 1:
        seconds += grouped_seconds(
            NOTHING, costs.division_operations, range_.size, groups, row, target
        )
    if space.local_range is not None and local_range(submission) is None:
        seconds *= costs.ordered_slowdown if _stores_in_loops(submission.ir) else 1.0
    return seconds


def _stores_in_loops(kernel: Kernel) -> bool:
    """Whether a loop both loads and stores elements of arrays."""
    return any(
        any(isinstance(s, Store) for s in statements(loop.body))
        and any(isinstance(e, Load) for e in expressions(loop.body))
        for loop in statements(kernel.body)
        if isinstance(loop, (For, While))
    )
