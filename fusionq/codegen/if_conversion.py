"""Assignments under a condition as choices between two values, without a branch (if-conversion).

    if m[y, x] != 0:                           v = m[y, x] != 0 ? min(v, a[y, x - 1]) : v
        v = min(v, a[y, x - 1])    →

Compilers for CPUs do what is behind a branch under masks, and elements of one or two bytes, of
which AVX2 has no masked loads, one by one.  Legal where all loads, those of the condition too, are
certainly inside of their arrays (``interior``), and the variable has a value before.

Source: Allen, Kennedy, Porterfield, Warren: "Conversion of control dependence to data dependence",
POPL 1983.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from fusionq.codegen.eager_conditions import may_be_speculated
from fusionq.ir.nodes import Assign, Binary, Expr, If, Load, Logical, Select, Var
from fusionq.ir.types import BOOL, FLOAT32, FLOAT64, ScalarType
from fusionq.ir.walk import subexpressions

MOST_ASSIGNMENTS = 8
"""Under one condition, which is computed for each."""

MOST_NODES = 200
"""Expressions of all that is computed in place of a branch."""


def as_choices(
    stmt: If, assigned: Collection[str], unassigned: frozenset[str]
) -> tuple[Assign, ...] | None:
    """What ``stmt`` assigns, chosen by its condition; None where that is not the same, takes longer
    than a branch, or has no loads, so that compilers do it themselves.  ``assigned``: variables
    that have a value before ``stmt``; ``unassigned``: those that may have none where a left
    operand of ``and`` or ``or`` decides."""
    cond = without_branches(stmt.cond, unassigned)
    made: list[Assign] = []
    read = _variables(stmt.cond)
    for each, is_then in [*((s, True) for s in stmt.then), *((s, False) for s in stmt.orelse)]:
        if (
            cond is None
            or not isinstance(each, Assign)
            or each.name in read
            or each.name not in assigned
            or not _has_choice(each.value.type)
            or not may_be_speculated(each.value, unassigned, MOST_NODES)
        ):
            return None
        own = Var(each.value.type, each.name)
        then, orelse = (each.value, own) if is_then else (own, each.value)
        made.append(replace(each, value=Select(own.type, cond, then, orelse, True)))
    if len(made) > MOST_ASSIGNMENTS or not loads_in(*_values(stmt)):
        return None
    if sum(1 for s in made for _ in subexpressions(s.value)) > MOST_NODES:
        return None
    return tuple(made)


def without_branches(cond: Expr, unassigned: frozenset[str]) -> Expr | None:
    """``cond`` with both operands of each ``and`` and ``or`` computed; None where that takes longer
    than a branch."""
    if not isinstance(cond, Logical):
        return cond
    lhs, rhs = (without_branches(e, unassigned) for e in (cond.lhs, cond.rhs))
    if lhs is None or rhs is None or not may_be_speculated(cond.rhs, unassigned):
        return None
    return Binary(BOOL, cond.op, lhs, rhs)


def as_choice(expr: Select, unassigned: frozenset[str]) -> Select | None:
    """``expr`` with both sides computed before one is chosen; None as for ``as_choices``."""
    cond = without_branches(expr.cond, unassigned)
    sides = expr.then, expr.orelse
    if cond is None or not (_has_choice(expr.type) and loads_in(*sides)):
        return None
    if not all(may_be_speculated(side, unassigned, MOST_NODES // 2) for side in sides):
        return None
    return replace(expr, cond=cond, speculated=True)


def loads_in(*values: Expr) -> list[Load]:
    """All that ``values`` load."""
    return [e for value in values for e in subexpressions(value) if isinstance(e, Load)]


def _values(stmt: If) -> Iterator[Expr]:
    return (s.value for s in (*stmt.then, *stmt.orelse) if isinstance(s, Assign))


def _variables(expr: Expr) -> set[str]:
    return {e.name for e in subexpressions(expr) if isinstance(e, Var)}


def _has_choice(type: ScalarType) -> bool:
    return (type.is_integer and not type.is_bool) or type in (FLOAT32, FLOAT64)
