"""Work-group sizes under which dependences stay inside a work-group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import prod

from fusionq.analysis.dependence import Found
from fusionq.analysis.item_relations import same_group, to_space
from fusionq.analysis.item_space import ItemSpace, Mode, global_range
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.proof import TooManyOperations, limited_operations

SIZES = (256, 512, 1024, 128, 64, 32, 16, 8, 4, 2)
"""Work-items in a group, best first: large enough to vectorise and to amortise a group's start,
small enough to share the work among compute units."""

ONE_GROUP_LIMIT = 1024
"""A range of so few work-items may run as one group, on one compute unit."""


def candidates(
    space: ItemSpace, extents: Sequence[int], max_work_group_size: int
) -> Iterator[tuple[int, ...]]:
    """Work-group sizes worth a try for ``space``: the user's if it is explicit; else lines along
    the last dimension, squares, and last the whole range as one group."""
    if space.local_range is not None:
        yield space.local_range
        return
    ones = (1,) * (space.ndim - 1)
    for size in SIZES:
        if size <= max_work_group_size:
            yield (*ones, size)
    if space.ndim >= 2:
        for side in (16, 8, 32, 4):
            if side * side <= max_work_group_size:
                yield (*ones[1:], side, side)
    if 0 < prod(extents) <= min(max_work_group_size, ONE_GROUP_LIMIT):
        yield tuple(extents)


def keeps_inside(
    analysis: ListAnalysis, found: Sequence[Found], mode: Mode, local: tuple[int, ...]
) -> bool:
    """Whether all of ``found`` (scope ``GROUP`` or ``GLOBAL``) stay inside work-groups of
    ``local`` when submissions meet in ``mode``."""
    return all(_stays(analysis, f, mode, local) for f in found)


def _stays(analysis: ListAnalysis, f: Found, mode: Mode, local: tuple[int, ...]) -> bool:
    """The answer for one dependence; equal questions are answered once."""
    if f.items is None:
        return False
    first, second = analysis.submissions[f.producer], analysis.submissions[f.consumer]
    key = (id(f.items), first.range, second.range, mode, local)
    if key not in analysis.stays_inside:
        inside = False
        with suppress(TooManyOperations), limited_operations():
            producer, pins_p = to_space(first, analysis.symbols, mode)
            consumer, pins_c = to_space(second, analysis.symbols, mode)
            items = f.items.apply_domain(producer).apply_range(consumer)
            outside = items.subtract(same_group(analysis.symbols, local))
            inside = analysis.proofs.is_empty(outside)
            analysis.pinned |= pins_p | pins_c
        analysis.stays_inside[key] = f.items, inside
    return analysis.stays_inside[key][1]


def largest_extents(
    analysis: ListAnalysis, members: Sequence[int], space: ItemSpace
) -> tuple[int, ...]:
    """The extents of the index space that holds all of ``members``."""
    ranges = [global_range(analysis.submissions[s]) for s in members]
    largest = max(ranges, key=prod)
    return (largest.size,) if space.mode == "linear" else tuple(largest)
