"""The index of an element of an array with few enough elements for 32 bits, as text.

The access is inside the array, so the index is one of its elements': then ``x`` in ``x + 1`` is
also within 32 bits, and so is ``i * n`` in ``i * n + j``, whatever else it is computed from.  What
is known so is computed in ``int``, whose overflow C leaves undefined: so compilers take a constant
that is added as a displacement of the address.  The rest is computed modulo two to the power of 32.
"""

from __future__ import annotations

from collections.abc import Callable

from fusionq.codegen.dialect import Scalars
from fusionq.codegen.intervals import Interval, Intervals, arithmetic, of_type, within
from fusionq.codegen.precedence import PRIMARY, PRODUCT, SUM, UNARY
from fusionq.ir.nodes import SMALL, Binary, Cast, Const, Expr
from fusionq.ir.text import Text
from fusionq.ir.types import INT32, UINT32

_OPERATORS = {"add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT)}
_NARROW = of_type(INT32)
_ELEMENTS = (0, SMALL)


class IndexText:
    """Prints indices; ``text`` prints other expressions."""

    def __init__(
        self, scalars: Scalars, intervals: Intervals, text: Callable[[Expr], Text]
    ) -> None:
        self._int, self._unsigned = scalars.type_name(INT32), scalars.type_name(UINT32)
        self._intervals = intervals
        self._text = text

    def of(self, index: Expr, bounds: Interval = _ELEMENTS) -> Text:
        """``index``, of int64, as an ``int``, which it is modulo two to the power of 32; its value,
        if that is within int32, as it is within ``bounds``."""
        match index:
            case Const(_, value) if within((int(value), int(value)), _NARROW):
                return Text(str(int(value)), UNARY if value < 0 else PRIMARY)
            case Cast(_, operand) if operand.type.is_bool or (
                operand.type.is_integer and within(of_type(operand.type), _NARROW)
            ):
                return self._text(operand)
            case Binary(_, "add" | "sub" | "mul" as op, lhs, rhs):
                return self._binary(op, lhs, rhs, bounds)
        return self.as_int(self._text(index))

    def as_int(self, text: Text) -> Text:
        """The number ``text`` as an ``int``."""
        return Text(f"({self._int}){text.at(UNARY)}", UNARY)

    def _binary(self, op: str, lhs: Expr, rhs: Expr, bounds: Interval) -> Text:
        operator, precedence = _OPERATORS[op]
        left, right = self._intervals.of(lhs), self._intervals.of(rhs)
        if op == "add":
            left, right = _both(left, _less(bounds, right)), _both(right, _less(bounds, left))
        elif op == "sub":
            exact = arithmetic("add", bounds, right)
            assert exact is not None
            left, right = _both(left, exact), _both(right, _less(left, bounds))
        # A product that is within int32 has factors that are, or one that is 0.
        known = op == "mul" or (within(left, _NARROW) and within(right, _NARROW))
        a, b = self.of(lhs, left), self.of(rhs, right)
        if known and within(bounds, _NARROW):
            return Text(f"{a.at(precedence)} {operator} {b.at(precedence + 1)}", precedence)
        word = self._unsigned
        return self.as_int(Text(f"({word}){a.at(UNARY)} {operator} ({word}){b.at(UNARY)}", SUM))


def _less(a: Interval, b: Interval) -> Interval:
    return a[0] - b[1], a[1] - b[0]


def _both(a: Interval, b: Interval) -> Interval:
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low <= high else a  # nothing is accessed
