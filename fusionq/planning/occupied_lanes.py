"""How long joined submissions take where a vector's lanes are neighbouring work-items (CPUs).

A vector takes as long for one of its lanes as for all.  Joined submissions may have fewer
work-items beside each other than in launches of their own:

    for j in range(n): total[i] += a[i, j]    over (rows,)           16 rows to a vector
                                              over (rows, columns)   one row to a vector, as (i, 0)

And work-groups that are chosen for a dependence may be fewer than there are compute units, or so
small that to start them takes as long as what they do.  Where vectors have no registers for masks
(AVX2), stores under guards take many times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fusionq.analysis.item_space import ItemSpace, global_range
from fusionq.analysis.submission import Submission
from fusionq.analysis.work_groups import group_count, largest_extents
from fusionq.base.identity_cache import cached_by_identity
from fusionq.base.target import Target
from fusionq.codegen.loop_bounds import loop_bounds
from fusionq.ir.nodes import Compare, Expr, Kernel, Store
from fusionq.ir.walk import statements
from fusionq.planning.clamped_rows import clamped_by
from fusionq.planning.known_values import KnownValues, sizes_of
from fusionq.planning.members import Kind, Members
from fusionq.planning.segmented_launches import launched_in_segments


def computing_seconds(kind: Kind, space: ItemSpace, target: Target) -> float:
    """What a submission of a ``kind`` computes in a launch over ``space``, in seconds."""
    units, costs = target.device.compute_units, target.costs
    each = kind.operations / (target.machine_balance * costs.memory_bandwidth / units)
    each += kind.work.functions * costs.function_seconds
    return _lanes_in_turn(kind.submission, space, target) * each


def starting_seconds(extents: tuple[int, ...], space: ItemSpace, target: Target) -> float:
    """What it takes to start work-groups over ``extents`` that are more than in other launches."""
    if space.local_range is None:
        return 0.0
    usual = -(-prod(extents) // target.preferred_work_group)
    groups = group_count(extents, space.local_range) - usual
    return max(groups, 0) * target.costs.instruction_seconds / target.resident_workers


def lost_lanes(
    submission: Submission, space: ItemSpace, before: ItemSpace, target: Target
) -> str | None:
    """Why a compute unit does more lanes for a submission over ``space`` than over ``before``; None
    if it does not."""
    if _lanes_in_turn(submission, space, target) <= _lanes_in_turn(submission, before, target):
        return None
    own, name = space.extents_of(global_range(submission)), submission.ir.name
    if _is_divided(submission, space, target):
        return f"each work-item of {name} would divide its id, and access elements by itself"
    if _is_clamped(submission, space, target):
        return f"{name} would ask at each index what launches along rows ask at their ends only"
    if space.local_range is not None:
        groups, units = group_count(own, space.local_range), target.device.compute_units
        if groups < units:
            return f"{name} has {groups} of them for {units} compute units"
    side = own[-1] if space.local_range is None else min(own[-1], space.local_range[-1])
    lanes = min(side, target.vector_width)
    return f"vectors would have work-items of {name} in {lanes} of {target.vector_width} lanes"


def reads_columns(members: Members, space: ItemSpace, target: Target) -> bool:
    """Whether work-groups over ``space`` read arrays of ``members`` in columns that are parts of
    rows, which takes longer than what they compute."""
    local = space.local_range
    if local is None or prod(local[:-1]) == 1:
        return False
    if local[-1] >= largest_extents(members.different, space)[-1]:
        return False
    touched = members.memory_bytes
    return touched > target.worker_cache_bytes and members.work < target.machine_balance * touched


def masked_seconds(kinds: Sequence[Kind], target: Target) -> float:
    """What stores of submissions of ``kinds`` take under the guards of one launch of all of them,
    where there are no registers for masks.  A guard that holds all of a kernel is a bound of the
    compiler's loop over work-items; those of ranges that differ are masks, and so are conditions
    on ids where not all kernels have the same."""
    if target.device.masks_vectors:
        return 0.0
    masked = kinds
    if len({global_range(kind.submission) for kind in kinds}) < 2:
        bounds = [_bounds(kind.submission) for kind in kinds]
        alike = len(set(bounds)) < 2
        masked = [] if alike else [k for k, own in zip(kinds, bounds, strict=True) if own]
    vectors = sum(kind.count * _stored_vectors(kind.submission, target) for kind in masked)
    return vectors * target.costs.masked_store_seconds / target.device.compute_units


def _bounds(submission: Submission) -> frozenset[tuple[str, Expr, Expr | int]]:
    """The bounds of ids that hold all of a submission's kernel, with today's limits."""
    found = _bounds_of(submission.ir)
    if not found:
        return frozenset()
    known = KnownValues(submission.ir, sizes_of(submission))
    values = ((bound, known.value(bound.rhs)) for bound in found)
    return frozenset((b.op, b.lhs, b.rhs if v is None else v) for b, v in values)


@cached_by_identity
def _bounds_of(kernel: Kernel) -> tuple[Compare, ...]:
    return loop_bounds(kernel.body)


def _stored_vectors(submission: Submission, target: Target) -> int:
    """Vectors that a submission stores to arrays, each statement once."""
    ir, range_ = submission.ir, global_range(submission)
    arrays = {param.name for param in ir.params}
    stores = sum(isinstance(s, Store) and s.array in arrays for s in statements(ir.body))
    return stores * prod(range_[:-1]) * -(-range_[-1] // target.vector_width)


def _is_divided(submission: Submission, space: ItemSpace, target: Target) -> bool:
    """Whether work-items of ``submission`` find their places by dividing in ``space``, whose ids
    are linear, or whose work-groups are no segments of rows, in which neighbours access neighbours:
    compilers make no vectors of what they access."""
    if space.mode == "linear":
        return len(global_range(submission)) > 1
    return space.local_range is not None and launched_in_segments(submission, target)


def _is_clamped(submission: Submission, space: ItemSpace, target: Target) -> bool:
    """Whether work-groups of ``space`` ask at each index of ``submission`` what launches along rows
    ask at their ends only, and load elements one by one."""
    splits = space.local_range is not None and target.device.splits_rows
    return splits and clamped_by((submission.ir,)) is not None


def _lanes_in_turn(submission: Submission, space: ItemSpace, target: Target) -> float:
    """The lanes that a compute unit does one after the other, those of all vectors in which one of
    the submission's work-items is."""
    own = space.extents_of(global_range(submission))
    if 0 in own:
        return 0.0
    parts, side = target.device.compute_units, own[-1]
    if space.local_range is not None:
        parts = min(parts, group_count(own, space.local_range))
        side = min(side, space.local_range[-1])
    width = target.vector_width
    if _is_divided(submission, space, target):
        return prod(own) * width / min(parts, prod(own))
    whole, rest = divmod(own[-1], side)
    vectors = (whole * -(-side // width) + -(-rest // width)) * prod(own[:-1])
    slower = target.costs.clamped_slowdown if _is_clamped(submission, space, target) else 1.0
    return vectors * width * slower / min(parts, vectors)
