"""How many work-items to launch, in work-groups of what size."""

from __future__ import annotations

from math import prod

from fusionq.base.target import DeviceInfo, LaunchShape

VECTOR = 16
"""Work-items that a CPU device runs as one vector: a multiple of it in the fastest dimension
leaves no scalar remainder."""

LARGEST_GROUP = {"cpu": 4096, "gpu": 256, "accelerator": 256, "reference": 256}
"""On a CPU a work-group is one task of the scheduler: 4096 items ran 5 to 15 % faster than 256,
8192 no faster."""

SMALLEST_GROUP = 256
GROUPS_PER_COMPUTE_UNIT = 4
"""Enough to keep all compute units busy to the end."""


def launch_shape(range: tuple[int, ...], info: DeviceInfo) -> LaunchShape:
    """The launch for a plain range of 1 to 3 extents (SYCL order), all positive.

    The global range is ``range`` rounded up to whole work-groups; the kernel guards the rest.
    A work-group takes as much as it can of the fastest dimension, then of the next: rows of
    contiguous memory.
    """
    limit = min(LARGEST_GROUP[info.kind], info.max_work_group_size)
    share = -(-prod(range) // (GROUPS_PER_COMPUTE_UNIT * info.compute_units))
    budget = min(max(share, SMALLEST_GROUP), limit)
    vector = min(VECTOR, limit)
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
