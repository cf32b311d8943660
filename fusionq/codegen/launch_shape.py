"""How many work-items to launch, in work-groups of what size."""

from __future__ import annotations

from math import prod

from fusionq.base.target import LaunchShape, Target


def launch_shape(range: tuple[int, ...], target: Target) -> LaunchShape:
    """The launch for a plain range of 1 to 3 extents (SYCL order), all positive.

    The global range is ``range`` rounded up to whole work-groups; the kernel guards the rest.
    A work-group takes as much as it can of the fastest dimension, then of the next: rows of
    contiguous memory.
    """
    limit = min(target.largest_plain_group, target.device.max_work_group_size)
    groups = target.groups_per_compute_unit * target.device.compute_units
    share = -(-prod(range) // groups)
    budget = min(max(share, target.preferred_work_group), limit)
    vector = min(target.vector_width, limit)
    *slower, fastest = range
    local = [max(min(_round_up(_even_part(fastest, budget), vector), limit // vector * vector), 1)]
    for extent in reversed(slower):
        local.insert(0, _even_part(extent, max(budget // prod(local), 1)))
    return LaunchShape(
        tuple(_round_up(extent, size) for extent, size in zip(range, local, strict=True)),
        tuple(local),
    )


def _even_part(extent: int, at_most: int) -> int:
    """``extent`` divided into as few parts of at most ``at_most`` as it takes, evenly."""
    parts = -(-extent // at_most)
    return -(-extent // parts)


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
