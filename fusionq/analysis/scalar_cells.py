"""Cells of parameters: the values on today's side of some constraints.

A kernel that asks a scalar for its sign or its phase (``if forward > 0``) has relations with parts
for each answer.  Of the scalars' values that are on today's side of all such constraints all parts
but one are empty: what is asked of the whole may be too hard to write down for all values, while
what is asked of that part is not.  Where that is too hard, too, one constraint of each part, which
today's values do not meet, says for which others the part is empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

import islpy as isl

from fusionq.analysis.isl_texts import set_of
from fusionq.base.frozen import dataclass

MOST_PARTS = 256
"""Parts of sets whose constraints are read: isl counts no operations for that, and what has more
is too hard to write down in any case."""


def cell_of(
    sets: Iterable[isl.Set], scalars: Collection[str], today: Mapping[str, int]
) -> isl.Set | None:
    """The parameter values on today's side of each constraint of ``sets`` that involves ``scalars``
    alone; None if no constraint does, or the sets have too many parts.

    ``today``: the values of all parameters.
    """
    sets = tuple(sets)
    if sum(values.n_basic_set() for values in sets) > MOST_PARTS:
        return None
    sides = {
        side.text: None
        for values in sets
        for part in values.get_basic_sets()
        for side in _sides(part, _names(values), today)
        if side.names <= frozenset(scalars)
    }
    return _cell(today, sides) if sides else None


def cell_outside(
    values: isl.Set, scalars: Collection[str], today: Mapping[str, int]
) -> isl.Set | None:
    """Parameter values outside of ``values``, a parameter set, with today's among them: those on
    today's side of a constraint of each part.  None where a part has no such constraint without
    quotients that today's values do not meet, or there are too many parts.

    Constraints on ``scalars`` alone come first, so that the values serve all sizes, and those that
    many parts have.
    """
    if values.n_basic_set() > MOST_PARTS:
        return None
    names = _names(values)
    left: list[list[_Side]] = []
    for part in values.get_basic_sets():
        left.append([s for s in _sides(part.remove_divs(), names, today) if not s.is_met])
        if not left[-1]:
            return None
    chosen: dict[str, None] = {}
    while left:
        parts = Counter(side for sides in left for side in sides)
        best = max(parts, key=lambda side: (side.names <= frozenset(scalars), parts[side]))
        chosen[best.text] = None
        left = [sides for sides in left if best not in sides]
    return _cell(today, chosen)


@dataclass(frozen=True, slots=True)
class _Side:
    """The text of today's side of a constraint, the parameters that it involves, and whether
    today's values meet it."""

    text: str
    names: frozenset[str]
    is_met: bool


def _sides(part: isl.BasicSet, names: list[str], today: Mapping[str, int]) -> Iterator[_Side]:
    """Those of the constraints of ``part`` on parameters, which have these ``names``, alone."""
    kind = isl.dim_type.param
    for constraint in part.get_constraints():
        used = [k for k in range(len(names)) if constraint.involves_dims(kind, k, 1)]
        others = isl.dim_type.set, isl.dim_type.div
        if not used or any(constraint.involves_dims(t, 0, constraint.dim(t)) for t in others):
            continue
        terms = [
            (int(constraint.get_coefficient_val(kind, k).to_python()), names[k]) for k in used
        ]
        constant = int(constraint.get_constant_val().to_python())
        value = constant + sum(factor * today[name] for factor, name in terms)
        text = " + ".join([*(f"{factor} * {name}" for factor, name in terms), str(constant)])
        is_met = value >= 0
        if constraint.is_equality():
            is_met = value == 0
            text += " < 0" if value < 0 else " > 0" if value else " = 0"
        else:
            text += " >= 0" if is_met else " < 0"
        yield _Side(text, frozenset(names[k] for k in used), is_met)


def _names(values: isl.Set) -> list[str]:
    """The names of the parameters."""
    kind = isl.dim_type.param
    return [str(values.get_dim_name(kind, k)) for k in range(values.dim(kind))]


def _cell(names: Iterable[str], sides: Iterable[str]) -> isl.Set:
    return set_of(f"[{', '.join(names)}] -> {{ : {' and '.join(sides) or '1 = 1'} }}")
