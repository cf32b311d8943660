"""What is known to hold on the path that leads to a statement.

A name that only some paths bind can be read where the conditions hold under which it was bound:

    if i < n:                     if i < n:
        x = a[i]         …            out[i] = x

Conditions are compared as expressions.  One that reads memory is not known any more at the next
statement; one that reads a variable is known until the variable is assigned again.  Where a
variable is the condition, what it was assigned holds too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TypeAlias

from fusionq.base.frozen import dataclass
from fusionq.frontend.draft import negated
from fusionq.ir.nodes import Cast, Compare, Const, Expr, Extent, Logical, Var
from fusionq.ir.types import INT64
from fusionq.ir.value_bounds import Bounds
from fusionq.ir.walk import reads_memory, subexpressions


@dataclass(frozen=True, slots=True)
class Fact:
    """A condition that holds, and how often its variables had been assigned then."""

    cond: Expr
    versions: tuple[tuple[str, int], ...]


Definition: TypeAlias = tuple[int, tuple[tuple[Fact, ...], tuple[Fact, ...]]]
"""How often a variable had been assigned, and the facts where it is true, and where it is false."""


@dataclass(slots=True)
class PathConditions:
    """The facts at the present statement; ``versions``: how often each variable was assigned,
    ``definitions``: of bools, what, ``least`` and ``greatest``: between what integers are;
    functions inlined into one kernel share them."""

    versions: dict[str, int]
    definitions: dict[str, Definition]
    least: dict[Expr, int]
    greatest: dict[Expr, int]
    facts: tuple[Fact, ...] = field(default=())

    def assigned(self, variable: str, value: Expr | None = None) -> None:
        """Note an assignment; of a bool also what its ``value`` says where it is true or false, of
        an int64 between what it lies."""
        says = None
        if value is not None and value.type.is_bool:
            says = self.implied(value, True), self.implied(value, False)
        if value is not None and value.type == INT64:
            self.between(variable, self.bounds.least(value), self.bounds.greatest(value))
        else:
            self.between(variable, None, None)
        self.versions[variable] = version = self.versions.get(variable, 0) + 1
        self.definitions.pop(variable, None)
        if says is not None:
            self.definitions[variable] = version, says

    def decided(self, variable: str, says: tuple[Fact, ...], holds: bool) -> None:
        """Note an assignment to a bool, and what holds where it is true (or false)."""
        self.assigned(variable)
        where = (says, ()) if holds else ((), says)
        self.definitions[variable] = self.versions[variable], where

    def between(self, variable: str, least: int | None, greatest: int | None) -> None:
        """Note between what an int64 variable is."""
        key = Var(INT64, variable)
        for values, bound in ((self.least, least), (self.greatest, greatest)):
            values.pop(key, None)
            if bound is not None:
                values[key] = bound

    def iterates(self, variable: str, start: Expr, stop: Expr, step: Expr) -> None:
        """Note between what the variable of a loop over ``range(start, stop, step)`` is."""
        least, greatest = self.bounds.least, self.bounds.greatest
        if not isinstance(step, Const):
            self.between(variable, None, None)
        elif step.value > 0:
            last = greatest(stop)
            self.between(variable, least(start), None if last is None else last - 1)
        else:
            last = least(stop)
            self.between(variable, None if last is None else last + 1, greatest(start))

    def meet(self, before: Mapping[str, int]) -> None:
        """Forget what is known of the variables that have been assigned since there were these
        ``versions``: on one path only, or not in this iteration."""
        for variable, version in list(self.versions.items()):
            if before.get(variable, 0) != version:
                self.assigned(variable)

    @property
    def bounds(self) -> Bounds:
        """Between what integers are known to be, whatever conditions hold."""
        return Bounds(frozenset(), self.least, self.greatest)

    def of(self, cond: Expr, holds: bool) -> tuple[Fact, ...]:
        """The facts that together say that ``cond`` holds, or that it does not; none where memory
        decides."""
        if reads_memory(cond):
            return ()
        return tuple(Fact(c, self._now(c)) for c in _conjuncts(cond if holds else negated(cond)))

    def implied(self, cond: Expr, holds: bool) -> tuple[Fact, ...]:
        """All facts that are known where ``cond`` holds, or where it does not."""
        facts: list[Fact] = []
        for conjunct in _conjuncts(cond if holds else negated(cond)):
            facts += self.of(conjunct, True)
            for truth, variable in ((True, conjunct), (False, negated(conjunct))):
                if isinstance(variable, Var) and variable.name in self.definitions:
                    version, says = self.definitions[variable.name]
                    facts += says[not truth] if version == self.versions[variable.name] else ()
        return tuple(facts)

    def hold(self, facts: tuple[Fact, ...]) -> bool:
        """Whether all of ``facts``, at least one, are known still."""
        return bool(facts) and all(
            fact in self.facts and fact.versions == self._now(fact.cond) for fact in facts
        )

    def _now(self, cond: Expr) -> tuple[tuple[str, int], ...]:
        names = {e.name for e in subexpressions(cond) if isinstance(e, Var)}
        return tuple((name, self.versions.get(name, 0)) for name in sorted(names))


def entered(start: Expr, stop: Expr, step: Expr) -> Iterator[Expr]:
    """Conditions of which each says that ``range(start, stop, step)`` is not empty, as a kernel may
    have written it."""
    if not isinstance(step, Const):
        return
    low, high = (start, stop) if step.value > 0 else (stop, start)
    yield Compare("lt", low, high)
    yield Compare("gt", high, low)
    if isinstance(low, Const):
        number = high.operand if isinstance(high, Cast) and high.operand.type.is_integer else high
        least, more = (Const(number.type, int(low.value) + more) for more in (0, 1))
        yield Compare("gt", number, least)
        yield Compare("lt", least, number)
        yield Compare("ge", number, more)
        yield Compare("le", more, number)
        if low.value == 0 and (number.type.kind == "u" or isinstance(number, Extent)):
            yield Compare("ne", number, least)


def _conjuncts(cond: Expr) -> Iterator[Expr]:
    """Conditions that together are ``cond``."""
    operand = getattr(cond, "operand", None)
    if isinstance(cond, Logical) and cond.op == "and":
        yield from _conjuncts(cond.lhs)
        yield from _conjuncts(cond.rhs)
    elif isinstance(operand, Logical) and operand.op == "or" and cond == negated(operand):
        yield from _conjuncts(negated(operand.lhs))
        yield from _conjuncts(negated(operand.rhs))
    else:
        yield cond
