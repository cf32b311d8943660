"""What is found out once for all plans of a process, and counts in each of them: what is taken over
counts as many operations as it took, so that what is known of a list depends on no other."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from math import inf
from typing import Any, Generic, TypeVar

import islpy as isl

from fusionq.analysis.isl_operations import (
    OPERATIONS,
    TOO_HARD,
    LimitReached,
    PlanOperations,
    limited_operations,
    lost,
    of_one_question,
    plan_now,
)

T = TypeVar("T")


class Untroubled:
    """A plan of which nothing has bounded what is asked but the bounds of single questions: the
    same is found out then, with as many operations, in every such plan."""

    def __init__(self, plan: PlanOperations) -> None:
        self._plan, self._before = plan, plan.all_left

    @classmethod
    def now(cls) -> Untroubled | None:
        """The plan that is made now; None where it is not so, or in a question already."""
        plan = plan_now()
        if plan is None or isl.DEFAULT_CONTEXT.get_max_operations() or plan.until < inf:
            return None
        return cls(plan) if of_one_question() == OPERATIONS else None

    def is_without(self, operations: int) -> bool:
        """Whether it is so where so many have been taken, too."""
        return self._plan.left - operations - OPERATIONS > self._plan.kept_back

    def since(self) -> int | None:
        """The operations taken since; None where something has bounded what was asked."""
        left, *others = self._plan.all_left
        is_alike = others == list(self._before[1:]) and self.is_without(0)
        return self._before[0] - left if is_alike else None


class KeptBlocks(Generic[T]):
    """What blocks with bounded operations have found of sets and relations."""

    MOST = 1024
    """Blocks that are kept; beyond that all are forgotten."""

    def __init__(self) -> None:
        self._known: dict[Hashable, list[tuple[Any, T | None, int]]] = {}
        """Sets, or relations, that are alike, what was found of them, and how much that took."""

    def find(self, most: int, of: isl.Set | isl.Map, about: Hashable, find: Callable[[], T]) -> T:
        """What ``find`` returns within ``most`` operations, for equal sets, or equal relations,
        and what else it is ``about``; LimitReached where it takes more."""
        plan = plan_now()
        if plan is None or plan.until < inf or plan.left - plan.kept_back <= 2 * most:
            with limited_operations(most):
                return find()
        if isl.DEFAULT_CONTEXT.get_max_operations():
            with limited_operations(most):
                pass  # what a question around it has taken until now counts by itself
        alike = self._known.setdefault((type(of), hash(of), about, most), [])
        for known, value, operations in alike:
            if known.plain_is_equal(of):
                plan.spend(operations)
                if value is None:
                    raise LimitReached(TOO_HARD)
                return value
        before, found = plan.left, None
        try:
            with limited_operations(most):
                found = find()
        except LimitReached:
            alike.append((of, None, before - plan.left))
            raise
        if len(self._known) > self.MOST:
            self._known.clear()
        alike.append((of, found, before - plan.left))
        return found

    def answered(self, of: isl.Set | isl.Map, about: Hashable, question: Callable[[], T]) -> T:
        """As ``answered`` of ``isl_operations``, of ``of`` and what else it is ``about``."""
        most = of_one_question()
        try:
            return self.find(most, of, about, question)
        except LimitReached as error:
            raise lost(most) from error
