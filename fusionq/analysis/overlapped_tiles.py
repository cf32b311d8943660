"""Overlapped tiles: which work-items of producers a work-group does beside its tile of consumers.

A work-group does the tile of its consumers' work-items, and of each producer the work-items that
write what the tile reads: the tile and its halo.  Halos of producers that read producers add up.

Holewinski, Pouchet, Sadayappan: "High-performance code generation for stencil computations on GPU
architectures", 2012.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from fusionq.analysis.footprint import Footprint, Use, box_around, item_elements, union
from fusionq.analysis.list_analysis import ListAnalysis, bounds_box
from fusionq.analysis.proof import TooManyOperations, answered


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
    tiles = _within(tile_box(tile))
    done = {c: tiles.intersect_range(_range(analysis, c)) for c in consumers}
    groups = union(list(done.values())).domain()
    items: dict[int, Footprint] = {}
    elements: dict[tuple[int, int], Footprint] = {}
    for p in sorted(producers, reverse=True):
        needed: list[isl.Map] = []
        read: dict[int, isl.Map] = {}
        for k in producers[p]:
            group = analysis.place[p, k].group
            reads = [
                each.apply_range(item_elements(analysis, use, "ids"))
                for s, each in done.items()
                for use in _uses(analysis, s, group)
            ]
            if reads:
                read[k] = union(reads)
                written = union(
                    [item_elements(analysis, use, "ids") for use in _uses(analysis, p, group)]
                )
                needed.append(read[k].apply_range(written.reverse()))
        if not needed:
            return "nothing reads what it writes"
        box = box_around(analysis, union(needed), for_all_sizes=True)
        if isinstance(box, str):
            return box
        items[p] = Footprint(*box)
        done[p] = _within(items[p]).intersect_domain(groups).intersect_range(_range(analysis, p))
        for k in producers[p]:
            group = analysis.place[p, k].group
            uses = _uses(analysis, p, group)
            exact = [use for use in uses if use[1].kind == "write" and use[1].exact]
            sure = [done[p].apply_range(item_elements(analysis, use, "ids")) for use in exact]
            if k in read and not (
                sure and analysis.proofs.is_empty(read[k].subtract(union(sure)))
            ):
                return "a work-group may read an element that it does not compute"
            touched = [done[p].apply_range(item_elements(analysis, use, "ids")) for use in uses]
            held = box_around(analysis, union(touched), for_all_sizes=True)
            if isinstance(held, str):
                return held
            elements[p, k] = Footprint(*held)
    return Boxes(items, elements)


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
