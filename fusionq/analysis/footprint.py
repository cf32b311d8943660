"""Boxes around the elements that each work-item, or each work-group, touches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod

import islpy as isl

from fusionq.analysis.greatest import greatest
from fusionq.analysis.item_relations import between_different, to_space
from fusionq.analysis.item_space import Mode
from fusionq.analysis.kernel_accesses import Access, item_dims
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.submission import ArrayArgument
from fusionq.base.frozen import dataclass

Use = tuple[int, Access]
"""A submission and one of its accesses."""


Sizes = tuple[bool, ...]
"""For which sizes a box has to be bounded: any (False), today's, which are then pinned (True)."""

ANY_SIZES: Sizes = (False,)
TODAYS_SIZES: Sizes = (True,)
ANY_OR_TODAY: Sizes = (False, True)


@dataclass(frozen=True, slots=True)
class Footprint:
    """The ``extents`` of a box that holds all elements an owner (work-item or work-group)
    touches, and the box's first index in each dimension as a function of the owner's id (empty
    if the box has one element)."""

    extents: tuple[int, ...]
    base: tuple[isl.Aff, ...]

    @property
    def is_scalar(self) -> bool:
        """One element an owner."""
        return prod(self.extents) == 1


def item_elements(analysis: ListAnalysis, use: Use, mode: Mode) -> isl.Map:
    """Work-items of the fused kernel to the elements that an access touches."""
    s, access = use
    elements = analysis.item_elements(s, access)
    assert elements is not None
    to_item, pinned = to_space(analysis.submissions[s], analysis.symbols, mode)
    analysis.pinned |= pinned
    return elements.apply_domain(to_item)


def union(relations: Sequence[isl.Map]) -> isl.Map:
    """All pairs of all ``relations``."""
    whole = relations[0]
    for relation in relations[1:]:
        whole = whole.union(relation)
    return whole.coalesce()


MOST_PIECES = 8
"""Basic relations of which isl looks at all pairs, and at the least of each, in little time."""


def are_few(relations: Sequence[isl.Map]) -> bool:
    """Whether ``relations`` have ``MOST_PIECES`` together, at most."""
    return sum(relation.n_basic_map() for relation in relations) <= MOST_PIECES


def hull(relations: Sequence[isl.Map]) -> isl.Map:
    """One basic relation that holds all of ``relations``, with their bounds."""
    whole = relations[0]
    for relation in relations[1:]:
        whole = whole.union(relation)
    whole = whole.coalesce() if are_few(relations) else whole
    return isl.Map.from_basic_map(whole.simple_hull())


def shared_by_owners(analysis: ListAnalysis, elements: isl.Map) -> bool:
    """Whether some element belongs to more than one owner."""
    sharers = elements.apply_range(elements.reverse())
    return not analysis.proofs.is_empty(between_different(sharers))


def bounding_box(analysis: ListAnalysis, elements: isl.Map) -> Footprint | str:
    """The box around each owner's elements, or why there is none of bounded size."""
    found = box_around(analysis, elements)
    if isinstance(found, str):
        return found
    extents, base = found
    return Footprint(extents, () if prod(extents) == 1 else base)


def box_around(
    analysis: ListAnalysis, elements: isl.Map, sizes: Sequence[Sizes] = (ANY_OR_TODAY,)
) -> tuple[tuple[int, ...], tuple[isl.Aff, ...]] | str:
    """The extents and the first indices of the box around what each owner has, or why there is none
    of bounded size: the smallest one for the first of these ``sizes`` for which there is one."""
    extents: list[int] = []
    base: list[isl.Aff] = []
    for dim in range(elements.dim(isl.dim_type.out)):
        low, high = elements.dim_min(dim).coalesce(), elements.dim_max(dim)
        starts = []
        pieces = low.get_pieces()
        for n, (_, piece) in enumerate(pieces):
            start = piece.floor()  # a whole number for every owner, not only the piece's
            first = isl.PwAff.from_aff(start)
            # Piece by piece isl takes a third of the time; the piece's own owners have none before.
            before = [
                isl.PwAff.alloc(owners, other).lt_set(first)
                for k, (owners, other) in enumerate(pieces)
                if k != n
            ]
            if not before or analysis.proofs.is_empty(reduce(isl.Set.union, before)):
                starts.append((start, high.sub(first)))
        best: tuple[int, isl.Aff] | None = None
        for kinds in sizes:
            for start, difference in starts if best is None else ():
                distance = _largest(analysis, difference, kinds)
                if distance is not None and (best is None or distance < best[0]):
                    best = distance, start
        if best is None:
            return "the elements that belong together have no box of bounded size"
        extents.append(best[0] + 1)
        base.append(best[1])
    return tuple(extents), tuple(base)


def _largest(
    analysis: ListAnalysis, difference: isl.PwAff, kinds: Sequence[bool]
) -> int | None:
    """The largest value of ``difference``, for all sizes, or for today's where they are pinned; of
    these ``kinds`` the first for which there is one."""
    for pinned in kinds:
        value = difference.intersect_params(analysis.symbols.point) if pinned else difference
        largest = greatest(value.floor())
        if largest.is_int():
            if pinned:
                names = analysis.symbols.names
                analysis.pinned |= {
                    name
                    for position, name in enumerate(names)
                    if difference.involves_dims(isl.dim_type.param, position, 1)
                    and name not in analysis.symbols.free
                }
            return int(largest.to_python())
    return None


def points(analysis: ListAnalysis, use: Use, mode: Mode, depth: int) -> isl.Set:
    """The fused work-item, element and moment (submission first, ``depth`` numbers) of each
    instance of an access."""
    s, access = use
    elements = analysis.elements(s, access)
    assert elements is not None
    ndim = analysis.accesses[s].ndim
    ids = item_dims(ndim)
    loops = [f"k{n}" for n in range(elements.dim(isl.dim_type.in_) - ndim)]
    moment = [str(s), *(str(m) for m in access.moment)]
    moment += ["0"] * (depth - len(moment))
    instance = ", ".join(ids + loops)
    item = isl.Map(f"{{ [{instance}] -> [{', '.join(ids)}] }}")
    to_item, _ = to_space(analysis.submissions[s], analysis.symbols, mode)
    when = isl.Map(f"{{ [{instance}] -> [{', '.join(moment)}] }}")
    return item.apply_range(to_item).flat_range_product(elements).flat_range_product(when).range()


def uncovered_read(
    analysis: ListAnalysis, uses: Sequence[Use], mode: Mode, groups: isl.Map | None = None
) -> Access | None:
    """The first read that is not certain to come after a write of the same element by the same
    work-item; with ``groups`` (work-items to their group) a write by an earlier submission may
    come from any work-item of the same group."""
    depth = 1 + max(len(access.moment) for _, access in uses)
    at = [points(analysis, use, mode, depth) for use in uses]
    for (s, access), read in zip(uses, at, strict=True):
        if access.kind != "read":
            continue
        own = [w for (_, a), w in zip(uses, at, strict=True) if a.kind == "write" and a.exact]
        if own:
            read = read.subtract(_union(own).apply(_later(analysis, read, depth)))
        if groups is not None and not read.is_empty():
            others = [
                w
                for (t, a), w in zip(uses, at, strict=True)
                if t < s and a.kind == "write" and a.exact
            ]
            if others:
                read = read.subtract(_union(others).apply(_group_mates(read, groups, depth)))
        if not analysis.proofs.is_empty(read):
            return access
    return None


def _union(sets: Sequence[isl.Set]) -> isl.Set:
    whole = sets[0]
    for one in sets[1:]:
        whole = whole.union(one)
    return whole


def _later(analysis: ListAnalysis, at: isl.Set, depth: int) -> isl.Map:
    """Points to the points of the same item and element at a later moment."""
    moments = isl.Space.create_from_names(
        isl.DEFAULT_CONTEXT,
        set=[f"t{n}" for n in range(depth)],
        params=list(analysis.symbols.names),
    )
    return _same(at.dim(isl.dim_type.set) - depth).flat_product(isl.Map.lex_lt(moments))


def _group_mates(at: isl.Set, groups: isl.Map, depth: int) -> isl.Map:
    """Points to all points of the same group and element."""
    mates = groups.apply_range(groups.reverse())
    element = at.dim(isl.dim_type.set) - depth - mates.dim(isl.dim_type.in_)
    anytime = isl.Map.universe(_same(depth).get_space())
    return mates.flat_product(_same(element)).flat_product(anytime)


def _same(dims: int) -> isl.Map:
    space = isl.Space.create_from_names(isl.DEFAULT_CONTEXT, set=[f"x{n}" for n in range(dims)])
    return isl.Map.identity(space.map_from_set())


def argument_of(analysis: ListAnalysis, use: Use) -> ArrayArgument:
    """The argument that an access goes to."""
    s, access = use
    argument = analysis.submissions[s].arguments[analysis.argument_index(s, access.array)]
    assert isinstance(argument, ArrayArgument)
    return argument


def unfit_for_promotion(analysis: ListAnalysis, uses: Sequence[Use]) -> str | None:
    """What rules out any promotion of the memory that ``uses`` touch; None if nothing does."""
    for s, access in uses:
        if analysis.shares(s, access).by_address is not None:
            return "the list uses it through views that differ or overlap themselves"
        if access.indices is None:
            return f"the index at {access.span} is not affine, so its element is unknown"
    if not any(access.kind == "write" for _, access in uses):
        return "no kernel of the list writes it"
    return None
