"""Decisions that hold for today's sizes, and for which others they hold too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import islpy as isl

from fusionq.analysis.symbols import Symbols

OPERATIONS = 30_000
"""isl operations that one question may take, about a tenth of a second.  Ordinary questions take
a few hundred; one about several strides at once can take hours."""

PLAN_OPERATIONS = 3_000_000
"""isl operations that all questions about a list together may take, about a second.  Equal
questions are answered once, so that it does for long lists too."""

TOO_HARD = "the integer sets of this question are too hard to decide"


class TooManyOperations(Exception):
    """A question to isl takes more than it may; the text says why there is no answer."""


class PlanTooHard(TooManyOperations):
    """The questions about a list have together taken what they may: there are no more answers."""


@dataclass
class _Plan:
    """The operations that the questions about a list may take, and what is left of them."""

    allowed: int
    left: int


_plan: _Plan | None = None
"""Of the list that is being analysed now; isl's context, too, serves one at a time."""


@contextmanager
def plan_operations() -> Iterator[None]:
    """Bound what the questions inside the block, about one list, take together; once they have
    taken it, they raise PlanTooHard."""
    global _plan
    outer, _plan = _plan, _Plan(PLAN_OPERATIONS, PLAN_OPERATIONS)
    try:
        yield
    finally:
        _plan = outer


@contextmanager
def limited_operations(questions: int = 1) -> Iterator[None]:
    """Raise TooManyOperations where isl takes too long inside the block, which asks about that
    many ``questions``; a block inside it has operations of its own.  PlanTooHard where the plan
    has none left."""
    context = isl.DEFAULT_CONTEXT
    plan, outer = _plan, context.get_max_operations()
    limit = questions * OPERATIONS
    if plan is not None:
        if outer:
            plan.left -= _operations(context)
            context.set_max_operations(outer)
        _check(plan)
        limit = min(limit, plan.left)
    context.reset_operations()
    context.set_max_operations(limit)
    try:
        yield
    except isl.Error as error:
        if not _reached(context, limit):  # the text may be about what isl could not do any more
            raise
        if plan is not None and limit < questions * OPERATIONS:
            plan.left = 0
            _check(plan)
        raise TooManyOperations(TOO_HARD) from error
    finally:
        if plan is not None:
            plan.left -= _operations(context)
        context.reset_operations()
        context.set_max_operations(outer)


def _check(plan: _Plan) -> None:
    if plan.left <= 0:
        raise PlanTooHard(
            f"the questions about this list have taken all of the {plan.allowed} steps that they "
            "may take together"
        )


def _operations(context: isl.Context) -> int:
    """About how many operations isl has counted since the last reset: at most twice what it
    has, found by trying, as it does not tell.  Sets another limit."""
    bound = 256
    while _reached(context, bound):
        bound *= 2
    return bound


def _reached(context: isl.Context, operations: int) -> bool:
    """Whether isl has counted so many since the last reset.  Sets another limit."""
    context.set_max_operations(operations)
    try:
        isl.Val.zero(context)  # an operation
    except isl.Error:
        return True
    return False


@dataclass
class Proofs:
    """Collects, for every question that was asked, the parameter values with the same answer.

    ``conditions``: parameter sets, each with whether the values have to lie inside.
    """

    symbols: Symbols
    conditions: list[tuple[isl.Set, bool]] = field(default_factory=list)

    def is_empty(self, relation: isl.Set | isl.Map) -> bool:
        """Whether ``relation`` has no element for today's values; False, which refuses what
        depends on it, where that takes too many operations.  PlanTooHard where the plan has none
        left."""
        try:
            with limited_operations():
                return self._answer(relation)
        except PlanTooHard:
            raise
        except TooManyOperations:
            return False

    def demand_between(self, symbol: str, low: int, beyond: int) -> None:
        """Let what rests on the proofs serve values of ``symbol`` from ``low`` on and below
        ``beyond`` only."""
        names = ", ".join(self.symbols.names)
        values = isl.Set(f"[{names}] -> {{ : {low} <= {symbol} < {beyond} }}")
        self.conditions.append((values, True))

    def symbols_of_conditions(self) -> frozenset[str]:
        """The symbols that the conditions are about."""
        return frozenset(
            name
            for position, name in enumerate(self.symbols.names)
            if any(v.involves_dims(isl.dim_type.param, position, 1) for v, _ in self.conditions)
        )

    def _answer(self, relation: isl.Set | isl.Map) -> bool:
        if relation.is_empty():
            return True
        nonempty = relation.params()
        here = not nonempty.intersect(self.symbols.point).is_empty()
        if not self.symbols.context.is_subset(nonempty):
            self._remember(nonempty, here)
        return not here

    def _remember(self, values: isl.Set, inside: bool) -> None:
        values = values.gist_params(self.symbols.context).coalesce()
        if not any(inside == i and values.is_equal(v) for v, i in self.conditions):
            self.conditions.append((values, inside))
