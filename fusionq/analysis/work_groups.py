"""Work-group sizes under which dependences stay inside a work-group."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count, takewhile
from math import lcm, prod

import islpy as isl

from fusionq.analysis.isl_operations import PlanTooHard, TooManyOperations, answered
from fusionq.analysis.item_relations import same_group, to_space
from fusionq.analysis.item_space import ItemSpace, Mode, whole_range
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.proof import symbols_of
from fusionq.analysis.submission import Submission
from fusionq.base.frozen import dataclass
from fusionq.base.target import Target


@dataclass(frozen=True, slots=True)
class Tiles:
    """The tiles in which a dependence stays: for each dimension whether it leads to other
    work-items, and the extent of its tiles if it counts in constants (else 1)."""

    crosses: tuple[bool, ...]
    lengths: tuple[int, ...]


def candidates(
    tiles_of: Iterable[Tiles | None], space: ItemSpace, extents: Sequence[int], target: Target
) -> Iterator[tuple[int, ...]]:
    """Candidate work-group sizes for ``space``, in which dependences that stay in the tiles
    ``tiles_of`` (None: not known) have to stay inside work-groups: the user's if it is explicit;
    else those of the tiles in which work-items exchange, lines along the last dimension, squares,
    and last the whole range as one group."""
    if space.local_range is not None:
        yield space.local_range
        return
    ones = (1,) * (space.ndim - 1)
    lines = [(*ones, size) for size in _sizes(target)]
    squares = [(*ones[1:], side, side) for side in (16, 8, 32, 4) if ones]
    lengths = _common_lengths(tiles_of, space.ndim)
    tiles = [] if lengths is None else _tiles(lengths, extents, target)
    if lengths is not None and any(n > 1 for n in lengths):
        sizes = [*tiles, *lines, *squares]
    else:
        sizes = [*lines, *tiles, *squares]
    sizes.append(tuple(extents))
    for local in dict.fromkeys(_in_vectors(size, extents, target) for size in sizes):
        whole = all(size >= extent for size, extent in zip(local, extents, strict=True))
        most = target.largest_barrier_group if whole else target.largest_tile_group
        if 0 < prod(local) <= min(target.device.max_work_group_size, most):
            yield local


def _in_vectors(local: tuple[int, ...], extents: Sequence[int], target: Target) -> tuple[int, ...]:
    """``local`` with whole vectors in the last dimension if that is as long as the range's, as the
    compiler has no vector code for what is left over; and where there are several groups, no
    longer than that takes."""
    vector = target.vector_width
    *slower, last = local
    row = -(-extents[-1] // vector) * vector
    if extents[-1] == last > vector:
        return (*slower, row)
    several = any(size < extent for size, extent in zip(slower, extents, strict=False))
    return (*slower, row) if several and last > row else local


def _sizes(target: Target) -> list[int]:
    """Powers of two of work-items in a group, best first: the preferred, larger, smaller."""
    best = target.preferred_work_group
    larger = takewhile(lambda n: n <= target.largest_barrier_group, (best << k for k in count()))
    smaller = takewhile(lambda n: n > 1, (best >> k for k in count(1)))
    return [*larger, *smaller]


def _common_lengths(tiles_of: Iterable[Tiles | None], ndim: int) -> list[int] | None:
    """The extents of the tiles in which all dependences stay, if there are such: 1 where they lead
    to no other work-item, 0 where they do but count in no constant.  None if that is not known."""
    lengths, crosses = [1] * ndim, [False] * ndim
    for tiles in tiles_of:
        if tiles is None:
            return None
        for dim in range(ndim):
            crosses[dim] |= tiles.crosses[dim]
            lengths[dim] = lcm(lengths[dim], tiles.lengths[dim])
    return [
        1 if not other else length if length > 1 else 0
        for other, length in zip(crosses, lengths, strict=True)
    ]


def tiles_of(
    analysis: ListAnalysis, items: isl.Map, mode: Mode, pair: tuple[int, int] = (0, 1)
) -> Tiles | None:
    """The tiles in which a dependence stays if its two submissions, the ``pair`` of
    ``analysis.submissions``, meet in ``mode``; None if that is not known.  ``items``: from the
    producer's to the consumer's ids."""

    def tiles() -> Tiles:
        inside = _in_space(analysis, items, mode, pair)
        distances = inside.deltas()
        ndim = inside.dim(isl.dim_type.in_)
        lengths = [1] * ndim
        for dim, length in _periods(inside):
            lengths[dim] = lcm(lengths[dim], length)
        return Tiles(tuple(not _is_zero(distances, dim) for dim in range(ndim)), tuple(lengths))

    with suppress(TooManyOperations):
        return answered(tiles)
    return None


def _tiles(lengths: Sequence[int], extents: Sequence[int], target: Target) -> list[tuple[int, ...]]:
    """Work-groups that are tiles of ``lengths`` (0: that of the range): as many of them in the
    last dimension as the preferred work-group holds, of columns, which lie together in memory, as
    many as leave work-groups for all compute units; or one."""
    tile = [length or extent for length, extent in zip(lengths, extents, strict=True)]
    if 0 in tile:
        return []
    tiles = [tile]
    if prod(tile) > target.largest_barrier_group:  # a reversal counts in twice its tile's length
        tiles.insert(0, [n // 2 if n % 2 == 0 else n for n in tile])
    found = []
    wide = target.vector_width
    for *outer, last in tiles:
        size = prod(outer) * last
        many = target.preferred_work_group // size
        if last == 1 < size:
            groups = target.groups_per_compute_unit * target.device.compute_units
            share = min(max(extents[-1] // groups, wide), target.largest_tile_group // size)
            many = max(many, share // wide * wide)
        found += [(*outer, last * max(many, 1)), (*outer, last)]
    return found


def _is_zero(distances: isl.Set, dim: int) -> bool:
    """Whether all ``distances`` are 0 in a dimension."""
    least, greatest = distances.dim_min_val(dim), distances.dim_max_val(dim)
    return bool(least.is_zero() and greatest.is_zero())


def _periods(items: isl.Map) -> Iterator[tuple[int, int]]:
    """The dimensions of work-items that a relation divides by constants, with the constants."""
    ndim = items.dim(isl.dim_type.in_)
    for pairs in items.wrap().compute_divs().get_basic_sets():
        for position in range(pairs.dim(isl.dim_type.div)):
            quotient = pairs.get_div(position)
            length = int(quotient.get_denominator_val().to_python())
            for dim in range(2 * ndim):
                if quotient.involves_dims(isl.dim_type.in_, dim, 1):
                    yield dim % ndim, length


def stays_inside(
    analysis: ListAnalysis,
    items: isl.Map,
    mode: Mode,
    local: tuple[int, ...],
    pair: tuple[int, int] = (0, 1),
) -> bool:
    """Whether a dependence (see ``tiles_of``) stays inside work-groups of ``local``.

    One that leaves work-groups leaves those that they consist of, for the same sizes.
    """

    def inside() -> bool:
        readings = analysis.readings
        met = readings.canonical(_in_space(analysis, items, mode, pair))
        left = readings.groups_left.setdefault((analysis.symbols.alike, id(met)), [])
        about = analysis.symbols.alike, id(readings.canonical(items)), mode

        def stays(size: tuple[int, ...]) -> bool:
            find = partial(_stays, analysis, met, size, left, about)
            return analysis.once(("inside", id(met), size), find)

        larger = [groups for groups in left if _consist_of(groups, local)]
        return all(map(stays, (*larger, local)))

    with suppress(TooManyOperations):
        return answered(inside)
    return False


def _consist_of(groups: tuple[int, ...], others: tuple[int, ...]) -> bool:
    """Whether each of the work-groups ``groups`` is some of ``others``."""
    return all(large % small == 0 for large, small in zip(groups, others, strict=True))


def _stays(
    analysis: ListAnalysis,
    met: isl.Map,
    local: tuple[int, ...],
    left: list[tuple[int, ...]],
    about: Hashable,
) -> bool:
    """Whether ``met`` relates work-items of one work-group of ``local`` only; if it certainly
    relates others, these are added to those that it has ``left``.  Where it was too hard to say for
    which scalars that is so of the same relation with other sizes, it is asked for today's."""
    symbols, proofs, hard = analysis.symbols, analysis.proofs, analysis.readings.hard
    same, today = same_group(symbols, local), symbols.point
    scalars = symbols.scalars_of(symbols_of(met)) if about in hard else frozenset()
    if scalars:  # for others the answer would hold no more than it does so
        met = met.intersect_params(symbols.at_today(scalars))
        proofs.today |= scalars
    try:
        inside = answered(lambda: proofs.decide(met.subtract(same), scalars))
        if proofs.is_hard:
            hard.add(about)
        if not inside:
            left.append(local)
        return inside
    except PlanTooHard:
        raise
    except TooManyOperations:  # for all sizes
        if answered(lambda: not met.intersect_params(today).subtract(same).is_empty()):
            left.append(local)
        return False


def _in_space(analysis: ListAnalysis, items: isl.Map, mode: Mode, pair: tuple[int, int]) -> isl.Map:
    """From the producer's to the consumer's work-items, where submissions meet in ``mode``."""
    producer, consumer = (analysis.submissions[s] for s in pair)
    from_producer, pins_p = to_space(producer, analysis.symbols, mode)
    from_consumer, pins_c = to_space(consumer, analysis.symbols, mode)
    analysis.pinned |= pins_p | pins_c
    return items.apply_domain(from_producer).apply_range(from_consumer)


def group_count(extents: Sequence[int], local_range: Sequence[int]) -> int:
    """The work-groups that cover ``extents``."""
    return prod(-(-n // size) for n, size in zip(extents, local_range, strict=True))


def largest_extents(submissions: Sequence[Submission], space: ItemSpace) -> tuple[int, ...]:
    """The extents of the index space that holds all of ``submissions``."""
    whole = whole_range(submissions, range(len(submissions)), space.mode)
    return (whole.size,) if space.mode == "linear" else tuple(whole)
