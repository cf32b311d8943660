"""How many work-items to launch, in work-groups of what size."""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.identity_cache import cached_by_identity
from fusionq.base.target import LaunchShape, Target


def launch_shape(
    extents: tuple[int, ...], target: Target, ends: Collection[int] = ()
) -> LaunchShape:
    """The launch for a plain range of 1 to 3 extents (SYCL order), all positive.  ``ends``: where
    kernels end that have but a part of a range of one dimension.

    The global range is ``extents`` rounded up to whole work-groups; the kernel guards the rest.
    A work-group takes as much as it can of the fastest dimension, then of the next: rows of
    contiguous memory.  Where work-items are threads and so few that work-groups of the usual size
    would leave compute units without any, they are smaller; and a dimension of fewer than a warp,
    such as the parts of points, is as wide as it is: threads of several rows are one warp.
    """
    device = target.device
    limit, groups, vector = _limits(target)
    share = -(-prod(extents) // groups)
    budget = min(max(share, _usual_budget(extents, target)), limit)
    *slower, fastest = extents
    part = max(min(_round_up(_even_part(fastest, budget), vector), limit // vector * vector), 1)
    if slower and device.kind == "gpu" and fastest < vector:
        part = min(part, max(fastest, 1))
    if not slower:
        if ends and device.kind == "cpu":
            part = _ending(fastest, part, ends, vector, target.preferred_work_group)
        return LaunchShape((_round_up(fastest, part),), (part,))
    local = [part]
    for extent in reversed(slower):
        most = max(budget // prod(local), 1)
        most = min(most, CODE_LIMITS.block_planes) if len(local) == 2 else most
        local.insert(0, _even_part(extent, most))
    rounded = [_round_up(extent, size) for extent, size in zip(extents, local, strict=True)]
    return LaunchShape(tuple(rounded), tuple(local))


@cached_by_identity
def _limits(target: Target) -> tuple[int, int, int]:
    """Work-items of a work-group at most, how many groups keep the device busy, and work-items of a
    vector."""
    device = target.device
    limit = min(target.largest_plain_group, device.max_work_group_size)
    groups = target.groups_per_compute_unit * device.compute_units
    return limit, groups, min(target.vector_width, limit)


def _usual_budget(extents: tuple[int, ...], target: Target) -> int:
    """Work-items of a work-group that no compute unit has too many of: a power of two of vectors
    where there are few.  H100, sums of 8,192 rows of 2,048 float32, one a work-item: 269 us in
    work-groups of 256, for 32 of 132 multiprocessors, 90 in such of 32."""
    usual, device = target.preferred_work_group, target.device
    if device.kind != "gpu":
        return usual
    of_unit = prod(extents) // device.compute_units
    if of_unit >= usual:
        return usual
    vectors = max(of_unit // target.vector_width, 1)
    return min(usual, target.vector_width << (vectors.bit_length() - 1))


def launch_shape_of_rows(extents: tuple[int, ...], lanes: int, target: Target) -> LaunchShape:
    """The same of a kernel whose work-groups, of so many ``lanes``, go along rows: as many groups,
    among which it deals what there is."""
    plain = launch_shape(extents, target)
    groups = [n // size for n, size in zip(plain.global_range, plain.local_range, strict=True)]
    local = (*(1 for _ in extents[1:]), lanes)
    return LaunchShape((*groups[:-1], groups[-1] * lanes), local)


def _ending(extent: int, size: int, ends: Collection[int], vector: int, least: int) -> int:
    """A work-group size up to ``size``, from ``least`` on, at whose multiples ``ends`` almost are.
    A vector of a group that is partly beyond one runs masked accesses to memory that is not there,
    which takes about as long as to start a group."""
    sizes = range(size, min(least, size) - 1, -vector)
    return min(sizes, key=lambda n: -(-extent // n) + sum(-e % n // vector for e in ends))


def _even_part(extent: int, at_most: int) -> int:
    """``extent`` divided into as few parts of at most ``at_most`` as it takes, evenly."""
    parts = -(-extent // at_most)
    return -(-extent // parts)


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
