"""The functions that kernels may call: built-in, ``math``'s and NumPy's.

Each has a handler that turns typed arguments into a typed value.  A call whose arguments are
all constants is computed at compile time, with the function's meaning in kernels
(``language.scalar_functions``).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from fusionq.frontend.operators import Operators
from fusionq.frontend.typing_rules import (
    WEAK_BOOL,
    arithmetic_type,
    floating,
    result_type,
    type_name,
)
from fusionq.frontend.values import Constant, Runtime, Scalar, Value
from fusionq.ir.nodes import Binary, BinaryOp, Call, Cast, CompareOp, Const, Expr, UnaryOp
from fusionq.ir.types import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    INT32,
    INT64,
    UINT8,
    WEAK_FLOAT,
    WEAK_INT,
    ScalarType,
)
from fusionq.language.casts import cast
from fusionq.language.math_functions import (
    fma,
    ldexp,
    popcount,
    rsqrt,
)
from fusionq.language.scalar_functions import (
    MATH_FUNCTIONS,
    to_int,
)

Handler: TypeAlias = Callable[[Operators, Sequence[Scalar], ast.Call], Value]
def convert_number(
    lowering: Operators, target: ScalarType, argument: Scalar, node: ast.AST
) -> Scalar:
    """``int(x)``, ``float(x)``, ``bool(x)``, ``np.float32(x)`` and its like."""
    if target == WEAK_BOOL:
        truth = lowering.truth(argument, node)
        if isinstance(truth, Constant):
            return Constant(WEAK_BOOL, bool(truth.value))
        return Runtime(WEAK_BOOL, truth.expr)
    if not isinstance(argument, Constant):
        return Runtime(target, lowering.convert(argument, target.strong, node))
    if target == WEAK_INT:
        return Constant(WEAK_INT, to_int(argument.value))
    if target == WEAK_FLOAT:
        return lowering.fold(float, [argument.value], node)
    lowering.convert(argument, target, node)  # refuses a Python int out of range
    return Constant(target, cast(argument.value, target.dtype))


# --------------------------------------------------------------------- floating functions
_ROUNDING = ("floor", "ceil", "trunc")


def _converted(
    lowering: Operators, arguments: Sequence[Scalar], target: ScalarType, node: ast.AST
) -> tuple[Expr, ...]:
    return tuple(lowering.convert(a, target, node) for a in arguments)


def all_constant(arguments: Sequence[Scalar]) -> list[Any] | None:
    """The arguments' values where all are constants; else None."""
    values = [a.value for a in arguments if isinstance(a, Constant)]
    return values if len(values) == len(arguments) else None


def numpy_type(
    lowering: Operators,
    function: Callable[..., Any],
    arguments: Sequence[Scalar],
    node: ast.Call,
    examples: str = "np.float32(x)",
) -> ScalarType:
    """The type that NumPy gives the call; an error proposes the conversions ``examples``."""
    found = result_type(function, [a.type for a in arguments])
    if found is None:
        types = ", ".join(type_name(a.type) for a in arguments)
        lowering.fail(
            node,
            f"{ast.unparse(node.func)} takes no {types}",
            f"Convert the arguments first, e.g. {examples}.",
        )
    return found


def float_function(
    canonical: str, typing: Callable[..., Any], meaning: Callable[..., Any], weak: bool
) -> Handler:
    """``typing``: the NumPy function whose result type counts; ``weak``: Python numbers give a
    Python float, as in ``math``."""

    def handler(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        if canonical in _ROUNDING and not arguments[0].type.is_float:
            # Integers stay what they are; NumPy itself does so from 2.1 on.
            return _strengthened(lowering, arguments[0], node)
        constants = all_constant(arguments)
        if constants is not None:
            return lowering.fold(meaning, constants, node)
        result = numpy_type(lowering, typing, arguments, node)
        if not result.is_float:
            lowering.fail(
                node,
                f"{ast.unparse(node.func)} of integers",
                "Convert the arguments to a floating type, or use %.",
            )
        if canonical == "nextafter" and result == BFLOAT16:
            lowering.fail(
                node,
                f"{ast.unparse(node.func)} of bfloat16",
                "Take that of float32, or add what the next number is away.",
            )
        value = Call(result, canonical, _converted(lowering, arguments, result, node))
        return Runtime(_weak_if(weak, arguments, result), value)

    return handler


def _weak_if(weak: bool, arguments: Sequence[Scalar], result: ScalarType) -> ScalarType:
    return WEAK_FLOAT if weak and all(a.type.weak for a in arguments) else result


def math_power(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    constants = all_constant(arguments)
    if constants is not None:
        return lowering.fold(MATH_FUNCTIONS["pow"], constants, node)
    result = numpy_type(lowering, np.hypot, arguments, node)
    lhs, rhs = _converted(lowering, arguments, result, node)
    return Runtime(_weak_if(True, arguments, result), Binary(result, "pow", lhs, rhs))


def fabs(meaning: Callable[..., Any], weak: bool) -> Handler:
    return float_function("abs", np.fabs, meaning, weak)


def rounding(canonical: str, meaning: Callable[[Any], int]) -> Handler:
    """``math.floor``, ``ceil``, ``trunc`` and built-in ``round``: a Python int."""

    def handler(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        (argument,) = arguments
        if isinstance(argument, Constant):
            return lowering.fold(meaning, [argument.value], node)
        rounded = argument.expr
        if argument.type.is_float:
            rounded = Call(argument.type.strong, canonical, (rounded,))
        return convert_number(lowering, WEAK_INT, Runtime(argument.type.strong, rounded), node)

    return handler


def unit_conversion(
    function: Callable[..., Any], meaning: Callable[..., Any], weak: bool
) -> Handler:
    """``degrees`` and ``radians``: a product with a constant, in types of 16 bits computed in
    float32."""

    def handler(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        constants = all_constant(arguments)
        if constants is not None:
            return lowering.fold(meaning, constants, node)
        result = numpy_type(lowering, function, arguments, node)
        wide = FLOAT32 if result in (BFLOAT16, FLOAT16) else result
        factor = Const(wide, float(function(wide.dtype.type(1))))
        (value,) = _converted(lowering, arguments, result, node)
        product: Expr = Binary(wide, "mul", value if wide == result else Cast(wide, value), factor)
        product = product if wide == result else Cast(result, product)
        return Runtime(_weak_if(weak, arguments, result), product)

    return handler


def predicate(canonical: str, weak: bool) -> Handler:
    result = WEAK_BOOL if weak else BOOL

    def handler(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        (argument,) = arguments
        if isinstance(argument, Constant):
            answer = bool(getattr(np, canonical)(argument.value))
            return Constant(result, answer if weak else np.bool_(answer))
        if not argument.type.is_float:
            if canonical == "signbit":
                lowering.fail(node, "signbit of an integer", "Write x < 0.")
            answer = canonical == "isfinite"
            return Constant(result, answer if weak else np.bool_(answer))
        return Runtime(result, Call(BOOL, canonical, (argument.expr,)))

    return handler


# ------------------------------------------------------------------- same-type functions
def same_type(canonical: str, function: Callable[..., Any]) -> Handler:
    """NumPy functions that keep the type of their arguments' arithmetic."""

    def handler(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        constants = all_constant(arguments)
        if constants is not None:
            return lowering.fold(function, constants, node)
        if all(a.type.is_bool for a in arguments):
            lowering.fail(
                node, f"{ast.unparse(node.func)} of bools", "Use & | 'not', or convert: int(x)."
            )
        result = numpy_type(lowering, function, arguments, node)
        return Runtime(
            result, Call(result, canonical, _converted(lowering, arguments, result, node))
        )

    return handler


def python_abs(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    (argument,) = arguments
    if argument.type.is_bool:
        lowering.fail(node, "abs of a bool", "Convert it first: int(x).")
    if isinstance(argument, Constant):
        return lowering.fold(abs, [argument.value], node)
    return Runtime(argument.type, Call(argument.type.strong, "abs", (argument.expr,)))


def extremum(canonical: str) -> Handler:
    def handler(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        result = arguments[0]
        for argument in arguments[1:]:
            result = lowering.smaller(canonical, result, argument, node)
        return result

    return handler


def clip(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    constants = all_constant(arguments)
    if constants is not None:
        return lowering.fold(np.clip, constants, node)
    result = numpy_type(lowering, np.clip, arguments, node)
    if result.is_bool:
        lowering.fail(node, "clip of bools", "Convert them first: int(x).")
    value, low, high = _converted(lowering, arguments, result, node)
    raised = Call(result, "maximum", (value, low))
    return Runtime(result, Call(result, "minimum", (raised, high)))


# ------------------------------------------------------------------- operators as functions
def _strengthened(lowering: Operators, value: Scalar, node: ast.AST) -> Scalar:
    """A NumPy function gives NumPy scalars, also for Python numbers."""
    return lowering.retyped(value, value.type.strong, node)


def binary_function(op: BinaryOp) -> Handler:
    def handler(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        return _strengthened(lowering, lowering.binary(op, arguments[0], arguments[1], node), node)

    return handler


def comparison_function(op: CompareOp) -> Handler:
    def handler(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        return _strengthened(lowering, lowering.compare(op, arguments[0], arguments[1], node), node)

    return handler


def logical(op: BinaryOp) -> Handler:
    """NumPy's logical functions: both operands are evaluated."""

    def handler(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        a, b = (lowering.truth(argument, node) for argument in arguments)
        return _strengthened(lowering, lowering.binary(op, a, b, node), node)

    return handler


def python_power(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    return lowering.binary("pow", arguments[0], arguments[1], node)


def python_binary(op: BinaryOp) -> Handler:
    """A function of ``operator``: the types are those of the operator itself."""
    return lambda lowering, arguments, node: lowering.binary(op, arguments[0], arguments[1], node)


def python_compare(op: CompareOp) -> Handler:
    return lambda lowering, arguments, node: lowering.compare(op, arguments[0], arguments[1], node)


def python_unary(op: UnaryOp) -> Handler:
    return lambda lowering, arguments, node: lowering.unary(op, arguments[0], node)


def negative(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    return _strengthened(lowering, lowering.unary("neg", arguments[0], node), node)


def positive(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    return _strengthened(lowering, lowering.unary("pos", arguments[0], node), node)


def invert(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    return _strengthened(lowering, lowering.unary("invert", arguments[0], node), node)


def logical_not(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    return _strengthened(lowering, lowering.unary("not", arguments[0], node), node)


def square(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    value = lowering.spilled(arguments[0], "base", node)
    return _strengthened(lowering, lowering.binary("mul", value, value, node), node)


def reciprocal(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    (value,) = arguments
    if not value.type.is_float:
        lowering.fail(node, "reciprocal of an integer is an integer", "Write 1 / x.")
    one = Constant(value.type, 1.0)
    return _strengthened(lowering, lowering.binary("truediv", one, value, node), node)


def choice(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    """``numpy.where``: both choices are evaluated; their types promote."""
    result = arithmetic_type(arguments[1].type, arguments[2].type).strong
    cond = lowering.truth(arguments[0], node)
    a, b = (lowering.spilled(argument, "choice", node) for argument in arguments[1:])
    return lowering.select(cond, a, b, result, node)


def fused_multiply_add(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    constants = all_constant(arguments)
    if constants is not None:
        return lowering.fold(fma, constants, node)
    result = floating(reduce(arithmetic_type, [a.type for a in arguments])).strong
    return Runtime(result, Call(result, "fma", _converted(lowering, arguments, result, node)))


def inverse_root(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    constants = all_constant(arguments)
    if constants is not None:
        return lowering.fold(rsqrt, constants, node)
    result = numpy_type(lowering, np.sqrt, arguments, node)
    root = Call(result, "sqrt", _converted(lowering, arguments, result, node))
    return Runtime(result, Binary(result, "truediv", Const(result, 1.0), root))


def bits(canonical: str, function: Callable[..., Any]) -> Handler:
    """``clz`` and ``popcount``: they keep an integer's type."""

    def handler(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        (argument,) = arguments
        if not argument.type.is_integer:
            lowering.fail(
                node,
                f"{ast.unparse(node.func)} of {type_name(argument.type)}",
                "It needs an integer: convert first, e.g. np.int64(x).",
            )
        if isinstance(argument, Constant):
            return lowering.fold(function, [argument.value], node)
        result = argument.type.strong
        return Runtime(result, Call(result, canonical, (argument.expr,)))

    return handler


def bit_count(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    """``numpy.bitwise_count``: of the magnitude, as a uint8."""
    magnitude = python_abs(lowering, arguments, node)
    assert isinstance(magnitude, (Runtime, Constant))
    count = bits("popcount", popcount)(lowering, [magnitude], node)
    assert isinstance(count, (Runtime, Constant))
    return convert_number(lowering, UINT8, count, node)


def scaled(weak: bool) -> Handler:
    def handler(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        value, exponent = arguments
        if not exponent.type.is_integer:
            lowering.fail(
                node,
                f"{ast.unparse(node.func)} with an exponent of type {type_name(exponent.type)}",
                "It is an integer: convert it, e.g. int(x).",
            )
        constants = all_constant(arguments)
        if constants is not None:
            return lowering.fold(ldexp, constants, node)
        result = numpy_type(lowering, np.exp, [value], node)
        wide = lowering.convert(exponent, INT64, node)
        # Beyond these all numbers are zero or infinite.
        limited = Call(INT64, "pymax", (wide, Const(INT64, -5000)))
        limited = Call(INT64, "pymin", (limited, Const(INT64, 5000)))
        (number,) = _converted(lowering, [value], result, node)
        scaled = Call(result, "ldexp", (number, Cast(INT32, limited)))
        return Runtime(_weak_if(weak, [value], result), scaled)

    return handler


