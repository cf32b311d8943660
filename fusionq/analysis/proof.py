"""Decisions that hold for today's sizes, and for which others they hold too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import islpy as isl

from fusionq.analysis.symbols import Symbols

OPERATIONS = 30_000
"""isl operations that one question may take, some tenths of a second.  Ordinary questions take
a few thousand at most; one about several strides at once can take hours."""


TOO_HARD = "the integer sets of this question are too hard to decide"


class TooManyOperations(Exception):
    """A question to isl takes more than ``OPERATIONS``."""


@contextmanager
def limited_operations(questions: int = 1) -> Iterator[None]:
    """Raise TooManyOperations where isl takes too long inside the block, which asks about that
    many ``questions``; a block inside it has operations of its own."""
    context = isl.DEFAULT_CONTEXT
    outer = context.get_max_operations()
    context.reset_operations()
    context.set_max_operations(questions * OPERATIONS)
    try:
        yield
    except isl.Error as error:
        if "maximal number of operations" not in str(error):
            raise
        raise TooManyOperations from error
    finally:
        context.reset_operations()
        context.set_max_operations(outer)


@dataclass
class Proofs:
    """Collects, for every question that was asked, the parameter values with the same answer.

    ``conditions``: parameter sets, each with whether the values have to lie inside.
    """

    symbols: Symbols
    conditions: list[tuple[isl.Set, bool]] = field(default_factory=list)

    def is_empty(self, relation: isl.Set | isl.Map) -> bool:
        """Whether ``relation`` has no element for today's values; False, which refuses what
        depends on it, where that takes too many operations."""
        try:
            with limited_operations():
                return self._answer(relation)
        except TooManyOperations:
            return False

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
