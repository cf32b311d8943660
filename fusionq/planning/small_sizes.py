"""Lists of which 32 bits hold every index, for devices where that is faster."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fusionq.analysis.item_space import global_range
from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.submission import ArrayArgument, ScalarArgument, Submission
from fusionq.analysis.symbol_sources import Source
from fusionq.analysis.validity import Condition, ScalarPlace
from fusionq.base.identity_cache import cached_by_identity
from fusionq.ir.nodes import SMALL, Binary, Kernel, Param
from fusionq.ir.types import INT64
from fusionq.ir.walk import expressions, subexpressions


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


def demand_small_divisors(
    submissions: Sequence[Submission], validity: ListValidity
) -> frozenset[ScalarPlace]:
    """The scalar arguments by which kernels divide and that are 1 to ``SMALL``; ``validity`` asks
    for that.  A division of 64 bits takes a GPU many times as long as one of 32."""
    found: list[ScalarPlace] = []
    for s, submission in enumerate(submissions):
        divisors = _divisors(submission.ir)
        found += [
            (s, k)
            for k, argument in enumerate(submission.arguments if divisors else ())
            if isinstance(argument, ScalarArgument)
            and argument.name in divisors
            and 0 < int(argument.value) <= SMALL
        ]
    if found:
        places = {f"n{number}": Source(*at, None) for number, at in enumerate(found)}
        uses = tuple((name,) for name in places)
        validity.demand(Condition(f"0 < divisor <= {SMALL}", ("divisor",), uses), places)
    return frozenset(found)


@cached_by_identity
def _divisors(kernel: Kernel) -> frozenset[str]:
    """The scalars that divisors of integers are made of."""
    return frozenset(
        part.name
        for e in expressions(kernel.body)
        if isinstance(e, Binary) and e.op in ("floordiv", "mod") and e.type == INT64
        for part in subexpressions(e.rhs)
        if isinstance(part, Param) and part.type == INT64
    )
