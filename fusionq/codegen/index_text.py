"""The index of an element of an array with few enough elements for 32 bits, as text.

The access is inside the array, so the index is one of its elements': then ``x`` in ``x + 1`` is
also within 32 bits, and so is ``i * n`` in ``i * n + j``, whatever else it is computed from.  What
is known so is computed in ``int``, whose overflow C leaves undefined: so compilers take a constant
that is added as a displacement of the address.  The rest is computed modulo two to the power of 32.

An index that is made of an int64 of memory stays one: a wrong one is outside of all memory then,
and the device says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fusionq.codegen.dialect import Scalars
from fusionq.codegen.intervals import Intervals
from fusionq.codegen.precedence import PRIMARY, PRODUCT, SUM, UNARY
from fusionq.codegen.scoping import Body
from fusionq.ir.interval_arithmetic import Interval, arithmetic, of_type, within
from fusionq.ir.nodes import (
    SMALL,
    Assign,
    Atomic,
    Binary,
    Cast,
    Const,
    Expr,
    For,
    GroupCall,
    Load,
    Var,
)
from fusionq.ir.text import Text
from fusionq.ir.types import INT32, UINT32
from fusionq.ir.walk import operands, statements

_OPERATORS = {"add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT)}
_NARROW = of_type(INT32)
_ELEMENTS = (0, SMALL)


class IndexText:
    """Prints indices; ``text`` prints other expressions.  ``given``: variables whose values come
    from memory."""

    def __init__(
        self,
        scalars: Scalars,
        intervals: Intervals,
        given: frozenset[str],
        text: Callable[[Expr], Text],
    ) -> None:
        self._given = given
        self._int, self._unsigned = scalars.type_name(INT32), scalars.type_name(UINT32)
        self._intervals = intervals
        self._text = text

    def of(self, index: Expr) -> Text:
        """``index``, of int64."""
        return self._text(index) if _is_given(index, self._given) else self._of(index, _ELEMENTS)

    def _of(self, index: Expr, bounds: Interval) -> Text:
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
        a, b = self._of(lhs, left), self._of(rhs, right)
        if known and within(bounds, _NARROW):
            return Text(f"{a.at(precedence)} {operator} {b.at(precedence + 1)}", precedence)
        word = self._unsigned
        return self.as_int(Text(f"({word}){a.at(UNARY)} {operator} ({word}){b.at(UNARY)}", SUM))


def given_variables(bodies: Iterable[Body]) -> frozenset[str]:
    """The variables whose values come from memory, or from other work-items, beyond 32 bits."""
    assigned: list[tuple[str, tuple[Expr, ...]]] = []
    found: set[str] = set()
    for stmt in (s for body in bodies for s in statements(body)):
        match stmt:
            case Assign(name, value):
                assigned.append((name, (value,)))
            case For(name):
                assigned.append((name, (stmt.start, stmt.stop)))
            case Atomic() | GroupCall() if stmt.result is not None:
                found.add(stmt.result)
    before = -1
    while len(found) != before:
        before = len(found)
        known = frozenset(found)
        found.update(name for name, of in assigned if any(_is_given(e, known) for e in of))
    return frozenset(found)


def _is_given(index: Expr, variables: frozenset[str]) -> bool:
    match index:
        case Load():
            return not within(of_type(index.type), _NARROW)
        case Var(_, name):
            return name in variables
        case Cast(_, operand) if operand.type.is_float:
            return True
        case Cast(type) if type.is_integer and within(of_type(type), _NARROW):
            return False
    return any(_is_given(operand, variables) for operand in operands(index))


def _less(a: Interval, b: Interval) -> Interval:
    return a[0] - b[1], a[1] - b[0]


def _both(a: Interval, b: Interval) -> Interval:
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low <= high else a  # nothing is accessed
