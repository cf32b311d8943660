"""Can a consumer compute what a producer wrote anew? Which work-item wrote each element.

That is safe if each element is written by one work-item, which writes no other element of the
array; if every element that the consumer reads is certainly written; and if nothing that the
producer reads is written between the two, nor by the consumer, whose work-items compute elements
for their neighbours too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import islpy as isl

from fusionq.analysis.footprint import Use, are_few, hull, item_elements, union
from fusionq.analysis.isl_operations import TooManyOperations, answered
from fusionq.analysis.isl_texts import set_of
from fusionq.analysis.list_analysis import ListAnalysis, bounds_box
from fusionq.analysis.private_footprint import UNCOVERED, private_footprint
from fusionq.analysis.submission import ArrayArgument
from fusionq.base.frozen import dataclass
from fusionq.ir.nodes import Atomic

MOST_BYTES = 1 << 62
"""Of private memory: one element is never too much."""


@dataclass(frozen=True, slots=True, eq=False)
class Writer:
    """The work-item that writes an element: for each id an affine function of the element.

    ``sizes``, ``scalars``: the argument and its dimension, or the argument, that has the value of a
    symbol in them.
    """

    items: tuple[isl.Aff, ...]
    sizes: Mapping[str, tuple[int, int]]
    scalars: Mapping[str, int]


def writer_of(analysis: ListAnalysis, argument: int) -> Writer | str:
    """Of a single submission: which of its work-items writes an element of an array argument; or
    why that is not known, or why a work-item's result is not the element alone."""
    group = analysis.place[0, argument].group
    uses = _uses(analysis, 0, group)
    owned = private_footprint(analysis, uses, "ids", MOST_BYTES)
    if isinstance(owned, str) and UNCOVERED in owned:
        return (
            f"{owned}: it is updated in place, and would need a second memory, since other "
            "work-groups may still read what was there before"
        )
    if isinstance(owned, str):
        return owned
    if not owned.is_scalar:
        return "a work-item writes several elements of it"
    try:
        items = answered(lambda: _items(analysis, uses), questions=5)
    except TooManyOperations as error:
        return str(error)
    if items is None:
        return "which work-item writes an element is no affine function of the element"
    sizes: dict[str, tuple[int, int]] = {}
    scalars: dict[str, int] = {}
    for k, each in enumerate(analysis.submissions[0].arguments):
        if isinstance(each, ArrayArgument):
            for dim, extent in enumerate(each.shape):
                sizes.setdefault(analysis.symbols.size(extent), (k, dim))
        elif (symbol := analysis.shapes[0].params.get(each.name)) is not None:
            scalars.setdefault(symbol, k)
    for name in sorted({name for aff in items for name in _symbols(aff)}):
        if name not in sizes and name not in scalars:
            return "which work-item writes an element depends on a size that no array has"
    return Writer(items, sizes, scalars)


def _symbols(aff: isl.Aff) -> list[str]:
    kind = isl.dim_type.param
    used = (k for k in range(aff.dim(kind)) if aff.involves_dims(kind, k, 1))
    return [name for k in used if (name := aff.get_dim_name(kind, k)) is not None]


def halo_of(
    analysis: ListAnalysis, written: int, read: int, partly: bool = False
) -> tuple[int, ...] | str:
    """Of a producer and a consumer: how many of the producer's work-items, in each of its
    dimensions, write what one of the consumer's reads of the memory of the arguments ``written``
    and ``read``; or why the consumer cannot compute them anew.  ``partly``: it may read elements
    that the producer leaves out."""
    group = analysis.place[0, written].group
    assert analysis.place[1, read].group == group
    try:
        return answered(lambda: _halo(analysis, group, partly), questions=5)
    except TooManyOperations as error:
        return str(error)


def _uses(analysis: ListAnalysis, submission: int, group: int) -> list[Use]:
    return [
        (submission, access)
        for access in analysis.accesses[submission].accesses
        if analysis.is_placed(submission, access, group)
    ]


def _items(analysis: ListAnalysis, uses: list[Use]) -> tuple[isl.Aff, ...] | None:
    """The ids of the work-item that touches an element, as functions of that."""
    each = [item_elements(analysis, use, "ids").reverse() for use in uses]
    items = hull(each)
    if are_few(each) or not items.is_single_valued():
        items = union(each)
    found: list[isl.Aff] = []
    for dim in range(items.dim(isl.dim_type.out)):
        value = items.dim_min(dim).coalesce()
        for _, piece in value.get_pieces():
            start = piece.floor()
            everywhere = isl.PwAff.from_aff(start).intersect_domain(value.domain())
            if analysis.proofs.is_empty(value.ne_set(everywhere)):
                found.append(start)
                break
        else:
            return None
    return tuple(found)


def _halo(analysis: ListAnalysis, group: int, partly: bool) -> tuple[int, ...] | str:
    producer, consumer = _uses(analysis, 0, group), _uses(analysis, 1, group)
    for _, access in consumer:
        if isinstance(access.node, Atomic) or access.kind == "write":
            return f"{access.span} changes it"
    for _, access in (*producer, *consumer):
        if access.indices is None:
            return f"the index at {access.span} is not affine, so its element is unknown"
    reason = None if partly else _left_out(analysis, producer, consumer)
    if reason is not None:
        return reason
    written = [item_elements(analysis, use, "ids").reverse() for use in producer]
    reads = [item_elements(analysis, use, "ids") for use in consumer]
    found = None
    if not are_few(written) or not are_few(reads):
        found = _bounded(analysis, hull(reads).apply_range(hull(written)))
    if found is None:
        relation = union(reads).apply_range(union(written))
        found = _bounded(analysis, relation) or _of_today(analysis, relation)
    return found or "its reads are at no bounded distance from each other"


def _bounded(analysis: ListAnalysis, relation: isl.Map) -> tuple[int, ...] | None:
    """As ``_extents``, whatever the sizes are, or where scalars are the sizes that they are
    today."""
    found, equal = _extents(analysis, relation), analysis.symbols.sizes_in_scalars
    if found is None and equal is not None:
        found = _extents(analysis, relation.intersect_params(equal))
        if found is not None:
            analysis.proofs.add([(equal, True)])
    return found


def _of_today(analysis: ListAnalysis, relation: isl.Map) -> tuple[int, ...] | None:
    """As ``_extents``, for the present values of scalars."""
    symbols = analysis.symbols
    scalars = {name for shape in analysis.shapes for name in shape.params.values()} - symbols.free
    present = symbols.at_today(frozenset(scalars))
    found = _extents(analysis, relation.intersect_params(present)) if scalars else None
    if found is not None:
        analysis.pinned |= scalars
    return found


def _extents(analysis: ListAnalysis, relation: isl.Map) -> tuple[int, ...] | None:
    """How many of what ``relation`` leads to belong to one, at most, in each dimension; None where
    that has no bound."""
    found = []
    for dim in range(relation.dim(isl.dim_type.out)):
        extent = _extent(analysis, _along(relation, dim))
        if extent is None:
            return None
        found.append(extent)
    return tuple(found)


def _left_out(
    analysis: ListAnalysis, producer: Sequence[Use], consumer: Sequence[Use]
) -> str | None:
    """Why the consumer may read what the producer leaves out; None if all that it reads is certain
    to be written."""
    written = [use for use in producer if use[1].kind == "write" and use[1].exact]
    if not written:
        return "no element is certain to be written"
    known = union([item_elements(analysis, use, "ids") for use in written]).range()
    for use in consumer:
        read = item_elements(analysis, use, "ids").range()
        if not analysis.proofs.is_empty(read.subtract(known)):
            return (
                f"the read at {use[1].span} is not certain to be of an element that is written: "
                "what is left out keeps what was there before"
            )
    return None


def reaches(analysis: ListAnalysis, written: int, read: int) -> bool:
    """Of a producer and a consumer: whether every element that the consumer reads of the memory of
    the arguments ``written`` and ``read`` is one that some work-item of the producer writes, or
    leaves out under a condition."""
    group = analysis.place[0, written].group
    assert analysis.place[1, read].group == group
    try:
        return answered(lambda: _reaches(analysis, group))
    except TooManyOperations:
        return False


def _reaches(analysis: ListAnalysis, group: int) -> bool:
    items = bounds_box(analysis.shapes[0].global_range, analysis.symbols)
    reached: isl.Set | None = None
    for _, access in _uses(analysis, 0, group):
        if access.kind == "read" or access.indices is None:
            continue
        elements: isl.Map | None = None
        for index in access.indices:
            one = isl.Map.from_pw_aff(index)
            elements = one if elements is None else elements.flat_range_product(one)
        assert elements is not None
        ndim = analysis.accesses[0].ndim
        loops = elements.dim(isl.dim_type.in_) - ndim
        elements = elements.project_out(isl.dim_type.in_, ndim, loops)
        own = elements.intersect_domain(items).range()
        reached = own if reached is None else reached.union(own)
    if reached is None:
        return False
    read = union([item_elements(analysis, use, "ids") for use in _uses(analysis, 1, group)])
    return analysis.proofs.is_empty(read.range().subtract(reached))


def _along(relation: isl.Map, dim: int) -> isl.Map:
    """To one dimension of what ``relation`` leads to."""
    kind = isl.dim_type.out
    behind = relation.project_out(kind, dim + 1, relation.dim(kind) - dim - 1)
    return behind.project_out(kind, 0, dim)


def _extent(analysis: ListAnalysis, items: isl.Map) -> int | None:
    """How far the last of each one's ``items``, numbers, is from the first, both included."""
    found = []
    pieces = items.dim_min(0).coalesce().get_pieces()
    before = set_of("{ [d] : d < 0 }")
    for _, piece in pieces:
        first = isl.PwAff.from_aff(piece.floor())
        # Of many pieces isl compares distances faster than the functions themselves.
        distance = items.sum(isl.Map.from_pw_aff(first.neg()))
        is_first = len(pieces) == 1 or analysis.proofs.is_empty(distance.intersect_range(before))
        if not is_first:
            continue
        largest = distance.range().dim_max_val(0)
        if largest.is_int():
            found.append(int(largest.to_python()) + 1)
    return min(found, default=None)


def replaces(analysis: ListAnalysis, written: int, again: int) -> bool:
    """Of two submissions that write the memory of the arguments ``written`` and ``again``: whether
    the second certainly writes all that the first may have written."""
    group = analysis.place[0, written].group
    assert analysis.place[1, again].group == group
    try:
        return answered(lambda: _replaces(analysis, group))
    except TooManyOperations:
        return False


def _replaces(analysis: ListAnalysis, group: int) -> bool:
    first, second = ([u for u in _uses(analysis, s, group) if u[1].kind == "write"] for s in (0, 1))
    if any(access.indices is None for _, access in first):
        return False
    certain = [use for use in second if use[1].exact and use[1].indices is not None]
    if not certain or not first:
        return not first
    before = union([item_elements(analysis, use, "ids") for use in first]).range()
    after = union([item_elements(analysis, use, "ids") for use in certain]).range()
    return analysis.proofs.is_empty(before.subtract(after))
