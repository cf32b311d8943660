"""Lists of which 32 bits hold every index, for devices where that is faster."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fusionq.analysis.item_space import global_range
from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.ir.nodes import SMALL


def demand_small_sizes(submissions: Sequence[Submission], validity: ListValidity) -> bool:
    """Whether all ranges and arrays are small, and none is empty; if so, ``validity`` asks for
    that, but for what lists of one structure have in common."""
    sizes = {tuple(global_range(s)) for s in submissions}
    sizes |= {
        argument.shape
        for s in submissions
        for argument in s.arguments
        if isinstance(argument, ArrayArgument)
    }
    if not all(0 < prod(extents) <= SMALL for extents in sizes):
        return False
    for extents in sorted(sizes):
        validity.demand_small(extents)
    return True
