"""Decisions that hold for today's sizes, and for which others they hold too."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import islpy as isl

from fusionq.analysis import isl_operations
from fusionq.analysis.isl_operations import (
    LimitReached,
    PlanTooHard,
    TooManyOperations,
    count_operations,
    found_within,
    limited_operations,
    lose_for_others,
    most_for_others,
)
from fusionq.analysis.kept_blocks import KeptBlocks
from fusionq.analysis.scalar_cells import cell_of, cell_outside
from fusionq.analysis.symbols import Symbols

_CONDITIONS: KeptBlocks[list[tuple[isl.Set, bool]]] = KeptBlocks()
"""What is to be written down of parameter sets: by the set, the side, and the symbols, whose names
and which of them are empty say what always holds."""

_NONEMPTY: KeptBlocks[tuple[isl.Set | None, bool]] = KeptBlocks()
"""For which values relations have elements, and whether for today's."""


def symbols_of(values: isl.Set | isl.Map) -> frozenset[str]:
    """The parameters that a set or relation constrains."""
    kind = isl.dim_type.param
    names = (
        values.get_dim_name(kind, position)
        for position in range(values.dim(kind))
        if values.involves_dims(kind, position, 1)
    )
    return frozenset(name for name in names if name is not None)


@dataclass
class Proofs:
    """Collects, for every question that was asked, the parameter values with the same answer.

    ``conditions``: parameter sets, each with whether the values have to lie inside; ``today``:
    symbols that must keep their values.
    """

    symbols: Symbols
    conditions: list[tuple[isl.Set, bool]] = field(default_factory=list)
    today: set[str] = field(default_factory=set)
    is_hard: bool = False
    """Whether it was too hard to say for which sizes and scalars something is empty."""
    used: dict[Hashable, object] = field(default_factory=dict)
    """What is kept elsewhere with its conditions, which are among ``conditions`` since it was used
    here."""

    def is_empty(self, relation: isl.Set | isl.Map) -> bool:
        """Whether ``relation`` has no element for today's values; False, which refuses what
        depends on it, where that takes too many operations.  PlanTooHard where the plan has none
        left."""
        try:
            return self.decide(relation)
        except PlanTooHard:
            raise
        except TooManyOperations:
            return False

    def decide(self, relation: isl.Set | isl.Map, scalars: frozenset[str] = frozenset()) -> bool:
        """As ``is_empty``; TooManyOperations where it takes too many.  Where it is empty, but it is
        too hard to say for which sizes and scalars, for which sizes with today's scalars.  In
        ``relation`` those ``scalars`` are today's."""
        today = self.symbols.today
        nonempty, here = _NONEMPTY.answered(relation, today, lambda: self._nonempty(relation))
        if nonempty is None:
            return True
        if here:
            # Right of all values, if it is not remembered.
            if not self._try_to_remember(nonempty, inside=True):
                self._remember_part(nonempty)
            return False
        if scalars:
            self.add(self._answered_conditions(nonempty, inside=False))
            return True
        scalars = self.symbols.scalars_of(symbols_of(nonempty))
        if not scalars:
            self.add(self._answered_conditions(nonempty, inside=False))
        elif not self._try_to_remember(nonempty, inside=False):
            self.is_hard = True
            if not self._remember_cell(nonempty, scalars):
                hard = nonempty.intersect(self.symbols.at_today(scalars))
                self.add(self._answered_conditions(hard, inside=False))
                self.today |= scalars
        return True

    def is_found_today(self, relation: isl.Set | isl.Map) -> bool:
        """Whether ``relation`` certainly has an element for today's values, which takes a fraction
        of the work of a decision and is not remembered; False where it takes too long."""
        here = relation.intersect_params(self.symbols.point)
        return found_within(isl_operations.OPERATIONS_FOR_OTHERS, here.is_empty) is False

    def is_empty_for_others(self, find: Callable[[], isl.Set | isl.Map]) -> bool:
        """Whether it could be found out for which sizes and scalars, today's among them, the set
        or relation that is found is empty; what rests on the proofs then serves these only."""
        most = most_for_others()
        try:
            with limited_operations(most):
                nonempty, here = self._nonempty(find())
                conditions = [] if nonempty is None else self._conditions(nonempty, inside=False)
        except LimitReached:
            lose_for_others(most)
            return False
        if not here:
            self.add(conditions)
        return not here

    def is_empty_in_cell(
        self, sets: Sequence[isl.Set], find: Callable[[Sequence[isl.Set]], isl.Set]
    ) -> bool:
        """As ``is_empty_for_others`` of what is found of ``sets``, with scalars on today's side of
        each constraint on scalars alone in there; False, too, if there is none."""
        scalars = self.symbols.scalars_of(frozenset().union(*map(symbols_of, sets)))
        try:
            with limited_operations(isl_operations.OPERATIONS_FOR_OTHERS):
                cell = cell_of(sets, scalars, self.symbols.values)
                conditions = [] if cell is None else self._conditions(cell, inside=True)
        except LimitReached:
            return False
        if cell is None or not self.is_empty_for_others(
            lambda: find([values.intersect_params(cell) for values in sets])
        ):
            return False
        self.add(conditions)
        return True

    def holds_for_others(self, question: Callable[[], bool]) -> bool:
        """Whether ``question``, about other sizes or scalars than today's, is answered with yes
        within the operations that there are for these."""
        most = most_for_others()
        try:
            with limited_operations(most):
                found = question()
        except LimitReached:
            found = False
        if not found:
            lose_for_others(most)
        return found

    def demand_today(self, names: Iterable[str]) -> None:
        """Let what rests on the proofs serve today's values only of the symbols ``names``, but for
        those that are free."""
        self.today |= set(names) - self.symbols.free

    def rest_on(
        self, conditions: Iterable[tuple[isl.Set, bool]], values_of: Iterable[tuple[str, int]] = ()
    ) -> bool:
        """Whether today's values meet ``conditions``, and some symbols have the ``values_of``
        them."""
        today = self.symbols.values
        if any([today[name] != value for name, value in values_of]):
            return False
        point = self.symbols.point
        return all(values.intersect(point).is_empty() != inside for values, inside in conditions)

    def add(self, conditions: Iterable[tuple[isl.Set, bool]]) -> None:
        """Let what rests on the proofs serve values only that meet ``conditions``, too."""
        for values, inside in conditions:
            if not any(inside == i and values.plain_is_equal(v) for v, i in self.conditions):
                self.conditions.append((values, inside))

    def _nonempty(self, relation: isl.Set | isl.Map) -> tuple[isl.Set | None, bool]:
        """The values for which ``relation`` has elements, None if there are none, and whether
        today's are among them."""
        if relation.is_empty():
            return None, False
        nonempty = self.symbols.for_any_free(relation.params())
        return nonempty, not nonempty.intersect(self.symbols.point).is_empty()

    def _remember_cell(self, values: isl.Set, scalars: frozenset[str]) -> bool:
        """Let what rests on the proofs serve no more than the values on today's side of some
        constraints, of ``scalars`` alone where that does, which are outside of ``values``; whether
        it does."""
        try:
            with limited_operations(isl_operations.OPERATIONS_FOR_OTHERS):
                count_operations(isl_operations.PROJECTED * values.n_basic_set())
                cell = cell_outside(values, scalars, self.symbols.values)
                if cell is None:
                    return False
                conditions = self._conditions(cell, inside=True)
        except LimitReached:
            return False
        self.add(conditions)
        return True

    def _remember_part(self, values: isl.Set) -> None:
        """Let what rests on the proofs, which is right of all values, serve only those on today's
        side of the constraints on scalars alone of a part of ``values`` that has today's."""
        scalars = self.symbols.scalars_of(symbols_of(values))
        point = self.symbols.point

        def cell() -> list[tuple[isl.Set, bool]]:
            parts = map(isl.Set.from_basic_set, values.get_basic_sets())
            part = next(part for part in parts if not part.intersect(point).is_empty())
            found = cell_of([part], scalars, self.symbols.values)
            return [] if found is None else self._conditions(found, inside=True)

        if scalars:
            self.add(found_within(isl_operations.OPERATIONS_FOR_OTHERS, cell) or [])

    def _try_to_remember(self, values: isl.Set, inside: bool) -> bool:
        """Let what rests on the proofs serve only those that lie inside ``values``, or outside,
        unless that takes too long; whether it does."""
        most = most_for_others()
        about = inside, self.symbols.alike
        try:
            self.add(
                _CONDITIONS.find(most, values, about, lambda: self._conditions(values, inside))
            )
        except LimitReached:
            lose_for_others(most)
            return False
        return True

    def _answered_conditions(self, values: isl.Set, inside: bool) -> list[tuple[isl.Set, bool]]:
        """``_conditions`` of a question; TooManyOperations where it takes too many."""
        about = inside, self.symbols.alike
        return _CONDITIONS.answered(values, about, lambda: self._conditions(values, inside))

    def _conditions(self, values: isl.Set, inside: bool) -> list[tuple[isl.Set, bool]]:
        """That values lie inside ``values``, or outside; right only if isl took no more operations
        than it may."""
        # What is to be written down has no other quotients than those of symbols: isl takes several
        # times as long for the same questions before they are found, and where there are none.
        values = values.compute_divs()
        if self.symbols.context.is_subset(values):
            return []
        return [(values.gist_params(self.symbols.context).coalesce(), inside)]
