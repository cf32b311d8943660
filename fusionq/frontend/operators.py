"""Operators on numbers: their types, their conversions, and folding of constants."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from fusionq.base.articles import with_article
from fusionq.frontend.draft import negated
from fusionq.frontend.state import FunctionState
from fusionq.frontend.typing_rules import (
    WEAK_BOOL,
    Holds,
    arithmetic_type,
    common_type,
    comparison_type,
    fits,
    floating,
    lies_in,
    number_type,
    type_name,
    with_numpy_types,
)
from fusionq.frontend.values import Constant, Number, Runtime, Scalar
from fusionq.ir.nodes import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    Select,
    Unary,
    UnaryOp,
)
from fusionq.ir.python_text import constructor
from fusionq.ir.types import BOOL, FLOAT32, FLOAT64, INT64, UINT64, WEAK_INT, ScalarType
from fusionq.language.casts import integer_limits

BINARY_OPERATORS: dict[type[ast.operator], BinaryOp] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv",
    ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow",
    ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "shr",
}  # fmt: skip
UNARY_OPERATORS: dict[type[ast.unaryop], UnaryOp] = {
    ast.UAdd: "pos", ast.USub: "neg", ast.Not: "not", ast.Invert: "invert",
}  # fmt: skip
COMPARE_OPERATORS: dict[type[ast.cmpop], CompareOp] = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip

_SYMBOLS: dict[BinaryOp, str] = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "pow": "**", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>",
}  # fmt: skip
_FOLD: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "truediv": operator.truediv, "floordiv": operator.floordiv, "mod": operator.mod,
    "pow": operator.pow, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "shl": operator.lshift, "shr": operator.rshift,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne,
    "neg": operator.neg, "pos": operator.pos, "invert": operator.invert,
}  # fmt: skip
_MAX_EXACT_BITS = 4096
"""Limit for the exponent and the shift of Python ints that are computed at compile time."""


class Operators(FunctionState):
    """Lowers operators; operands are evaluated already."""

    # ----------------------------------------------------------------- constants
    def fold(self, function: Callable[..., Any], values: list[Number], node: ast.AST) -> Constant:
        """The constant that Python (or NumPy) computes."""
        try:
            with np.errstate(all="ignore"):
                result = function(*with_numpy_types(values))
        except (ArithmeticError, ValueError, TypeError) as error:
            self.fail(
                node,
                f"this constant expression cannot be computed: {error}",
                "Change the constants, or compute it outside the kernel.",
            )
        scalar = number_type(result)
        if scalar is None:
            self.fail(
                node,
                f"this constant expression gives {with_article(type(result).__name__)}",
                "Kernels compute with bool, integers and floating point.",
            )
        return Constant(scalar, result)

    # ---------------------------------------------------------------- arithmetic
    def binary(self, op: BinaryOp, a: Scalar, b: Scalar, node: ast.AST) -> Scalar:
        """``a op b`` with NumPy's types."""
        bitwise = op in ("and", "or", "xor")
        if a.type.is_bool and b.type.is_bool and not bitwise:
            self.fail(
                node,
                f"{_SYMBOLS[op]} of two bools",
                "Use & | ^ or 'and', 'or', or convert them first: int(x).",
            )
        if isinstance(a, Constant) and isinstance(b, Constant):
            exact = isinstance(a.value, int) and op in ("pow", "shl")
            if exact and number_bits(b) > _MAX_EXACT_BITS:
                self.fail(node, "this constant is too large", "Compute with floating point.")
            return self.fold(_FOLD[op], [a.value, b.value], node)
        common = arithmetic_type(a.type, b.type)
        if bitwise or op in ("shl", "shr"):
            common = self._of_integers(op, common, a, b, node)
        elif op == "truediv":
            common = floating(common)
        elif op == "pow" and common.is_integer:
            b = self._natural_exponent(b, node)
        lhs = self.convert(a, common.strong, node)
        rhs = self.convert(b, common.strong, node)
        whole = _whole_exponent(op, rhs)
        if whole is not None:
            base = Runtime(common, self.spilled_expr(lhs, "base", node))
            return Runtime(common, _product(base.expr, whole))
        return Runtime(common, Binary(common.strong, op, lhs, rhs))

    def _of_integers(
        self, op: BinaryOp, common: ScalarType, a: Scalar, b: Scalar, node: ast.AST
    ) -> ScalarType:
        """The type of an operation on bits; uint64 with what is known not to be negative, too, for
        which NumPy has none."""
        if not common.is_float:
            return common
        message = f"{_SYMBOLS[op]} of {type_name(a.type)} and {type_name(b.type)}"
        if a.type.is_float or b.type.is_float:
            self.fail(node, message, "It needs integers: convert first, e.g. np.int64(x).")
        if all(s.type.kind == "u" or lies_in(s, UINT64, self.path.bounds) for s in (a, b)):
            return UINT64
        self.fail(
            node, f"{message}: no integer type holds both", "Convert one of them: np.int64(x)."
        )

    def _natural_exponent(self, exponent: Scalar, node: ast.AST) -> Scalar:
        """The exponent of an integer, as one that is known not to be negative."""
        if exponent.type.kind == "u" or exponent.type.is_bool:
            return exponent
        if isinstance(exponent, Constant) and int(exponent.value) >= 0:
            return exponent
        if isinstance(exponent, Runtime):
            least = self.path.bounds.least(exponent.expr)
            if least is not None and least >= 0:
                return Runtime(UINT64, Cast(UINT64, exponent.expr))
        self.fail(
            node,
            "an integer to a power that may be negative",
            "Make the base floating, e.g. float(x) ** n, or the exponent unsigned: "
            "x ** np.uint32(n).",
        )

    def unary(self, op: UnaryOp, a: Scalar, node: ast.AST) -> Scalar:
        """``op a``; ``not`` is True for 0."""
        if op == "not":
            truth = self.truth(a, node)
            if isinstance(truth, Constant):
                return Constant(WEAK_BOOL, not truth.value)
            return Runtime(WEAK_BOOL, negated(truth.expr))
        if a.type.is_bool:
            symbol = {"neg": "-", "pos": "+", "invert": "~"}[op]
            hint = "Use 'not x'." if op == "invert" else "Convert it first: int(x)."
            self.fail(node, f"{symbol} of a bool", hint)
        if op == "invert" and a.type.is_float:
            self.fail(node, f"~ of {type_name(a.type)}", "It needs an integer.")
        if isinstance(a, Constant):
            return self.fold(_FOLD[op], [a.value], node)
        if op == "invert" and a.type.strong == INT64:  # as an index may be: analysis knows sums
            return Runtime(a.type, Binary(INT64, "sub", Const(INT64, -1), a.expr))
        return Runtime(a.type, Unary(a.type.strong, op, a.expr))

    # --------------------------------------------------------------- comparisons
    def compare(self, op: CompareOp, a: Scalar, b: Scalar, node: ast.AST) -> Scalar:
        """``a op b``, exact for integers of different types."""
        result = WEAK_BOOL if a.type.weak and b.type.weak else BOOL
        if isinstance(a, Constant) and isinstance(b, Constant):
            if a.type.is_float or b.type.is_float:
                return self.fold(_FOLD[op], [a.value, b.value], node)
            return Constant(result, result.dtype.type(_FOLD[op](int(a.value), int(b.value))))
        for constant, other in ((a, b), (b, a)):
            if not isinstance(constant, Constant) or not other.type.is_integer:
                continue
            if constant.type.is_integer and (constant.type.weak or other.type.weak):
                if fits(constant.value, other.type):
                    lhs, rhs = (self.convert(s, other.type.strong, node) for s in (a, b))
                    return Runtime(result, Compare(op, lhs, rhs))
                # Out of range, so all of the type's values lie on one side.
                order = [int(constant.value), 0] if constant is a else [0, int(constant.value)]
                return Constant(result, result.dtype.type(_FOLD[op](*order)))
        common = comparison_type(a.type, b.type)
        if common is None and any(s.type == WEAK_INT and self.holds(UINT64, s) for s in (a, b)):
            common = UINT64
        if common is None:
            self.fail(
                node,
                f"no type holds both {type_name(a.type)} and {type_name(b.type)}, so they "
                "cannot be compared exactly",
                "Convert one of them, e.g. np.int64(x) or np.uint64(k).",
            )
        lhs, rhs = self.convert(a, common, node), self.convert(b, common, node)
        return Runtime(result, Compare(op, lhs, rhs))

    def truth(self, a: Scalar, node: ast.AST) -> Scalar:
        """Python's truth value: a bool is itself, a number is true unless 0."""
        if a.type.is_bool:
            return a
        if isinstance(a, Constant):
            return Constant(WEAK_BOOL, bool(a.value))
        zero = self.convert(Constant(a.type, a.type.dtype.type(0)), a.type.strong, node)
        return Runtime(WEAK_BOOL, Compare("ne", a.expr, zero))

    # ------------------------------------------------------------------- choices
    def holds(self, target: ScalarType, number: Scalar) -> bool:
        """Whether an integer type is known to hold a Python int, or may be taken to."""
        if lies_in(number, target, self.path.bounds):
            return True
        return isinstance(number, Runtime) and self.kernel.take_to_fit(number.expr)

    def joined(
        self, a: Scalar, b: Scalar, node: ast.AST, what: str, holds: Holds | None = None
    ) -> ScalarType:
        """The type of a choice between two numbers; ``holds``: whether an integer type holds a
        Python int as far as that may be chosen."""
        common = common_type([a, b], holds or self.holds)
        if common is None:
            self.fail(
                node,
                f"{what} has type {type_name(a.type)} or {type_name(b.type)}",
                "Convert one to the other's type, e.g. "
                f"{example_cast(arithmetic_type(a.type, b.type))}.",
            )
        for one in (a, b):
            self.note_widening(one.type, common, what, self.span(node))
        return common

    def select(
        self, cond: Scalar, a: Scalar, b: Scalar, common: ScalarType, node: ast.AST
    ) -> Scalar:
        """``a if cond else b`` as one expression."""
        if isinstance(cond, Constant):
            chosen = a if cond.value else b
            return self.retyped(chosen, common, node)
        then, orelse = self.convert(a, common.strong, node), self.convert(b, common.strong, node)
        return Runtime(common, Select(common.strong, cond.expr, then, orelse))

    def retyped(self, a: Scalar, target: ScalarType, node: ast.AST) -> Scalar:
        """The number in another type, weak or not; a constant stays one."""
        expr = self.convert(a, target.strong, node)
        if not isinstance(expr, Const):
            return Runtime(target, expr)
        return Constant(target, expr.value if target.weak else target.dtype.type(expr.value))

    def smaller(self, function: str, a: Scalar, b: Scalar, node: ast.AST) -> Scalar:
        """Python's ``min`` and ``max`` (``pymin``, ``pymax``) of two numbers."""
        if a.type.is_bool or b.type.is_bool:
            self.fail(node, "min or max of a bool", "Use 'and' and 'or', or convert: int(x).")
        common = self.joined(a, b, node, "the result", partial(self._holds_chosen, function))
        weak = a if a.type.weak else b
        same_form = common.is_float or a.type.strong == b.type.strong
        if same_form or isinstance(weak, Constant):
            arguments = tuple(self.convert(s, common.strong, node) for s in (a, b))
            return Runtime(common, Call(common.strong, function, arguments))
        a, b = self.spilled(a, "first", node), self.spilled(b, "second", node)
        replaces = self.compare("lt" if function == "pymin" else "gt", b, a, node)
        return self.select(replaces, b, a, common, node)

    def _holds_chosen(self, function: str, other: ScalarType, weak: Scalar) -> bool:
        """Whether a type holds the smaller, or the greater, of its numbers and a Python int."""
        if isinstance(weak, Constant):
            return fits(weak.value, other)
        low, high = integer_limits(other.dtype)
        if function == "pymin":
            least = self.path.bounds.least(weak.expr)
            held = least is not None and least >= low
        else:
            greatest = self.path.bounds.greatest(weak.expr)
            held = other.bits == 64 or (greatest is not None and greatest <= high)
        return held or self.kernel.take_to_fit(weak.expr)

    def index(self, a: Scalar, node: ast.AST) -> Expr:
        """The number as an array index."""
        if not a.type.is_integer:
            self.fail(
                node,
                f"an index of type {type_name(a.type)}",
                "Indices are integers: convert it, e.g. int(x).",
            )
        return self.convert(a, INT64, node)


def number_bits(a: Constant) -> int:
    """How large a Python int is as an exponent; 0 for other numbers."""
    return abs(a.value) if isinstance(a.value, int) else 0


def example_cast(scalar: ScalarType) -> str:
    """How to convert to a type, for hints."""
    return f"{constructor(scalar)}(…)"


def as_number(value: object) -> Number:
    """A Python number without its subclass (an IntEnum's member, say)."""
    if isinstance(value, (np.generic, bool)):
        return cast(Number, value)
    return int(value) if isinstance(value, int) else cast(float, value)


_MOST_FACTORS = 8
"""Of powers that are written as products, which are half a unit in the last place off for each
multiplication, or a little more; a device's ``pow`` may be 16 off (OpenCL C 3.0, table 65)."""


def _whole_exponent(op: BinaryOp, exponent: Expr) -> int | None:
    """The exponent of a power of a float32 or float64 that is a product of 3 or more factors: by a
    constant whole number, so that each device computes the same, in a tenth of the time."""
    if op != "pow" or exponent.type not in (FLOAT32, FLOAT64) or not isinstance(exponent, Const):
        return None
    value = float(exponent.value)
    return int(value) if value.is_integer() and 3 <= value <= _MOST_FACTORS else None


def _product(base: Expr, exponent: int) -> Expr:
    """``base`` to the ``exponent``, by squares (Knuth, The Art of Computer Programming, 4.6.3)."""
    square, result = base, None
    while True:
        if exponent & 1:
            result = square if result is None else Binary(base.type, "mul", result, square)
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        square = Binary(base.type, "mul", square, square)
