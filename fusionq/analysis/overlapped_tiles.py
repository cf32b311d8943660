"""Overlapped tiles: which work-items of producers a work-group does beside its tile of consumers.

A work-group does the tile of its consumers' work-items, and of each producer the work-items that
write what the tile reads: the tile and its halo.  Halos of producers that read producers add up.
A box may hold more than is needed, never less: that all elements that are read are written, each by
one work-item, is proved before (``analysis.recomputation``).

Holewinski, Pouchet, Sadayappan: "High-performance code generation for stencil computations on GPU
architectures", 2012.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import islpy as isl

from fusionq.analysis.footprint import (
    ANY_SIZES,
    TODAYS_SIZES,
    Footprint,
    Sizes,
    Use,
    box_around,
    hull,
    item_elements,
    union,
)
from fusionq.analysis.isl_operations import TooManyOperations, answered
from fusionq.analysis.list_analysis import ListAnalysis, bounds_box
from fusionq.base.frozen import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Of each producer the box of work-items that a work-group does, and of each of its temporaries
    (by argument) the box of elements that these write; their first ones in terms of the group."""

    items: Mapping[int, Footprint]
    elements: Mapping[tuple[int, int], Footprint]


def overlapped_boxes(
    analysis: ListAnalysis,
    tile: tuple[int, ...],
    consumers: Sequence[int],
    producers: Mapping[int, Sequence[int]],
) -> Boxes | str:
    """What a work-group does of the ``producers`` (submissions, with the arguments that are their
    temporaries) for a ``tile`` of the work-items of the ``consumers``; or why that is not known."""
    try:
        return answered(
            lambda: _boxes(analysis, tile, consumers, producers), questions=5 * len(producers)
        )
    except TooManyOperations as error:
        return str(error)


def _boxes(
    analysis: ListAnalysis,
    tile: tuple[int, ...],
    consumers: Sequence[int],
    producers: Mapping[int, Sequence[int]],
) -> Boxes | str:
    """As ``overlapped_boxes``, for the most sizes and scalars for which there are any boxes."""
    equal = analysis.symbols.sizes_in_scalars
    found = _boxes_where(analysis, tile, consumers, producers, None, (ANY_SIZES,))
    if isinstance(found, str) and equal is not None:
        found = _boxes_where(analysis, tile, consumers, producers, equal, (ANY_SIZES,))
        if not isinstance(found, str):
            analysis.proofs.add([(equal, True)])
    if isinstance(found, str):
        sizes = ANY_SIZES, TODAYS_SIZES
        found = _boxes_where(analysis, tile, consumers, producers, None, sizes)
    return found


def _boxes_where(
    analysis: ListAnalysis,
    tile: tuple[int, ...],
    consumers: Sequence[int],
    producers: Mapping[int, Sequence[int]],
    where: isl.Set | None,
    sizes: Sequence[Sizes],
) -> Boxes | str:
    tiles = _within(tile_box(tile))
    if where is not None:
        tiles = tiles.intersect_params(where)
    done = {c: tiles.intersect_range(_range(analysis, c)) for c in consumers}
    groups = hull(list(done.values())).domain()
    temporaries = {analysis.place[p, k].group for p, own in producers.items() for k in own}
    for s, accesses in enumerate(analysis.accesses):
        for access in accesses.accesses:
            if access.indices is None and analysis.shares(s, access).group in temporaries:
                return f"the index at {access.span} is not known for all submissions together"
    items: dict[int, Footprint] = {}
    elements: dict[tuple[int, int], Footprint] = {}
    for p in sorted(producers, reverse=True):
        needed: list[isl.Map] = []
        own = {k: _uses(analysis, p, analysis.place[p, k].group) for k in producers[p]}
        for k, uses in own.items():
            reads = [
                each.apply_range(item_elements(analysis, use, "ids"))
                for s, each in done.items()
                for use in _uses(analysis, s, analysis.place[p, k].group)
            ]
            if reads:
                writers = union([item_elements(analysis, use, "ids") for use in uses]).reverse()
                needed.append(hull(reads).apply_range(writers))
        if not needed:
            return "nothing reads what it writes"
        box = _box(analysis, union(needed), sizes)
        if isinstance(box, str):
            return box
        items[p] = box
        done[p] = _within(box).intersect_domain(groups).intersect_range(_range(analysis, p))
        for k, uses in own.items():
            touched = [done[p].apply_range(item_elements(analysis, use, "ids")) for use in uses]
            held = _box(analysis, union(touched), sizes)
            if isinstance(held, str):
                return held
            elements[p, k] = held
    return Boxes(items, elements)


def _box(
    analysis: ListAnalysis, relation: isl.Map, sizes: Sequence[Sizes]
) -> Footprint | str:
    """The box around what each work-group has, for the first of ``sizes`` for which it is bounded:
    of the hull, which is one set and no union, if that is."""
    found = box_around(analysis, hull([relation]), sizes)
    if isinstance(found, str):
        found = box_around(analysis, relation, sizes)
    return found if isinstance(found, str) else Footprint(*found)


def _uses(analysis: ListAnalysis, submission: int, group: int) -> list[Use]:
    return [
        (submission, access)
        for access in analysis.accesses[submission].accesses
        if analysis.is_placed(submission, access, group)
    ]


def _range(analysis: ListAnalysis, submission: int) -> isl.Set:
    """The work-items of a submission."""
    return bounds_box(analysis.shapes[submission].global_range, analysis.symbols)


def tile_box(tile: tuple[int, ...]) -> Footprint:
    """The work-items of each work-group's tile."""
    groups = ", ".join(f"g{d}" for d in range(len(tile)))
    base = (isl.Aff(f"{{ [{groups}] -> [({n}g{d})] }}") for d, n in enumerate(tile))
    return Footprint(tile, tuple(base))


def advance_of(box: Footprint) -> int | None:
    """By how much the boxes of two groups side by side in the first dimension differ there, and in
    no other; None where that is not known, or not the same for all groups."""
    found = None
    for dim, base in enumerate(box.base):
        if base.dim(isl.dim_type.div) or not base.get_denominator_val().is_one():
            return None
        moved = base.get_coefficient_val(isl.dim_type.in_, 0)
        if dim == 0 and moved.is_pos():
            found = int(moved.to_python())
        elif not moved.is_zero():
            return None
    return found


def _within(box: Footprint) -> isl.Map:
    """Work-groups to what lies in their box."""
    whole: isl.Map | None = None
    for extent, first in zip(box.extents, box.base, strict=True):
        one = isl.Map.from_aff(first).apply_range(
            isl.Map(f"{{ [b] -> [i] : b <= i < b + {extent} }}")
        )
        whole = one if whole is None else whole.flat_range_product(one)
    assert whole is not None
    return whole
