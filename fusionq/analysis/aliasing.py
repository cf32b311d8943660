"""Which array arguments can share memory, by address and extent.

Arguments fall into *groups* that may share memory; inside a group, arguments that are one and
the same view (offset, extents, strides, dtype) form a *view*.  A group with one view whose
elements do not overlap is compared by index; any other by address, in units that divide every
stride, offset and element size of the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import gcd, prod
from typing import NamedTuple

from fusionq.analysis.interleaved import Bytes, apart
from fusionq.analysis.submission import ArrayArgument, Operands
from fusionq.base.frozen import dataclass
from fusionq.ir.types import ScalarType


@dataclass(frozen=True, slots=True)
class ViewPlace:
    """Where a view lies in its group: offset of element [0, …] and strides in ``unit`` bytes,
    and the units an element takes."""

    offset: int
    strides: tuple[int, ...]
    width: int


class Place(NamedTuple):
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
    """Whether strides follow from extents (C order; extents of 1 have any stride); never where
    elements do not lie at multiples of their size."""
    if argument.alignment is not None:
        return False
    return layout(argument.shape, argument.strides, argument.dtype.nbytes)[0]


def has_unit_stride(argument: ArrayArgument) -> bool:
    """Whether neighbours in the last dimension are neighbours in memory; never where elements do
    not lie at multiples of their size."""
    if argument.alignment is not None:
        return False
    return layout(argument.shape, argument.strides, argument.dtype.nbytes)[1]


@lru_cache(4096)
def layout(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[bool, bool]:
    """Whether an array is contiguous, and whether it has unit stride."""
    unit = not strides or strides[-1] == itemsize
    expected = itemsize
    for stride, extent in zip(reversed(strides), reversed(shape), strict=True):
        if extent > 1 and stride != expected:
            return False, unit
        expected *= extent
    return True, unit


def overlaps_itself(argument: ArrayArgument) -> bool:
    """Whether two indices of the view may mean one address (a broadcast or windowed view)."""
    return has_element_twice(argument.shape, argument.strides, argument.dtype.nbytes)


def has_element_twice(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether two elements of an array may share memory."""
    if 0 in shape:
        return False
    reach = itemsize
    for stride, extent in sorted((abs(s), n) for s, n in zip(strides, shape, strict=True)):
        if extent > 1:
            if stride < reach:
                return True
            reach += stride * (extent - 1)
    return False


def places(arguments: Sequence[ArrayArgument]) -> tuple[Place, ...]:
    """The place of each argument; groups and views are numbered by first appearance.

    Arguments may share memory if their extents have a byte in common, unless their elements lie
    between each other's.
    """
    known = _places_of_whole_views(arguments)
    if known is not None:
        return known
    groups: dict[int, list[ArrayArgument]] = {}
    root = _apart(arguments, extent_groups(arguments))
    for argument, group in zip(arguments, root, strict=True):
        groups.setdefault(group, []).append(argument)
    found = {group: iter(_places(n, groups[group])) for n, group in enumerate(groups)}
    return tuple(next(found[group]) for group in root)


def _apart(arguments: Sequence[ArrayArgument], root: Sequence[int]) -> list[int]:
    """For each argument the first one of its group, groups by extents divided where their views lie
    between each other's elements."""
    members: dict[int, list[int]] = {}
    for k, group in enumerate(root):
        members.setdefault(group, []).append(k)
    found = list(root)
    for group, positions in members.items():
        origin = arguments[group]
        views: dict[Bytes, list[int]] = {}
        for k in positions:
            views.setdefault(_bytes(origin, arguments[k]), []).append(k)
        if len(views) > 1:
            uses = list(views.values())
            for part in apart(tuple(views)):
                first = min(uses[v][0] for v in part)
                for v in part:
                    for k in uses[v]:
                        found[k] = first
    return found


def _bytes(origin: ArrayArgument, argument: ArrayArgument) -> Bytes:
    """The bytes of an argument, from the first element of ``origin`` on; empty ones have any."""
    if 0 in argument.shape:
        return Bytes(0, 0, ())
    dims = zip(argument.shape, argument.strides, strict=True)
    return Bytes(
        distance(origin, argument),
        argument.dtype.nbytes,
        tuple((extent, stride) for extent, stride in dims if extent > 1),
    )


def _places_of_whole_views(arguments: Sequence[ArrayArgument]) -> tuple[Place, ...] | None:
    """The places where nothing but one and the same view of one allocation shares memory; None
    where addresses have to be compared: of adopted memory, and of several views."""
    views: dict[int, tuple[ArrayArgument, Place]] = {}
    found: list[Place] = []
    for a in arguments:
        if not a.owned:
            return None
        known = views.get(a.storage)
        if known is None:
            if overlaps_itself(a):
                return None
            known = views[a.storage] = a, Place(len(views), 0, None)
        first, place = known
        if (a.offset, a.shape, a.strides, a.dtype) != (
            first.offset, first.shape, first.strides, first.dtype
        ):  # fmt: skip
            return None
        found.append(place)
    return tuple(found)


def places_by_memory(
    submissions: Sequence[Operands], numbers: tuple[int, ...]
) -> tuple[Place, ...] | None:
    """The places of the array arguments of ``submissions``, where those of one memory, which have
    equal ``numbers``, are one and the same view, and memories do not overlap; else None."""
    views: dict[int, object] = {}
    number = iter(numbers)
    for submission in submissions:
        form = submission.form
        is_contiguous = form.contiguous
        for place, dtype in zip(submission.places, form.dtypes, strict=True):
            view = place[0], place[1], place[3], dtype
            if views.setdefault(next(number), view) != view:
                return None
            if not is_contiguous and has_element_twice(place[0], place[1], dtype.nbytes):
                return None
    return _places_of_views(numbers)


@lru_cache(4096)
def _places_of_views(numbers: tuple[int, ...]) -> tuple[Place, ...]:
    return tuple([Place(number, 0, None) for number in numbers])


def _places(number: int, arguments: Sequence[ArrayArgument]) -> list[Place]:
    """The places of the arguments of one group."""
    origin = arguments[0]
    views: dict[tuple[int, tuple[int, ...], tuple[int, ...], ScalarType], int] = {}
    keys = [(distance(origin, a), a.shape, a.strides, a.dtype) for a in arguments]
    for key in keys:
        views.setdefault(key, len(views))
    if len(views) == 1 and not overlaps_itself(origin):
        return [Place(number, 0, None)] * len(arguments)
    unit = gcd(*(gcd(dtype.nbytes, far, *strides) for far, _, strides, dtype in views))
    lies = {
        (far, shape, strides, dtype): Place(
            number,
            view,
            ViewPlace(far // unit, tuple(s // unit for s in strides), dtype.nbytes // unit),
        )
        for (far, shape, strides, dtype), view in views.items()
    }
    return [lies[key] for key in keys]


def distance(origin: ArrayArgument, other: ArrayArgument) -> int:
    """Bytes from the first element of one to that of the other, which may share memory."""
    if origin.storage == other.storage:
        return other.offset - origin.offset
    assert origin.address is not None
    assert other.address is not None
    return other.address - origin.address


def extent_groups(arguments: Sequence[ArrayArgument]) -> list[int]:
    """For each argument the first one of those whose extents, bytes between their elements
    included, overlap its own or one another's."""
    views: dict[tuple[object, ...], int] = {}
    first = [
        views.setdefault((a.storage, a.offset, a.shape, a.strides, a.dtype), k)
        for k, a in enumerate(arguments)
    ]
    root = {k: k for k in views.values()}

    def find(k: int) -> int:
        while root[k] != k:
            root[k] = k = root[root[k]]
        return k

    bytes_of: dict[int | None, list[tuple[int, int, int]]] = {}
    for k in views.values():
        a = arguments[k]
        low, high = extent_of(a)
        if low < high:
            bytes_of.setdefault(a.storage, []).append((a.offset + low, a.offset + high, k))
            if a.address is not None:
                bytes_of.setdefault(None, []).append((a.address + low, a.address + high, k))
    for intervals in bytes_of.values():
        intervals.sort()
        _, beyond, last = intervals[0]
        for start, stop, k in intervals:
            if start < beyond:
                low, high = sorted((find(last), find(k)))
                root[high] = low
            if stop > beyond:
                beyond, last = stop, k
    return [find(k) for k in first]
