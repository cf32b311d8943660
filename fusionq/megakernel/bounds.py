"""The boxes of an earlier stage's work-items that a tile waits for, as expressions.

A tile holds the work-items from ``first`` to ``last``.  With both as parameters of the integer
set of what its work-items depend on, the set's constraints are the bounds: no table, and one form
for every size of range and tile.  Of a periodic array the first rows depend on the last ones: such
a set has parts that are far apart, and a box for each, since one around both would be all of the
array.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from itertools import chain, combinations
from operator import itemgetter
from typing import TypeVar

import islpy as isl

from fusionq.analysis.isl_operations import TooManyOperations, answered
from fusionq.analysis.isl_texts import map_of, set_of
from fusionq.analysis.stage_relations import Relation
from fusionq.ir.nodes import Binary, Call, Const, Expr, ItemQuery
from fusionq.ir.types import INT64

T = TypeVar("T")

Bounds = tuple[tuple[Expr, Expr], ...]
"""First and last work-item, inclusive, in each dimension."""

MOST_TERMS = 4
"""Bounds with more terms than that cost more than the exactness is worth.  Those of fewest
parameters are kept: where a range's extent is another symbol than the array's, what follows from
both bounds an item by the tile in the other dimensions, too, as ``2 * size - first_1 - 3``."""


MOST_EXISTENTIALS = 8
"""Existentially quantified variables of a set for which bounds are looked for.  isl eliminates them
one by one (Fourier-Motzkin), which squares the number of constraints each time: up to seven of them
take milliseconds, ten took seconds to hours, without an operation that isl counts."""

FEW_VALUES = 3
"""An existentially quantified variable is taken apart where it has no more values."""

APART = 64
"""Rows: what a tile depends on is split where parts of it are farther from each other than the tile
is long and so many more.  Neighbours are nearer."""

MOST_PARTS = 8
"""Basic sets of such a dependence up to which it is looked at."""


def tile_boxes(
    relation: Relation, context: isl.Set, symbol: Callable[[str], Expr]
) -> tuple[Bounds, ...] | None:
    """The smallest box that isl finds around the work-items that a tile depends on, in terms of
    the tile's first and last work-item and of ``symbol``, or one around each of their parts that
    are far apart in the first dimension; None if a tile may depend on any, or that takes too many
    operations.

    ``context`` holds what is known of the parameters.
    """
    if not relation.exact:
        return None
    parts = _unless_too_hard(lambda: _parts(needed_items(relation, context), context))
    if parts is not None and len(parts) > 1:
        boxes = [_unless_too_hard(partial(_box, part, symbol, of_all=True)) for part in parts]
        found = [box[0] for box in boxes if box is not None]
        if len(found) == len(parts):
            return tuple(dict.fromkeys(found))
    whole = _unless_too_hard(lambda: _box(needed_items(relation, context), symbol))
    return (whole[0],) if whole is not None and whole[1] else None


def _unless_too_hard(question: Callable[[], T]) -> T | None:
    try:
        return answered(question, questions=4)
    except TooManyOperations:
        return None


def _box(
    items: isl.Set, symbol: Callable[[str], Expr], of_all: bool = False
) -> tuple[Bounds, bool] | None:
    """Bounds of a set in each dimension, with those for all tiles together if ``of_all``, and
    whether they depend on the tile; None if it has none in some."""
    ndim = items.dim(isl.dim_type.set)
    found: list[tuple[Expr, Expr]] = []
    varies = False
    for d in range(ndim):
        first, last, depends = _interval(_projected(items, d), symbol, of_all)
        if first is None or last is None:
            return None
        found.append((first, last))
        varies = varies or depends
    return tuple(found), varies


def _projected(items: isl.Set, dim: int) -> isl.Set:
    others = items.project_out(isl.dim_type.set, dim + 1, items.dim(isl.dim_type.set) - dim - 1)
    return others.project_out(isl.dim_type.set, 0, dim)


def _parts(items: isl.Set, context: isl.Set) -> list[isl.Set]:
    """``items``, in parts that are far from each other in the first dimension, but not in
    themselves; as they are where there are no such."""
    rows = _without_existentials(_projected(items, 0))
    if rows is None:
        return [items]
    pieces = rows.get_basic_sets()
    if not 1 < len(pieces) <= MOST_PARTS:
        return [items]
    # A box is there for all tiles, also those that depend on nothing in it.
    where = [
        isl.Set.from_basic_set(p.drop_constraints_not_involving_dims(isl.dim_type.set, 0, 1))
        for p in pieces
    ]
    if any(_are_apart(piece, piece, context) for piece in where):
        return [items]
    apart: set[tuple[int, int]] = set()
    parts: list[list[int]] = []
    """The pieces of each, in order."""
    for k, piece in enumerate(where):
        apart.update((j, k) for j in range(k) if _are_apart(where[j], piece, context))
        near = [part for part in parts if not any((j, k) in apart for j in part)]
        parts = [part for part in parts if part not in near]
        parts.append([k, *chain.from_iterable(near)])
    pairs = chain.from_iterable(combinations(sorted(part), 2) for part in parts)
    if len(parts) == 1 or not apart.isdisjoint(pairs):
        return [items]
    if not _are_apart(rows, rows, context):
        return [items]
    others = items.dim(isl.dim_type.set) - 1
    return [
        items.intersect(
            reduce(isl.Set.union, [where[k] for k in part]).add_dims(isl.dim_type.set, others)
        )
        for part in parts
    ]


def _are_apart(some: isl.Set, others: isl.Set, context: isl.Set) -> bool:
    """Whether for some sizes and some tile a row of ``some`` is far from one of ``others``."""
    both = isl.Map.from_domain_and_range(some, others).intersect_params(context)
    if not both.intersect(_far("a - b")).is_empty():
        return True
    return some is not others and not both.intersect(_far("b - a")).is_empty()


def _far(distance: str) -> isl.Map:
    """The rows ``a`` and ``b`` of which the ``distance`` is that large."""
    text = f"[first_0, last_0] -> {{ [a] -> [b] : {distance} > last_0 - first_0 + {APART} }}"
    return map_of(text)


def _of_all_tiles(items: isl.Set) -> isl.Set:
    """What ``items`` are for all tiles together."""
    for position in reversed(range(items.dim(isl.dim_type.param))):
        name = items.get_dim_name(isl.dim_type.param, position) or ""
        if name.startswith(("first_", "last_")):
            items = items.project_out(isl.dim_type.param, position, 1)
    return items


def needed_items(relation: Relation, context: isl.Set) -> isl.Set:
    """What a tile depends on, with its first and last work-item as parameters."""
    items = relation.items
    ndim = items.dim(isl.dim_type.in_)
    return items.intersect_domain(tile(ndim)).intersect_params(context).range()


def tile(ndim: int) -> isl.Set:
    """The work-items of a tile, in terms of parameters ``first_0``, ``last_0``, …"""
    names = [f"i{d}" for d in range(ndim)]
    parameters = ", ".join(f"first_{d}, last_{d}" for d in range(ndim))
    inside = " and ".join(f"first_{d} <= {name} <= last_{d}" for d, name in enumerate(names))
    return set_of(f"[{parameters}] -> {{ [{', '.join(names)}] : {inside} }}")


def _interval(
    items: isl.Set, symbol: Callable[[str], Expr], of_all: bool
) -> tuple[Expr | None, Expr | None, bool]:
    """Bounds of a one-dimensional set, and whether they depend on the tile."""
    lower: list[_Candidate] = []
    upper: list[_Candidate] = []
    constraints: list[isl.Constraint] = []
    for each in (items, _of_all_tiles(items)) if of_all else (items,):
        plain = _without_existentials(each)
        if plain is None:
            return None, None, False
        constraints += plain.simple_hull().get_constraints()
    for constraint in constraints:
        aff = constraint.get_aff()
        factor = int(aff.get_coefficient_val(isl.dim_type.in_, 0).to_python())
        if factor == 0:
            continue
        parameters = _parameters(aff)
        of_tile = any(name.startswith(("first_", "last_")) for name in parameters)
        for sign in (1, -1) if constraint.is_equality() else (1,):
            bound = _bound(aff, sign, factor * sign, symbol)
            side = lower if factor * sign > 0 else upper
            side.append((len(parameters), not of_tile, bound))
    varies = any(not of_sizes for _, of_sizes, _ in (*lower, *upper))
    return _combined("maximum", lower), _combined("minimum", upper), varies


def _without_existentials(items: isl.Set) -> isl.Set | None:
    """A set around ``items`` that needs no existentials; None where they have too many."""
    pieces = items.get_basic_sets()
    most = max([piece.dim(isl.dim_type.div) for piece in pieces], default=0)
    if most > MOST_EXISTENTIALS:
        return None
    if most:
        items = reduce(isl.Set.union, map(_by_values, pieces))
    return items.remove_divs().coalesce()


def _by_values(piece: isl.BasicSet) -> isl.Set:
    """``piece`` in parts, one for each of the values of existentials that have few: quotients of
    ids that are remainders, such as neighbours' on a torus, are one of two or three numbers."""
    count = piece.dim(isl.dim_type.div)
    if count == 0:
        return isl.Set.from_basic_set(piece)
    items = isl.Map.from_basic_map(piece.lift().unwrap())
    numbers = items.range()
    for d in range(count):
        low, high = numbers.dim_min_val(d), numbers.dim_max_val(d)
        if low.is_int() and high.is_int() and high.sub(low).to_python() < FEW_VALUES:
            values = range(int(low.to_python()), int(high.to_python()) + 1)
            parts = [items.fix_val(isl.dim_type.out, d, isl.Val(value)) for value in values]
            items = reduce(isl.Map.union, parts)
    return items.domain()


_Candidate = tuple[int, bool, Expr]
"""A bound, before it the number of its parameters, and whether none is of the tile."""


def _combined(function: str, found: list[_Candidate]) -> Expr | None:
    """The bounds that are kept, those of the tile first."""
    kept = sorted(dict.fromkeys(found), key=itemgetter(0))[:MOST_TERMS]
    bounds = dict.fromkeys(bound for _, _, bound in sorted(kept, key=itemgetter(1)))
    if not bounds:
        return None
    return reduce(lambda a, b: Call(INT64, function, (a, b)), bounds)


def _parameters(aff: isl.Aff) -> list[str]:
    """The parameters of which ``aff`` is made."""
    return [
        aff.get_dim_name(isl.dim_type.param, p) or ""
        for p in range(aff.dim(isl.dim_type.param))
        if not aff.get_coefficient_val(isl.dim_type.param, p).is_zero()
    ]


def _bound(aff: isl.Aff, sign: int, step: int, symbol: Callable[[str], Expr]) -> Expr:
    """The bound from ``step * item + rest >= 0``: ``ceil(-rest / step)`` from below,
    ``floor(rest / -step)`` from above."""
    flip = -sign if step > 0 else sign
    terms: list[Expr] = []
    for p in range(aff.dim(isl.dim_type.param)):
        factor = flip * int(aff.get_coefficient_val(isl.dim_type.param, p).to_python())
        if factor:
            name = aff.get_dim_name(isl.dim_type.param, p)
            assert name is not None
            value = _parameter(name, symbol)
            terms.append(
                value if factor == 1 else Binary(INT64, "mul", Const(INT64, factor), value)
            )
    constant = flip * int(aff.get_constant_val().to_python()) + max(step - 1, 0)
    if constant or not terms:
        terms.append(Const(INT64, constant))
    total = reduce(lambda a, b: Binary(INT64, "add", a, b), terms)
    if abs(step) == 1:
        return total
    return Binary(INT64, "floordiv", total, Const(INT64, abs(step)))


def _parameter(name: str, symbol: Callable[[str], Expr]) -> Expr:
    kind, _, dim = name.partition("_")
    if dim and kind == "first":
        return ItemQuery("tile_first", int(dim))
    if dim and kind == "last":
        return ItemQuery("tile_last", int(dim))
    return symbol(name)
