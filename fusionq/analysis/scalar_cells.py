"""Cells of integer scalars: the values on today's side of each constraint on scalars alone.

A kernel that asks a scalar for its sign or its phase (``if forward > 0``) has relations with parts
for each answer.  Of the scalars' values that are on today's side of all such constraints all parts
but one are empty: what is asked of the whole may be too hard to write down for all values, while
what is asked of that part is not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import islpy as isl

from fusionq.analysis.isl_texts import set_of

MOST_PARTS = 256
"""Parts of sets whose constraints are read: isl counts no operations for that, and what has more
is too hard to write down in any case."""


def cell_of(
    sets: Iterable[isl.Set], scalars: Collection[str], today: Mapping[str, int]
) -> isl.Set | None:
    """The parameter values on today's side of each constraint of ``sets``, of the same parameters,
    that involves ``scalars`` alone; None if no constraint does, or the sets have too many parts.

    ``today``: the values of all parameters.
    """
    kind = isl.dim_type.param
    sets = tuple(sets)
    if sum(values.n_basic_set() for values in sets) > MOST_PARTS:
        return None
    sides: dict[str, None] = {}
    names: list[str] = []
    for values in sets:
        names = [str(values.get_dim_name(kind, k)) for k in range(values.dim(kind))]
        for part in values.get_basic_sets():
            for constraint in part.get_constraints():
                side = _side(constraint, names, scalars, today)
                if side is not None:
                    sides[side] = None
    if not sides:
        return None
    return set_of(f"[{', '.join(names)}] -> {{ : {' and '.join(sides)} }}")


def _side(
    constraint: isl.Constraint,
    names: list[str],
    scalars: Collection[str],
    today: Mapping[str, int],
) -> str | None:
    """The text of today's side of a ``constraint``; None if it is about more than ``scalars``."""
    kind = isl.dim_type.param
    used = [k for k in range(len(names)) if constraint.involves_dims(kind, k, 1)]
    if not used or any(names[k] not in scalars for k in used):
        return None
    others = isl.dim_type.set, isl.dim_type.div
    if any(constraint.involves_dims(t, 0, constraint.dim(t)) for t in others):
        return None
    terms = [(int(constraint.get_coefficient_val(kind, k).to_python()), names[k]) for k in used]
    constant = int(constraint.get_constant_val().to_python())
    value = constant + sum(factor * today[name] for factor, name in terms)
    text = " + ".join([*(f"{factor} * {name}" for factor, name in terms), str(constant)])
    if value < 0:
        return f"{text} < 0"
    if not constraint.is_equality():
        return f"{text} >= 0"
    return f"{text} > 0" if value else f"{text} = 0"
