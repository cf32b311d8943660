"""Views that lie between each other's elements: columns, every other element, fields of records.

Strides that are multiples of one *period* leave an element's place in the period as it is.  Views
whose places there have no byte in common share no memory, whatever their extents are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import NamedTuple


class Bytes(NamedTuple):
    """The bytes of a view: those of its first element, and of all dimensions with more than one
    element the extents and strides."""

    offset: int
    width: int
    dims: tuple[tuple[int, int], ...]


def apart(views: Sequence[Bytes]) -> list[list[int]]:
    """The ``views``, by position, in groups that certainly share no byte; each in order."""
    return sorted(_apart(views, list(range(len(views)))))


def _apart(views: Sequence[Bytes], members: list[int]) -> list[list[int]]:
    strides = {abs(stride) for k in members for _, stride in views[k].dims}
    for least in sorted(strides - {0}):
        found = _by_period(views, members, least)
        if len(found) > 1:
            return [group for part in found for group in _apart(views, part)]
    return [members]


def _by_period(
    views: Sequence[Bytes], members: Sequence[int], least: int
) -> list[list[int]]:
    """The groups by the places in the period that all strides from ``least`` on have in common."""
    outer = (abs(s) for k in members for _, s in views[k].dims if abs(s) >= least)
    period = gcd(*outer)
    places: list[tuple[int, int, int]] = []
    for k in members:
        below, above = _reach(views[k], least)
        if above - below >= period:
            return [list(members)]
        start = (views[k].offset + below) % period
        end = start + above - below
        places.append((start, min(end, period), k))
        if end > period:
            places.append((0, end - period, k))
    return list(_connected(sorted(places)))


def _reach(view: Bytes, least: int) -> tuple[int, int]:
    """First byte and end, from the first element's, of what the dimensions with strides below
    ``least`` cover."""
    inner = [(n - 1) * stride for n, stride in view.dims if abs(stride) < least]
    return sum(r for r in inner if r < 0), sum(r for r in inner if r > 0) + view.width


def _connected(places: Sequence[tuple[int, int, int]]) -> Iterator[list[int]]:
    """The views of intervals, in order of their starts, that overlap; one may have two."""
    root: dict[int, int] = {}

    def find(k: int) -> int:
        while root.setdefault(k, k) != k:
            k = root[k]
        return k

    beyond, last = 0, -1
    for start, end, k in places:
        if last >= 0 and start < beyond:
            low, high = sorted((find(last), find(k)))
            root[high] = low
        find(k)
        if end > beyond:
            beyond, last = end, k
    groups: dict[int, list[int]] = {}
    for k in sorted(root):
        groups.setdefault(find(k), []).append(k)
    yield from groups.values()
