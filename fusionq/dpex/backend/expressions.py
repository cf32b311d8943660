"""Expressions as Python text that numba types exactly as the IR does.

numba computes integers below 64 bits in 64, and a literal is an int64 or a float64 to it.  So
each constant stands in its type's constructor, and each result below 64 bits is cut back.
"""

from __future__ import annotations

import math

from fusionq.base.errors import DeviceError
from fusionq.codegen.intervals import Intervals
from fusionq.codegen.memory import Memory
from fusionq.codegen.names import Names
from fusionq.codegen.text import PRIMARY, PRODUCT, SHIFT, SUM, UNARY, Text
from fusionq.dpex.backend.helpers import Helpers, constructor
from fusionq.ir.functions import FLOAT_FUNCTIONS
from fusionq.ir.nodes import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Extent,
    ItemQuery,
    Load,
    Logical,
    Param,
    Query,
    Select,
    Unary,
    Var,
)
from fusionq.ir.types import INT64, ScalarType

# Python's precedences; those that index arithmetic uses are C's too.
SELECT, OR, AND, NOT, COMPARE, BIT_OR, XOR, BIT_AND = range(8)

_BINARY = {
    "add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT), "truediv": ("/", PRODUCT),
    "floordiv": ("//", PRODUCT), "mod": ("%", PRODUCT),
    "and": ("&", BIT_AND), "or": ("|", BIT_OR), "xor": ("^", XOR),
    "shl": ("<<", SHIFT), "shr": (">>", SHIFT),
}  # fmt: skip
_COMPARISON = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_ITEM_QUERIES: dict[Query, str] = {"global_id": "get_id", "global_range": "get_range"}
_ND_ITEM_QUERIES: dict[Query, str] = {
    "global_id": "get_global_id",
    "global_range": "get_global_range",
    "local_id": "get_local_id",
    "local_range": "get_local_range",
    "group_id": "get_group().get_group_id",
    "group_range": "get_group().get_group_range",
}
_SMALLEST = -(2**63)
"""numba takes this literal for a uint64."""


class ExpressionPrinter:
    """Prints expressions; the text has the expression's value and, to numba, its type."""

    def __init__(
        self,
        names: Names,
        memory: Memory,
        helpers: Helpers,
        intervals: Intervals,
        uses_groups: bool,
    ) -> None:
        self._names = names
        self._intervals = intervals
        self._memory = memory
        self._helpers = helpers
        self._queries = _ND_ITEM_QUERIES if uses_groups else _ITEM_QUERIES

    def value(self, expr: Expr) -> str:
        """A whole right-hand side, condition or argument."""
        return self.text(expr).text

    def stored(self, expr: Expr) -> str:
        """A value to store; bools lie in memory as bytes."""
        return f"np.uint8({self.value(expr)})" if expr.type.is_bool else self.value(expr)

    def element(self, array: str, indices: tuple[Expr, ...]) -> str:
        """``array[…]``: with an unsigned index, so that numba does not count from the end."""
        offset = self._memory.offset(array, [self.text(index) for index in indices])
        return f"{self._names.of(array)}[np.uint64({offset.text})]"

    def text(self, expr: Expr) -> Text:
        """An expression with its outermost operator's strength."""
        match expr:
            case Const():
                return _literal(expr)
            case Var():
                return Text(self._names.of(expr.name), PRIMARY)
            case Param():
                name = self._memory.scalar(expr.name)
                return Text(f"{name} != 0", COMPARE) if expr.type.is_bool else Text(name, PRIMARY)
            case Extent():
                return self._memory.extent(expr.array, expr.dim)
            case ItemQuery():
                return Text(f"item.{self._queries[expr.query]}({expr.dim})", PRIMARY)
            case Load():
                element = self.element(expr.array, expr.indices)
                return (
                    Text(f"{element} != 0", COMPARE)
                    if expr.type.is_bool
                    else Text(element, PRIMARY)
                )
            case Unary():
                return self._unary(expr)
            case Binary():
                return self._binary(expr)
            case Compare():
                return self._infix(_COMPARISON[expr.op], COMPARE, expr.lhs, expr.rhs, COMPARE + 1)
            case Logical():
                own = OR if expr.op == "or" else AND
                return self._infix(expr.op, own, expr.lhs, expr.rhs, own)
            case Select():
                then, cond = self.text(expr.then).at(OR), self.text(expr.cond).at(OR)
                return Text(f"{then} if {cond} else {self.text(expr.orelse).at(SELECT)}", SELECT)
            case Cast():
                return self._cast(expr)
            case Call():
                return self._call(expr)

    def _infix(self, symbol: str, own: int, lhs: Expr, rhs: Expr, left: int) -> Text:
        return Text(f"{self.text(lhs).at(left)} {symbol} {self.text(rhs).at(own + 1)}", own)

    # ------------------------------------------------------------------ operations
    def _unary(self, expr: Unary) -> Text:
        operand = self.text(expr.operand)
        if expr.op == "pos":
            return operand
        if expr.op == "not" or expr.type.is_bool:
            return Text(f"not {operand.at(NOT)}", NOT)
        if expr.op == "neg" and self._overflows(expr):
            return self._wrapped(expr)
        sign = "-" if expr.op == "neg" else "~"
        return _cut(Text(f"{sign}{operand.at(PRIMARY)}", UNARY), expr.type)

    def _binary(self, expr: Binary) -> Text:
        type, op = expr.type, expr.op
        if type.is_bool and op in ("add", "mul"):
            op = "or" if op == "add" else "and"
        if op == "pow":
            return self._power(expr)
        if op in ("floordiv", "mod") and not self._divides_plainly(expr):
            return self._helper(op, type, expr.lhs, expr.rhs)
        if op in ("shl", "shr") and not _shifts_plainly(expr):
            return self._helper(op, type, expr.lhs, expr.rhs)
        if self._overflows(expr):
            return self._wrapped(expr)
        symbol, own = _BINARY[op]
        return _cut(self._infix(symbol, own, expr.lhs, expr.rhs, own), type)

    # numba takes it that int64 arithmetic does not overflow; that of uint64 wraps.
    def _overflows(self, expr: Binary | Unary) -> bool:
        if expr.type != INT64 or expr.op not in ("add", "sub", "mul", "neg"):
            return False
        return self._intervals.wraps(expr)

    def _wrapped(self, expr: Binary | Unary) -> Text:
        """int64 arithmetic modulo two to the 64."""
        return Text(f"np.int64({self._unsigned(expr).text})", PRIMARY)

    def _unsigned(self, expr: Expr) -> Text:
        """A uint64 that is congruent to an int64."""
        match expr:
            case Unary(op="neg") if self._overflows(expr):
                return Text(f"-{self._unsigned(expr.operand).at(PRIMARY)}", UNARY)
            case Binary() if self._overflows(expr):
                symbol, own = _BINARY[expr.op]
                lhs, rhs = self._unsigned(expr.lhs).at(own), self._unsigned(expr.rhs).at(own + 1)
                return Text(f"{lhs} {symbol} {rhs}", own)
            case Const():
                return Text(f"np.uint64({int(expr.value) % 2**64})", PRIMARY)
        return Text(f"np.uint64({self.value(expr)})", PRIMARY)

    def _power(self, expr: Binary) -> Text:
        if not expr.type.is_float:
            return self._helper("pow", expr.type, expr.lhs, expr.rhs)
        if isinstance(expr.rhs, Const) and expr.rhs.value == 2:
            return self._helper("square", expr.type, expr.lhs)
        return self._function("pow", (expr.lhs, expr.rhs))

    def _divides_plainly(self, expr: Binary) -> bool:
        """numba's integer division is the IR's, but for overflow."""
        constant = isinstance(expr.rhs, Const) and expr.rhs.value not in (0, -1)
        return expr.type.is_integer and constant

    # ---------------------------------------------------------- casts and functions
    def _cast(self, expr: Cast) -> Text:
        target, source = expr.type, expr.operand.type
        if target == source:
            return self.text(expr.operand)
        if target.is_bool:
            return Text(
                f"{self.text(expr.operand).at(BIT_OR)} != {constructor(source)}(0)", COMPARE
            )
        if source.is_float and target.is_integer:
            cast = self._helpers.saturating_cast(target, source)
            return Text(f"{cast}({self.value(expr.operand)})", PRIMARY)
        return Text(f"{constructor(target)}({self.value(expr.operand)})", PRIMARY)

    def _call(self, expr: Call) -> Text:
        if not expr.args:
            raise DeviceError(f"it asks for {expr.function!r}, which numba-dpex cannot")
        name, type = expr.function, expr.args[0].type
        if name == "isnan":
            value = self.text(expr.args[0]).at(BIT_OR)
            return Text(f"{value} != {value}", COMPARE)
        if name in FLOAT_FUNCTIONS or (name == "abs" and type.is_float):
            return self._function(name, expr.args)
        if name == "abs" and type.kind != "i":
            return self.text(expr.args[0])
        return self._helper(name, type, *expr.args)

    def _function(self, name: str, args: tuple[Expr, ...]) -> Text:
        called = self._helpers.function(name)
        return Text(f"{called}({', '.join(map(self.value, args))})", PRIMARY)

    def _helper(self, operation: str, type: ScalarType, *args: Expr) -> Text:
        called = self._helpers.operation(operation, type)
        return Text(f"{called}({', '.join(map(self.value, args))})", PRIMARY)


def _shifts_plainly(expr: Binary) -> bool:
    return isinstance(expr.rhs, Const) and 0 <= expr.rhs.value < expr.type.bits


def _cut(text: Text, type: ScalarType) -> Text:
    """A result that numba computed in 64 bits, in its own type."""
    if type.is_integer and type.bits < 64:
        return Text(f"{constructor(type)}({text.text})", PRIMARY)
    return text


def _literal(const: Const) -> Text:
    """A constant that numba gives the constant's type: int64, float64 and bool are Python's."""
    value = const.value
    if const.type == INT64 and value == _SMALLEST:
        return Text(f"np.int64(np.uint64({-_SMALLEST}))", PRIMARY)
    if const.type.is_float and not math.isfinite(value):
        text = "np.nan" if math.isnan(value) else "np.inf" if value > 0 else "-np.inf"
        plain = const.type.name == "float64"
    else:
        text = repr(value)
        plain = const.type.is_bool or const.type == INT64 or const.type.name == "float64"
    if not plain:
        return Text(f"{constructor(const.type)}({text})", PRIMARY)
    return Text(text, UNARY if text.startswith("-") else PRIMARY)
