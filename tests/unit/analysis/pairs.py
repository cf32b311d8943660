"""The dependences of a list, with nothing left out that follows from others."""

from __future__ import annotations

from functools import partial
from itertools import combinations

from fusionq.analysis.dependence import (
    Between,
    PairScope,
    Unions,
    accesses_of,
    between,
    dependences_between,
)
from fusionq.analysis.list_analysis import ListAnalysis


def dependences(analysis: ListAnalysis) -> tuple[PairScope, ...]:
    """Of every two submissions."""
    unions = Unions()
    found: list[PairScope] = []
    for producer, consumer in combinations(range(len(analysis.submissions)), 2):
        first, second = (accesses_of(analysis, s) for s in (producer, consumer))
        compare = partial(_compared, analysis, producer, consumer)
        found += dependences_between(producer, consumer, first, second, compare, unions)
    return tuple(found)


def _compared(analysis: ListAnalysis, producer: int, consumer: int, a: int, b: int) -> Between:
    return between(analysis, producer, a, consumer, b)
