"""For which sizes and integer scalars of its members an answer serves.

The same as ``Validity.holds``, of the numbers of some submissions in a row, which takes a fraction
of the time: many answers are asked.  A submission may be asked about with each of many earlier ones
at once; then conditions that are affine are one product of matrices.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from fusionq.analysis.validity import Condition, Validity
from fusionq.analysis.validity_function import condition_function

LARGEST = 1 << 31
"""Beyond the numbers that are asked about in arrays."""

MOST_EXACT = 1 << 53
"""Integers up to there are exact as float64, which are multiplied many times as fast."""

FEWEST_AT_ONCE = 8
"""Submissions that are asked about at once; fewer are one by one sooner."""

NumberPlace = tuple[int, int | None, int | None]
"""A member, an argument (None: its range), and a dimension (None: a scalar's value)."""

_TERM = re.compile(r"(-?\d+) \* ([a-z]\w*)")


class Serving:
    """What a validity asks of the numbers of some submissions that have their ``place``."""

    def __init__(self, validity: Validity, place: Mapping[NumberPlace, int]) -> None:
        assert not validity.constants
        at = {
            name: [place[source.submission, source.argument, source.dim] for source in sources]
            for name, sources in validity.sources
        }
        self._first = {name: places[0] for name, places in at.items()}
        self._count = len(place)
        self._equal = [(places[0], other) for places in at.values() for other in places[1:]]
        self._pinned = [(self._first[name], value) for name, value in validity.pinned]
        self._limits = [(self._first[name], limit) for name, limit in validity.limits]
        self._conditions = validity.conditions
        self._functions = [
            (
                condition_function(c.text, c.names),
                [[self._first[name] for name in use] for use in c.uses],
            )
            for c in validity.conditions
        ]

    def holds(self, numbers: Sequence[int]) -> bool:
        """Whether the answer serves members with these ``numbers``."""
        for k, value in self._pinned:
            if numbers[k] != value:
                return False
        for k, other in self._equal:
            if numbers[k] != numbers[other]:
                return False
        for k, limit in self._limits:
            if abs(numbers[k]) > limit:
                return False
        for holds, uses in self._functions:
            for use in uses:
                if not holds(*[numbers[k] for k in use]):
                    return False
        return True

    def hold(self, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Whether it serves each of the members with the ``numbers`` of one row, below
        ``LARGEST``."""
        affine = self._affine if len(numbers) >= FEWEST_AT_ONCE else None
        if affine is None:
            return np.array([self.holds(row) for row in numbers.tolist()], bool)
        found = np.ones(len(numbers), bool)
        for k, value in self._pinned:
            found &= numbers[:, k] == value
        for k, other in self._equal:
            found &= numbers[:, k] == numbers[:, other]
        for k, limit in self._limits:
            if limit < LARGEST:
                found &= abs(numbers[:, k]) <= limit
        return found & affine(numbers) if self._conditions else found

    @cached_property
    def _affine(self) -> _Affine | None:
        """The conditions, where they are affine and no number of theirs is too large."""
        return _affine(self._conditions, self._first, self._count)


class _Affine:
    """Conditions whose constraints are the rows of a matrix, the constant last; conjunctions are
    rows that follow each other, conditions conjunctions of which one has to hold, or none."""

    def __init__(
        self,
        rows: Sequence[Sequence[int]],
        equalities: Sequence[bool],
        conjunctions: Sequence[int],
        conditions: Sequence[int],
        negated: Sequence[bool],
    ) -> None:
        self._factors = np.array([row[:-1] for row in rows], np.float64)
        self._constants = np.array([row[-1:] for row in rows], np.float64)
        self._equalities = np.array(equalities, bool)[:, None]
        self._conjunctions, self._conditions = conjunctions, conditions
        self._negated = np.array(negated, bool)[:, None]

    def __call__(self, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Whether all conditions hold of each row of ``numbers``."""
        values = self._factors @ numbers.T.astype(np.float64) + self._constants
        met = (values >= 0) & ~(self._equalities & (values > 0))
        whole = np.logical_and.reduceat(met, self._conjunctions, axis=0)
        one = np.logical_or.reduceat(whole, self._conditions, axis=0)
        found: np.ndarray[Any, Any] = (one ^ self._negated).all(axis=0)
        return found


def _affine(
    conditions: Sequence[Condition], place: Mapping[str, int], count: int
) -> _Affine | None:
    """``conditions`` on the numbers, so many, that names have their ``place`` among; None where
    they have quotients, or numbers that are too large."""
    rows: list[list[int]] = []
    equalities: list[bool] = []
    conjunctions: list[int] = []
    starts: list[int] = []
    negated: list[bool] = []
    for condition in conditions:
        text, is_negated = condition.text, condition.text.startswith("not (")
        if is_negated:
            text = text[len("not (") : -1]
        for use in condition.uses:
            of_name = {name: place[u] for name, u in zip(condition.names, use, strict=True)}
            starts.append(len(conjunctions))
            negated.append(is_negated)
            for conjunction in text.split(" or "):
                conjunctions.append(len(rows))
                for constraint in conjunction.strip("()").split(" and "):
                    row = _row(constraint, of_name, count)
                    if row is None:
                        return None
                    rows.append(row)
                    equalities.append(constraint.endswith("== 0"))
    return _Affine(rows, equalities, conjunctions, starts, negated)


def _row(constraint: str, place: Mapping[str, int], count: int) -> list[int] | None:
    """The factors of a constraint on ``count`` numbers, and its constant; None if it has another
    form, or numbers that are too large."""
    row = [0] * (count + 1)
    whole, compared, _ = constraint.partition(" >= 0" if ">=" in constraint else " == 0")
    if not compared or not constraint.endswith(compared):
        return None
    *terms, constant = whole.split(" + ")
    for term in terms:
        match = _TERM.fullmatch(term)
        if match is None:
            return None
        row[place[match[2]]] += int(match[1])
    row[-1] = int(constant)
    return row if sum(map(abs, row)) * LARGEST < MOST_EXACT else None
