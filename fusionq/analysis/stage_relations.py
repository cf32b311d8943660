"""Which work-items of an earlier stage have to be done before a work-item of a later one."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import chain

import islpy as isl

from fusionq.analysis.isl_operations import (
    OPERATIONS_FOR_OTHERS,
    TooManyOperations,
    answered,
    found_within,
)
from fusionq.analysis.isl_texts import map_of, set_of
from fusionq.analysis.item_relations import same_group, to_space
from fusionq.analysis.item_space import Mode, global_range, whole_range
from fusionq.analysis.kernel_accesses import Access, item_dims
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.proof import Proofs, symbols_of
from fusionq.analysis.scalar_cells import cell_of
from fusionq.analysis.submission import Submission
from fusionq.analysis.symbols import Symbols
from fusionq.base.frozen import dataclass
from fusionq.ir.walk import waits_in_groups
from fusionq.language.ranges import NdRange

MOST_PAIRS = 1024
"""Pairs of accesses whose relations are put together.  Stages of more, of a hundred submissions
each, have relations of thousands of parts: work-items then wait for all of the earlier stage."""


@dataclass(frozen=True, slots=True)
class StageItems:
    """Submissions that run as one kernel over one index space, with that space's extents."""

    members: tuple[int, ...]
    mode: Mode
    extents: tuple[int, ...]


def stage_items(
    submissions: Sequence[Submission], members: Sequence[int], mode: Mode
) -> StageItems:
    """The stage of ``members``; its range is that of the largest of them."""
    whole = whole_range(submissions, members, mode)
    extents = (whole.size,) if mode == "linear" else tuple(whole)
    return StageItems(tuple(members), mode, extents)


@dataclass(frozen=True, eq=False)
class Relation:
    """Work-items of a later stage to those of an earlier one that touch the same element, one of
    the two writing it.  ``exact`` is False where that is not known: then it relates all to all."""

    items: isl.Map
    exact: bool


def relation_between(
    analysis: ListAnalysis, first: StageItems, second: StageItems
) -> Relation | None:
    """The relation from the work-items of the ``second`` of two stages to those of the ``first``;
    None if they need not wait for each other, whatever the sizes."""
    pairs = _pairs(analysis, first, second)
    if len(pairs) > MOST_PAIRS:
        return _everything(analysis, first, second)
    try:
        return answered(lambda: _relation(analysis, first, second, pairs), 1 + len(pairs))
    except TooManyOperations:
        return _everything(analysis, first, second)


def is_implied(
    proofs: Proofs,
    needed: isl.Map,
    ways: Sequence[tuple[isl.Map, isl.Map]],
    numbering: Collection[Collection[str]] = (),
) -> bool:
    """Whether work-items that wait for those they have the first relation to of each of ``ways``,
    which waited for those of its second, need not wait for those of the ``needed`` one, whatever
    the sizes and scalars are; or, where the relations depend on scalars, for those in today's order
    or as far apart as today's, or for today's, and for sizes that the ``proofs`` say: what rests on
    these then serves no others.  ``numbering``: the scalars, by what they number, as steps or
    rows; order and distance are those of scalars that number the same."""
    symbols = proofs.symbols

    def sides(values: isl.Set) -> tuple[isl.Map, isl.Map]:
        reached = [
            near.intersect_params(values).apply_range(far.intersect_params(values))
            for near, far in ways
        ]
        return needed.intersect_params(values), reduce(isl.Map.union, reached)

    def implied(values: isl.Set) -> bool:
        here, reached = sides(values)
        return bool(here.is_subset(reached))

    def left(values: isl.Set) -> isl.Map:
        here, reached = sides(values)
        return here.subtract(reached)

    try:  # Where strides are composed, today's sizes take a fortieth of the time of all sizes.
        if not answered(lambda: implied(symbols.point), len(ways)):
            return False
        relations = needed, *chain.from_iterable(ways)
        scalars = symbols.scalars_of(frozenset().union(*map(symbols_of, relations)))
        if not scalars:
            return answered(lambda: implied(symbols.context), len(ways))
        if proofs.holds_for_others(lambda: implied(symbols.context)):
            return True
        for cell, is_narrow in _cells(symbols, relations, scalars, numbering):
            alike = symbols.context.intersect(cell)
            if proofs.holds_for_others(partial(implied, alike)) or (
                is_narrow and proofs.is_empty_for_others(partial(left, alike))
            ):
                proofs.add([(cell, True)])
                return True
        sizes = symbols.context.intersect(symbols.at_today(scalars))
        found = answered(lambda: implied(sizes), len(ways)) or proofs.is_empty_for_others(
            lambda: left(sizes)
        )
        if found:
            proofs.demand_today(scalars)
        return found
    except TooManyOperations:
        return False


def _cells(
    symbols: Symbols,
    relations: Iterable[isl.Map],
    scalars: frozenset[str],
    numbering: Collection[Collection[str]],
) -> Iterator[tuple[isl.Set, bool]]:
    """Parameter values, today's among them, for which ``scalars`` are alike in ``relations``, the
    most first; whether they are as far apart as today."""
    every = sorted(scalars)
    groups = [used for names in numbering if len(used := scalars.intersection(names)) > 1]
    groups = groups or [scalars]
    sides = found_within(
        OPERATIONS_FOR_OTHERS,
        lambda: cell_of([relation.wrap() for relation in relations], every, symbols.values),
    )
    if sides is not None or len(every) > 1:
        ordered, apart = symbols.ordered_as_today(groups), symbols.apart_as_today(groups)
        yield ordered if sides is None else ordered.intersect(sides), False
        if len(every) > 1:
            yield apart if sides is None else apart.intersect(sides), True
    if len(every) > 1 and groups != [scalars]:
        yield symbols.apart_as_today([scalars]), True


def tile_context(analysis: ListAnalysis, stage: StageItems) -> isl.Set:
    """What holds for the parameters of a tile of ``stage``: sizes are positive, and the tile has
    work-items, all inside the range."""
    names = item_dims(len(stage.extents))
    first = ", ".join(f"first_{d}" for d in range(len(names)))
    last = ", ".join(f"last_{d}" for d in range(len(names)))
    ordered = " and ".join(f"first_{d} <= last_{d}" for d in range(len(names)))
    space = all_items(analysis, stage)
    result = set_of(f"[{first}, {last}] -> {{ : {ordered} }}")
    for end, ends in (("first", first), ("last", last)):
        equal = " and ".join(f"{name} = {end}_{d}" for d, name in enumerate(names))
        corner = map_of(f"[{ends}] -> {{ [{', '.join(names)}] -> [] : {equal} }}")
        result = result.intersect(space.apply(corner).params())
    return result.intersect(analysis.symbols.context)


def all_items(analysis: ListAnalysis, stage: StageItems) -> isl.Set:
    """All work-items of a stage."""
    symbols = analysis.symbols
    names = item_dims(len(stage.extents))
    inside = []
    for name, extent in zip(names, stage.extents, strict=True):
        known = symbols.known_size(extent)
        if known is None:  # a product of extents
            ranges = [global_range(analysis.submissions[s]) for s in stage.members]
            analysis.pinned.update(symbols.size(e) for range_ in ranges for e in range_)
        inside.append(f"0 <= {name} < {extent if known is None else known}")
    return set_of(
        f"[{', '.join(symbols.names)}] -> {{ [{', '.join(names)}] : {' and '.join(inside)} }}"
    )


Pair = tuple[int, Access, int, Access]
"""Accesses of an earlier and a later stage, each with its submission."""


def _relation(
    analysis: ListAnalysis, first: StageItems, second: StageItems, pairs: Sequence[Pair]
) -> Relation | None:
    union: isl.Map | None = None
    for pair in pairs:
        _, a, _, b = pair
        if a.instances.is_empty() or b.instances.is_empty():
            continue
        one = _items(analysis, first, second, pair)
        if one is None:
            return _everything(analysis, first, second)
        union = one if union is None else union.union(one)
    if union is None or union.is_empty():
        return None
    if analysis.pinned:
        # Kernels are read for these symbols' present values only.  Of a size beside a scalar of its
        # value, such as a grid's width that is an argument, too, nothing else is to be expected.
        symbols = analysis.symbols
        analysis.pinned |= symbols.sizes_like(analysis.pinned)
        union = union.intersect_params(symbols.at_today(frozenset(analysis.pinned)))
    return Relation(union.coalesce(), True)


def _pairs(analysis: ListAnalysis, first: StageItems, second: StageItems) -> list[Pair]:
    """The accesses to the same memory of which one writes, each pair of equal ones once."""
    after = _by_group(analysis, second)
    return [
        (p, a, c, b)
        for group, before in _by_group(analysis, first).items()
        for p, a in before
        for c, b in after.get(group, ())
        if not a.kind == b.kind == "read"
    ]


def _by_group(
    analysis: ListAnalysis, stage: StageItems
) -> dict[int, Collection[tuple[int, Access]]]:
    """The accesses of a stage, each with its submission, by alias group; one of those that are
    equal: of one kernel over the same sizes, to one view."""
    different: dict[int, dict[Hashable, tuple[int, Access]]] = {}
    for s in stage.members:
        for access in analysis.accesses[s].accesses:
            place = analysis.shares(s, access)
            known = different.setdefault(place.group, {})
            known.setdefault((id(access), place.view), (s, access))
    return {group: known.values() for group, known in different.items()}


def _items(
    analysis: ListAnalysis, first: StageItems, second: StageItems, pair: Pair
) -> isl.Map | None:
    p, a, c, b = pair
    from_a, from_b = _elements(analysis, first, p, a), _elements(analysis, second, c, b)
    if from_a is None or from_b is None:
        return None
    to_a, pins_a = to_space(analysis.submissions[p], analysis.symbols, first.mode)
    to_b, pins_b = to_space(analysis.submissions[c], analysis.symbols, second.mode)
    analysis.pinned |= pins_a | pins_b
    items = from_b.apply_range(from_a.reverse())
    return items.apply_domain(to_b).apply_range(to_a)


def _elements(
    analysis: ListAnalysis, stage: StageItems, submission: int, access: Access
) -> isl.Map | None:
    """Work-item ids of a submission to elements; where work-items of the stage wait for each other,
    to those of their work-group, which runs as a whole: loops with strides touch all between."""
    elements = analysis.item_elements(submission, access)
    space = analysis.submissions[submission].range
    if elements is None or not isinstance(space, NdRange) or not any(
        waits_in_groups(analysis.submissions[s].ir) for s in stage.members
    ):
        return elements
    return same_group(analysis.symbols, tuple(space.local_range)).apply_range(elements).coalesce()


def _everything(analysis: ListAnalysis, first: StageItems, second: StageItems) -> Relation:
    domain, range_ = all_items(analysis, second), all_items(analysis, first)
    return Relation(isl.Map.from_domain_and_range(domain, range_), False)
