"""Which array arguments can share memory, by address and extent.

Arguments fall into *groups* that may share memory; inside a group, arguments that are one and
the same view (offset, extents, strides, dtype) form a *view*.  A group with one view whose
elements do not overlap is compared by index; any other by address, in units that divide every
stride, offset and element size of the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from fusionq.analysis.submission import ArrayArgument


@dataclass(frozen=True, slots=True)
class ViewPlace:
    """Where a view lies in its group: offset of element [0, …] and strides in ``unit`` bytes,
    and the units an element takes."""

    offset: int
    strides: tuple[int, ...]
    width: int


@dataclass(frozen=True, slots=True)
class Place:
    """What an argument shares: its group and view, and, if the group is compared by address,
    where the view lies."""

    group: int
    view: int
    by_address: ViewPlace | None


def extent_of(argument: ArrayArgument) -> tuple[int, int]:
    """First byte and one past the last, relative to element [0, …]; empty arrays touch none."""
    if not prod(argument.shape):
        return 0, 0
    reach = [(n - 1) * s for n, s in zip(argument.shape, argument.strides, strict=True)]
    return sum(r for r in reach if r < 0), sum(r for r in reach if r > 0) + argument.dtype.nbytes


def is_contiguous(argument: ArrayArgument) -> bool:
    """Whether strides follow from extents (C order; extents of 1 have any stride)."""
    expected = argument.dtype.nbytes
    for stride, extent in zip(reversed(argument.strides), reversed(argument.shape), strict=True):
        if extent > 1 and stride != expected:
            return False
        expected *= extent
    return True


def has_unit_stride(argument: ArrayArgument) -> bool:
    """Whether neighbours in the last dimension are neighbours in memory."""
    return not argument.strides or argument.strides[-1] == argument.dtype.nbytes


def overlaps_itself(argument: ArrayArgument) -> bool:
    """Whether two indices of the view may mean one address (a broadcast or windowed view)."""
    reach = argument.dtype.nbytes
    dims = zip(argument.strides, argument.shape, strict=True)
    for stride, extent in sorted((abs(s), n) for s, n in dims):
        if extent > 1:
            if stride < reach:
                return True
            reach += stride * (extent - 1)
    return False


def may_share(a: ArrayArgument, b: ArrayArgument) -> bool:
    """Whether the two arguments' extents have a byte in common."""
    if a.storage == b.storage:
        start_a, start_b = a.offset, b.offset
    elif a.address is not None and b.address is not None:
        start_a, start_b = a.address, b.address
    else:
        return False
    (low_a, high_a), (low_b, high_b) = extent_of(a), extent_of(b)
    if low_a == high_a or low_b == high_b:
        return False
    return start_a + low_a < start_b + high_b and start_b + low_b < start_a + high_a


def places(arguments: Sequence[ArrayArgument]) -> tuple[Place, ...]:
    """The place of each argument; groups and views are numbered by first appearance."""
    group_of = _groups(arguments)
    numbers: dict[int, int] = {}
    result: list[Place | None] = [None] * len(arguments)
    for root in dict.fromkeys(group_of):
        members = [k for k, g in enumerate(group_of) if g == root]
        number = numbers.setdefault(root, len(numbers))
        origin = arguments[members[0]]
        views: dict[tuple[object, ...], int] = {}
        keys = []
        for k in members:
            a = arguments[k]
            key = (distance(origin, a), a.shape, a.strides, a.dtype)
            views.setdefault(key, len(views))
            keys.append(key)
        by_index = len(views) == 1 and not overlaps_itself(origin)
        unit = 0
        for k in members:
            a = arguments[k]
            unit = gcd(unit, a.dtype.nbytes, distance(origin, a), *a.strides)
        for k, key in zip(members, keys, strict=True):
            a = arguments[k]
            place = None if by_index else ViewPlace(
                distance(origin, a) // unit,
                tuple(s // unit for s in a.strides),
                a.dtype.nbytes // unit,
            )  # fmt: skip
            result[k] = Place(number, views[key], place)
    return tuple(p for p in result if p is not None)


def distance(origin: ArrayArgument, other: ArrayArgument) -> int:
    """Bytes from the first element of one to that of the other, which may share memory."""
    if origin.storage == other.storage:
        return other.offset - origin.offset
    assert origin.address is not None
    assert other.address is not None
    return other.address - origin.address


def _groups(arguments: Sequence[ArrayArgument]) -> list[int]:
    """For each argument the first argument of its group."""
    root = list(range(len(arguments)))

    def find(k: int) -> int:
        while root[k] != k:
            k = root[k]
        return k

    first: dict[tuple[object, ...], int] = {}
    for k, b in enumerate(arguments):
        same = first.setdefault((b.storage, b.offset, b.shape, b.strides), k)
        root[k] = same
        if same != k:
            continue
        for j in first.values():
            if find(j) != find(k) and may_share(arguments[j], b):
                low, high = sorted((find(j), find(k)))
                root[high] = low
    return [find(k) for k in range(len(arguments))]
