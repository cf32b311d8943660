"""The box of an earlier stage's work-items that a tile waits for, as expressions.

A tile holds the work-items from ``first`` to ``last``.  With both as parameters of the integer
set of what its work-items depend on, the set's constraints are the bounds: no table, and one form
for every size of range and tile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import itemgetter

import islpy as isl

from fusionq.analysis.proof import TooManyOperations, answered
from fusionq.analysis.stage_relations import Relation
from fusionq.ir.nodes import Binary, Call, Const, Expr, ItemQuery
from fusionq.ir.types import INT64

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


def tile_bounds(
    relation: Relation, context: isl.Set, symbol: Callable[[str], Expr]
) -> Bounds | None:
    """The smallest box that isl finds around the work-items that a tile depends on, in terms of
    the tile's first and last work-item and of ``symbol``; None if a tile may depend on any, or that
    takes too many operations.

    ``context`` holds what is known of the parameters.
    """
    if not relation.exact:
        return None

    def bounds() -> Bounds | None:
        needed = needed_items(relation, context)
        ndim = needed.dim(isl.dim_type.set)
        found: list[tuple[Expr, Expr]] = []
        varies = False
        for d in range(ndim):
            others = needed.project_out(isl.dim_type.set, d + 1, ndim - d - 1)
            one = others.project_out(isl.dim_type.set, 0, d)
            first, last, depends = _interval(one, symbol)
            if first is None or last is None:
                return None
            found.append((first, last))
            varies = varies or depends
        return tuple(found) if varies else None

    try:
        return answered(bounds, questions=4)
    except TooManyOperations:
        return None


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
    return isl.Set(f"[{parameters}] -> {{ [{', '.join(names)}] : {inside} }}")


def _interval(
    items: isl.Set, symbol: Callable[[str], Expr]
) -> tuple[Expr | None, Expr | None, bool]:
    """Bounds of a one-dimensional set, and whether they depend on the tile."""
    if any(s.dim(isl.dim_type.div) > MOST_EXISTENTIALS for s in items.get_basic_sets()):
        return None, None, False
    lower: list[_Candidate] = []
    upper: list[_Candidate] = []
    hull = items.remove_divs().coalesce().simple_hull()
    for constraint in hull.get_constraints():
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
