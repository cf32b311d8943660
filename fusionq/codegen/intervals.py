"""Value ranges of integer expressions: which arithmetic cannot wrap, which division is plain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from fusionq.codegen.helpers import EXTREMA
from fusionq.ir.interval_arithmetic import Interval, arithmetic, of_type, within
from fusionq.ir.nodes import (
    SMALL,
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
    ScalarParam,
    Select,
    Unary,
    Var,
)
from fusionq.ir.types import INT64
from fusionq.ir.walk import assigned_variable, statements, subexpressions

WORK_ITEMS = (0, 1 << 48)
"""Bounds of ids and ranges: more work-items than any device can run in a day."""

SUB_GROUPS = (0, 1 << 10)
"""Bounds of how many work-items a sub-group has."""

FLOAT_BITS, DOUBLE_BITS = 22, 51
"""Integers of less than two to so many in magnitude are those with which arithmetic in float32, and
in float64, is exact."""

WITHIN_DOUBLE = (-(1 << DOUBLE_BITS), (1 << DOUBLE_BITS) - 1)
"""Those of float64."""

MOST_BEYOND = 1 << 15
"""By how much the ids of work-items that fill up a work-group exceed a range, at most."""


class Intervals:
    """The intervals of a kernel's integer expressions, filled while walking in program order.

    A variable with one assignment has its value's interval, a loop variable that of its
    bounds; what is assigned more than once, or not yet, has its type's.
    """

    def __init__(
        self,
        kernel: Kernel,
        known: Mapping[str, Interval] = MappingProxyType({}),
        sizes: Mapping[Expr, Interval] = MappingProxyType({}),
    ) -> None:
        """``known``: intervals of variables, wherever they stand; ``sizes``: of ids, ranges and
        extents."""
        self._sizes = sizes
        small = kernel.small_sizes
        self._extents = (1, SMALL) if small else (0, of_type(INT64)[1])
        self._work_items = (0, SMALL + MOST_BEYOND) if small else WORK_ITEMS
        self._local_ids = (0, MOST_BEYOND - 1) if small else WORK_ITEMS
        self._known: dict[str, Interval] = {
            param.name: param.bounds
            for param in kernel.params
            if isinstance(param, ScalarParam) and param.bounds is not None
        }
        self._known.update(known)
        self._assignments = Counter(assigned_variable(s) for s in statements(kernel.body))

    def assigned(self, stmt: Assign) -> None:
        """The walk passes an assignment."""
        if self._assignments[stmt.name] == 1 and stmt.value.type.is_integer:
            self._known[stmt.name] = self.of(stmt.value)

    def entered(self, loop: For) -> None:
        """The walk enters a loop's body."""
        start, stop, step = self.of(loop.start), self.of(loop.stop), self.of(loop.step)
        if step[0] > 0:
            self._known[loop.var] = (start[0], max(start[0], stop[1] - 1))
        elif step[1] < 0:
            self._known[loop.var] = (min(start[1], stop[0] + 1), start[1])
        else:
            self._known.pop(loop.var, None)

    def of(self, expr: Expr) -> Interval:
        """The interval of an integer or bool expression."""
        whole = of_type(expr.type)
        exact = self._exact(expr)
        return exact if exact is not None and within(exact, whole) else whole

    def wraps(self, expr: Binary | Unary) -> bool:
        """Whether the operation's exact result may lie outside its type."""
        exact = self._exact(expr)
        return exact is None or not within(exact, of_type(expr.type))

    def decided(self, expr: Compare) -> bool | None:
        """What a comparison of integers gives, whatever the operands' values are; None where that
        is not known, or where it calls more than minima and maxima."""
        lhs, rhs = expr.lhs, expr.rhs
        if not (lhs.type.is_integer and rhs.type.is_integer):
            return None
        calls = {e.function for e in subexpressions(expr) if isinstance(e, Call)}
        if not EXTREMA.keys() >= calls:
            return None
        (a, b), (c, d) = self.of(lhs), self.of(rhs)
        match expr.op:
            case "lt":
                return True if b < c else False if a >= d else None
            case "le":
                return True if b <= c else False if a > d else None
            case "gt":
                return True if a > d else False if b <= c else None
            case "ge":
                return True if a >= d else False if b < c else None
        if b < c or a > d:
            return expr.op == "ne"
        return expr.op == "eq" if a == b == c == d else None

    def _exact(self, expr: Expr) -> Interval | None:
        match expr:
            case Const():
                return (int(expr.value), int(expr.value))
            case Var() | Param():
                return self._known.get(expr.name)
            case ItemQuery() | Extent() if expr in self._sizes:
                return self._sizes[expr]
            case ItemQuery(query="local_id" | "local_linear_id"):
                return self._local_ids
            case Call(function="hidden", args=(value,)):
                return self.of(value)
            case Call(function="sub_group_local_range"):
                return SUB_GROUPS
            case Call(function="sub_group_local_id"):
                return (0, SUB_GROUPS[1] - 1)
            case Call(function="first_of_sub_group", args=(id,)):
                low, high = self.of(id)
                return (low - SUB_GROUPS[1], high)
            case ItemQuery():
                return self._work_items
            case Extent():
                return self._extents
            case Unary(op="neg"):
                low, high = self.of(expr.operand)
                return (-high, -low)
            case Unary(op="pos"):
                return self.of(expr.operand)
            case Binary():
                return arithmetic(expr.op, self.of(expr.lhs), self.of(expr.rhs))
            case Select():
                then, orelse = self.of(expr.then), self.of(expr.orelse)
                return (min(then[0], orelse[0]), max(then[1], orelse[1]))
            case Cast() if not expr.operand.type.is_float:
                return self.of(expr.operand)
            case Call(function="abs", args=(value,)) if expr.type.is_integer:
                low, high = self.of(value)
                return (max(low, -high, 0), max(-low, high))
            case Call(function="minimum" | "pymin" | "fmin"):
                a, b = (self.of(argument) for argument in expr.args)
                return (min(a[0], b[0]), min(a[1], b[1]))
            case Call(function="maximum" | "pymax" | "fmax"):
                a, b = (self.of(argument) for argument in expr.args)
                return (max(a[0], b[0]), max(a[1], b[1]))
        return None
