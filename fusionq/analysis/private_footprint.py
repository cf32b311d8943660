"""Can a buffer live in private memory? What each work-item owns of it.

Private memory is safe if every element is touched by one work-item only and every read is
preceded, in that work-item, by a write that certainly happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import islpy as isl

from fusionq.analysis.access import Access, item_dims
from fusionq.analysis.item_space import Mode, to_space
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.submission import ArrayArgument

PRIVATE_BYTES_LIMIT = 512
"""More private memory an item than this spills on any device and is not a gain."""


@dataclass(frozen=True, slots=True)
class PrivateFootprint:
    """The elements a work-item owns: the ``extents`` of a box, and the box's first index in each
    dimension as a function of the fused work-item (empty for one element an item)."""

    extents: tuple[int, ...]
    base: tuple[isl.Aff, ...]

    @property
    def is_scalar(self) -> bool:
        """One element an item."""
        return prod(self.extents) == 1


Use = tuple[int, Access]
"""A submission and one of its accesses."""


def private_footprint(
    analysis: ListAnalysis, uses: Sequence[Use], mode: Mode
) -> PrivateFootprint | str:
    """What each work-item owns of the memory that ``uses`` (all its accesses in one fused
    kernel, in program order) touch, or the reason why it cannot be private."""
    for s, access in uses:
        if analysis.shares(s, access).by_address is not None:
            return "the list uses it through views that differ or overlap themselves"
        if access.indices is None:
            return f"the index at {access.span} is not affine, so its element is unknown"
    if not any(access.kind == "write" for _, access in uses):
        return "no kernel of the list writes it"
    everything = _union([_item_elements(analysis, use, mode) for use in uses])
    sharers = everything.apply_range(everything.reverse())
    strangers = sharers.subtract(isl.Map.identity(sharers.get_space()))
    if not analysis.proofs.is_empty(strangers):
        return "an element is touched by more than one work-item"
    uncovered = _uncovered_read(analysis, uses, mode)
    if uncovered is not None:
        return (
            f"the read at {uncovered.span} is not certain to be preceded by a write of the same "
            "element in the same work-item"
        )
    return _box(analysis, uses, everything)


def _item_elements(analysis: ListAnalysis, use: Use, mode: Mode) -> isl.Map:
    """Fused work-items to elements."""
    s, access = use
    elements = analysis.item_elements(s, access)
    assert elements is not None
    to_item, pinned = to_space(analysis.submissions[s], analysis.symbols, mode)
    analysis.pinned |= pinned
    return elements.apply_domain(to_item)


def _union(relations: Sequence[isl.Map]) -> isl.Map:
    whole = relations[0]
    for relation in relations[1:]:
        whole = whole.union(relation)
    return whole.coalesce()


def _uncovered_read(analysis: ListAnalysis, uses: Sequence[Use], mode: Mode) -> Access | None:
    """The first read that a write of the same item and element might not precede."""
    depth = 1 + max(len(access.moment) for _, access in uses)
    points = [_points(analysis, use, mode, depth) for use in uses]
    written = None
    for (_, access), at in zip(uses, points, strict=True):
        if access.kind == "write" and access.exact:
            written = at if written is None else written.union(at)
    moments = isl.Space.create_from_names(
        isl.DEFAULT_CONTEXT,
        set=[f"t{n}" for n in range(depth)],
        params=list(analysis.symbols.names),
    )
    later = isl.Map.lex_lt(moments)
    for (_, access), at in zip(uses, points, strict=True):
        if access.kind != "read":
            continue
        if written is not None:
            same = at.dim(isl.dim_type.set) - depth
            at = at.subtract(written.apply(_keeping(same, later)))
        if not analysis.proofs.is_empty(at):
            return access
    return None


def _keeping(dims: int, relation: isl.Map) -> isl.Map:
    """``relation`` on the last dimensions, with ``dims`` unchanged ones before them."""
    same = isl.Space.create_from_names(isl.DEFAULT_CONTEXT, set=[f"x{n}" for n in range(dims)])
    return isl.Map.identity(same.map_from_set()).flat_product(relation)


def _points(analysis: ListAnalysis, use: Use, mode: Mode, depth: int) -> isl.Set:
    """The fused item, element and moment of each instance of an access."""
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


def _box(
    analysis: ListAnalysis, uses: Sequence[Use], everything: isl.Map
) -> PrivateFootprint | str:
    """The smallest box around each item's elements."""
    extents = []
    lowest = []
    for dim in range(everything.dim(isl.dim_type.out)):
        low, high = everything.dim_min(dim), everything.dim_max(dim)
        extent = _largest(analysis, high.sub(low))
        if extent is None:
            return "the elements that a work-item owns are too far apart"
        extents.append(extent + 1)
        lowest.append(low.coalesce())
    argument = _argument(analysis, uses[0])
    size = prod(extents) * argument.dtype.nbytes
    if size > PRIVATE_BYTES_LIMIT:
        return (
            f"a work-item's {' x '.join(map(str, extents))} elements take {size} bytes, more than "
            f"the {PRIVATE_BYTES_LIMIT} that private memory is used for"
        )
    if prod(extents) == 1:
        return PrivateFootprint(tuple(extents), ())
    if any(low.n_piece() != 1 for low in lowest):
        return "the first element that a work-item owns has no single affine form"
    return PrivateFootprint(tuple(extents), tuple(low.get_pieces()[0][1] for low in lowest))


def _largest(analysis: ListAnalysis, difference: isl.PwAff) -> int | None:
    """The largest value of ``difference``, for all sizes if possible, else for today's."""
    for pinned in (False, True):
        value = difference.intersect_params(analysis.symbols.point) if pinned else difference
        largest = value.max_val()
        if largest.is_int():
            if pinned:
                names = analysis.symbols.names
                analysis.pinned |= {
                    name
                    for position, name in enumerate(names)
                    if difference.involves_dims(isl.dim_type.param, position, 1)
                }
            return int(largest.to_python())
    return None


def _argument(analysis: ListAnalysis, use: Use) -> ArrayArgument:
    s, access = use
    argument = analysis.submissions[s].arguments[analysis.argument_index(s, access.array)]
    assert isinstance(argument, ArrayArgument)
    return argument
