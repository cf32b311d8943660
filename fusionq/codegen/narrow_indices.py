"""Integers of 64 bits that 32 bits hold, of a kernel over small sizes.

    for k in range(a.shape[0]):              for k in range(int32(a.shape[0])):
        if i + k < n:                   →        if int64(int32(i) + k) < n:

Where the interval of an operation's result and those of its operands are within int32, it is one on
int32; a variable of which all values are is one of int32.  No value changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from fusionq.codegen.helpers import EXTREMA
from fusionq.codegen.intervals import Intervals
from fusionq.codegen.near_remainders import without_divisors
from fusionq.codegen.scoping import Body
from fusionq.codegen.variable_intervals import variable_intervals
from fusionq.ir.interval_arithmetic import Interval, of_type, within
from fusionq.ir.nodes import (
    Assign,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Extent,
    For,
    ItemQuery,
    Kernel,
    Param,
    Select,
    Stmt,
    Unary,
    Var,
)
from fusionq.ir.types import FLOAT32, FLOAT64, INT32, INT64, ScalarType
from fusionq.ir.walk import rewrite, rewrite_body

NARROW = of_type(INT32)
"""What int32 holds."""

_OPERATIONS = frozenset({"add", "sub", "mul", "floordiv", "mod", "and"})


def narrowed(
    kernel: Kernel, bodies: Sequence[Body], values: Sequence[Expr]
) -> tuple[Kernel, list[Body], list[Expr]]:
    """``kernel`` with the types of its variables, its ``bodies`` and ``values``, which are the same
    for a tile's work-items, in 32 bits as far as those are enough."""
    variables, known = _variables(kernel, bodies)
    intervals = Intervals(kernel, known)
    narrowing = Narrowing(variables, intervals)
    types = tuple((name, INT32 if name in variables else type) for name, type in kernel.variables)
    fewer = partial(without_divisors, intervals=intervals)
    return (
        replace(kernel, variables=types),
        [rewrite_body(rewrite_body(b, fewer), narrowing.expr, narrowing.stmt) for b in bodies],
        [rewrite(rewrite(value, fewer), narrowing.expr) for value in values],
    )


def _variables(kernel: Kernel, bodies: Sequence[Body]) -> tuple[set[str], dict[str, Interval]]:
    """The variables of int64 whose values are all within int32, and what is known of those."""
    known = variable_intervals(kernel, bodies, Intervals(kernel), (INT64,))
    return {name for name, interval in known.items() if within(interval, NARROW)}, known


class Narrowing:
    """Rewrites expressions and statements; what is narrow becomes ``int64(x)``, x of int32."""

    def __init__(self, variables: set[str], intervals: Intervals) -> None:
        self._variables = variables
        self._intervals = intervals

    def expr(self, e: Expr) -> Expr:
        """``e``, whose operands have been rewritten."""
        match e:
            case Compare(op, lhs, rhs) if lhs.type == INT64:
                both = self._all((lhs, rhs))
                return e if both is None else Compare(op, both[0], both[1])
            case Cast(type, Cast(of, operand)) if of == INT64 and operand.type == INT32:
                return _converted(operand, type) or e
            case _ if e.type == INT64 and not isinstance(e, (Cast, Const)):
                found = self._narrow(e)
                return e if found is None else Cast(INT64, found)
        return e

    def stmt(self, s: Stmt) -> tuple[Stmt, ...]:
        """``s``, whose expressions have been rewritten."""
        match s:
            case Assign(name, value) if name in self._variables:
                return (replace(s, value=self._forced(value)),)
            case For(var, start, stop, step) if var in self._variables:
                bounds = [self._forced(e) for e in (start, stop, step)]
                return (replace(s, start=bounds[0], stop=bounds[1], step=bounds[2]),)
        return (s,)

    def _narrow(self, e: Expr) -> Expr | None:
        if isinstance(e, Var):
            return Var(INT32, e.name) if e.name in self._variables else None
        if not within(self._intervals.of(e), NARROW):
            return None
        match e:
            case ItemQuery() | Extent() | Param():
                return Cast(INT32, e)
            case Unary(_, "neg" | "pos" as op, operand):
                one = self._all((operand,))
                return None if one is None else Unary(INT32, op, *one)
            case Binary(_, op, lhs, rhs) if op in _OPERATIONS:
                both = self._all((lhs, rhs))
                return None if both is None else Binary(INT32, op, *both)
            case Select():
                both = self._all((e.then, e.orelse))
                if both is None:
                    return None
                return Select(INT32, e.cond, both[0], both[1], e.speculated)
            case Call(_, function, args) if function in EXTREMA:
                every = self._all(args)
                return None if every is None else Call(INT32, function, every)
        return None

    def _all(self, exprs: Sequence[Expr]) -> tuple[Expr, ...] | None:
        """``exprs`` as int32; None if one of them is not known to be within it."""
        found = tuple(e for e in map(of_int32, exprs) if e is not None)
        return found if len(found) == len(exprs) else None

    def _forced(self, e: Expr) -> Expr:
        return of_int32(e) or Cast(INT32, e)


def of_int32(e: Expr) -> Expr | None:
    """``e``, of int64, as int32; None where it is not known to be within it."""
    match e:
        case Const(_, value) if within((int(value), int(value)), NARROW):
            return Const(INT32, value)
        case Cast(_, operand) if operand.type == INT32:
            return operand
        case Cast(_, operand) if operand.type.is_bool or (
            operand.type.is_integer and within(of_type(operand.type), NARROW)
        ):
            return Cast(INT32, operand)
    return None


def _converted(operand: Expr, type: ScalarType) -> Expr | None:
    """``operand``, of int32, as ``type``, which rounds as its conversion by int64 does."""
    if type == INT32:
        return operand
    narrow = type != INT64 and (type.is_integer or type.is_bool or type in (FLOAT32, FLOAT64))
    return Cast(type, operand) if narrow else None
