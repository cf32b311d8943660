"""What contradicts a claim about a kernel today, and for which other sizes the answer holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import islpy as isl

from fusionq.analysis.isl_operations import TooManyOperations, answered
from fusionq.analysis.list_analysis import ListAnalysis

Relation = TypeVar("Relation", isl.Set, isl.Map)


def counterexamples(
    analysis: ListAnalysis, relation: Callable[[isl.Set], Relation]
) -> Relation | None:
    """What ``relation`` makes of today's parameter values, or None if that is empty.

    ``relation`` is restricted to the parameter values that it is given.  That it is empty is
    remembered among the proofs, for all values for which it is; where that takes too many
    operations, for today's values only.  What cannot be decided for these either counts as empty:
    nothing is known to contradict.
    """
    symbols = analysis.symbols
    try:
        everywhere = answered(lambda: relation(symbols.context))
        if analysis.proofs.is_empty(everywhere):
            return None
    except TooManyOperations:
        pass
    try:
        here = answered(lambda: relation(symbols.point))
        if not answered(here.is_empty):
            return here
    except TooManyOperations:
        pass
    analysis.pinned.update(symbols.names)
    return None
