"""The functions that kernels may call: built-in, ``math``'s and NumPy's.

Each has a handler that turns typed arguments into a typed value.  A call whose arguments are
all constants is computed at compile time, with the function's meaning in kernels
(``language.scalar_functions``).
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from fusionq.frontend.operators import Operators
from fusionq.frontend.typing_rules import WEAK_BOOL, arithmetic_type, result_type, type_name
from fusionq.frontend.values import Constant, Runtime, Scalar, Value
from fusionq.ir.functions import FLOAT_FUNCTIONS, PREDICATES
from fusionq.ir.nodes import Binary, BinaryOp, Call, Cast, CompareOp, Const, Expr, UnaryOp
from fusionq.ir.types import BOOL, FLOAT16, FLOAT32, WEAK_FLOAT, WEAK_INT, ScalarType
from fusionq.language.casts import cast
from fusionq.language.scalar_functions import (
    MATH_FUNCTIONS,
    MATH_NAMES,
    round_to_int,
    to_int,
)

Handler: TypeAlias = Callable[[Operators, Sequence[Scalar], ast.Call], Value]
_HANDLERS: dict[object, tuple[int, int, Handler]] = {}
"""Function → least and greatest number of arguments, handler."""
_ANY = 1000


def _register(function: object, handler: Handler, least: int, greatest: int | None = None) -> None:
    _HANDLERS[function] = (least, least if greatest is None else greatest, handler)


def call_scalar_function(
    lowering: Operators, function: object, arguments: Sequence[Value], node: ast.Call
) -> Value | None:
    """The value of calling a function of the table; None if the table does not have it."""
    try:
        entry = _HANDLERS.get(function)
    except TypeError:  # not hashable
        return None
    if entry is None:
        return None
    least, greatest, handler = entry
    name = ast.unparse(node.func)
    if not least <= len(arguments) <= greatest:
        count = str(least) if least == greatest else f"{least} or more"
        lowering.fail(
            node,
            f"{name} takes {count} argument(s) in a kernel, not {len(arguments)}",
            "Leave optional arguments out.",
        )
    scalars = [lowering.scalar(a, n) for a, n in zip(arguments, node.args, strict=True)]
    return handler(lowering, scalars, node)


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


def _all_constant(arguments: Sequence[Scalar]) -> list[Any] | None:
    values = [a.value for a in arguments if isinstance(a, Constant)]
    return values if len(values) == len(arguments) else None


def _numpy_type(
    lowering: Operators, function: Callable[..., Any], arguments: Sequence[Scalar], node: ast.Call
) -> ScalarType:
    """The type that NumPy gives the call."""
    found = result_type(function, [a.type for a in arguments])
    if found is None:
        types = ", ".join(type_name(a.type) for a in arguments)
        lowering.fail(
            node,
            f"{ast.unparse(node.func)} takes no {types}",
            "Convert the arguments first, e.g. np.float32(x).",
        )
    return found


def _float_function(
    canonical: str, typing: Callable[..., Any], meaning: Callable[..., Any], weak: bool
) -> Handler:
    """``typing``: the NumPy function whose result type counts; ``weak``: Python numbers give a
    Python float, as in ``math``."""

    def handler(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        if canonical in _ROUNDING and not arguments[0].type.is_float:
            # Integers stay what they are; NumPy itself does so from 2.1 on.
            return _strengthened(lowering, arguments[0], node)
        constants = _all_constant(arguments)
        if constants is not None:
            return lowering.fold(meaning, constants, node)
        result = _numpy_type(lowering, typing, arguments, node)
        if not result.is_float:
            lowering.fail(
                node,
                f"{ast.unparse(node.func)} of integers",
                "Convert the arguments to a floating type, or use %.",
            )
        value = Call(result, canonical, _converted(lowering, arguments, result, node))
        return Runtime(_weak_if(weak, arguments, result), value)

    return handler


def _weak_if(weak: bool, arguments: Sequence[Scalar], result: ScalarType) -> ScalarType:
    return WEAK_FLOAT if weak and all(a.type.weak for a in arguments) else result


def _math_power(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    constants = _all_constant(arguments)
    if constants is not None:
        return lowering.fold(MATH_FUNCTIONS["pow"], constants, node)
    result = _numpy_type(lowering, np.hypot, arguments, node)
    lhs, rhs = _converted(lowering, arguments, result, node)
    return Runtime(_weak_if(True, arguments, result), Binary(result, "pow", lhs, rhs))


def _fabs(meaning: Callable[..., Any], weak: bool) -> Handler:
    return _float_function("abs", np.fabs, meaning, weak)


def _rounding(canonical: str, meaning: Callable[[Any], int]) -> Handler:
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


def _unit_conversion(
    function: Callable[..., Any], meaning: Callable[..., Any], weak: bool
) -> Handler:
    """``degrees`` and ``radians``: a product with a constant, in float16 computed in float32."""

    def handler(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        constants = _all_constant(arguments)
        if constants is not None:
            return lowering.fold(meaning, constants, node)
        result = _numpy_type(lowering, function, arguments, node)
        wide = FLOAT32 if result == FLOAT16 else result
        factor = Const(wide, float(function(wide.dtype.type(1))))
        (value,) = _converted(lowering, arguments, result, node)
        product: Expr = Binary(wide, "mul", value if wide == result else Cast(wide, value), factor)
        product = product if wide == result else Cast(result, product)
        return Runtime(_weak_if(weak, arguments, result), product)

    return handler


def _predicate(canonical: str, weak: bool) -> Handler:
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
def _same_type(canonical: str, function: Callable[..., Any]) -> Handler:
    """NumPy functions that keep the type of their arguments' arithmetic."""

    def handler(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        constants = _all_constant(arguments)
        if constants is not None:
            return lowering.fold(function, constants, node)
        if all(a.type.is_bool for a in arguments):
            lowering.fail(
                node, f"{ast.unparse(node.func)} of bools", "Use & | 'not', or convert: int(x)."
            )
        result = _numpy_type(lowering, function, arguments, node)
        return Runtime(
            result, Call(result, canonical, _converted(lowering, arguments, result, node))
        )

    return handler


def _python_abs(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    (argument,) = arguments
    if argument.type.is_bool:
        lowering.fail(node, "abs of a bool", "Convert it first: int(x).")
    if isinstance(argument, Constant):
        return lowering.fold(abs, [argument.value], node)
    return Runtime(argument.type, Call(argument.type.strong, "abs", (argument.expr,)))


def _extremum(canonical: str) -> Handler:
    def handler(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        result = arguments[0]
        for argument in arguments[1:]:
            result = lowering.smaller(canonical, result, argument, node)
        return result

    return handler


def _clip(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    constants = _all_constant(arguments)
    if constants is not None:
        return lowering.fold(np.clip, constants, node)
    result = _numpy_type(lowering, np.clip, arguments, node)
    if result.is_bool:
        lowering.fail(node, "clip of bools", "Convert them first: int(x).")
    value, low, high = _converted(lowering, arguments, result, node)
    raised = Call(result, "maximum", (value, low))
    return Runtime(result, Call(result, "minimum", (raised, high)))


# ------------------------------------------------------------------- operators as functions
def _strengthened(lowering: Operators, value: Scalar, node: ast.AST) -> Scalar:
    """A NumPy function gives NumPy scalars, also for Python numbers."""
    return lowering.retyped(value, value.type.strong, node)


def _binary(op: BinaryOp) -> Handler:
    def handler(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        return _strengthened(lowering, lowering.binary(op, arguments[0], arguments[1], node), node)

    return handler


def _compare(op: CompareOp) -> Handler:
    def handler(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        return _strengthened(lowering, lowering.compare(op, arguments[0], arguments[1], node), node)

    return handler


def _logical(op: BinaryOp) -> Handler:
    """NumPy's logical functions: both operands are evaluated."""

    def handler(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        a, b = (lowering.truth(argument, node) for argument in arguments)
        return _strengthened(lowering, lowering.binary(op, a, b, node), node)

    return handler


def _python_power(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    return lowering.binary("pow", arguments[0], arguments[1], node)


def _python_binary(op: BinaryOp) -> Handler:
    """A function of ``operator``: the types are those of the operator itself."""
    return lambda lowering, arguments, node: lowering.binary(op, arguments[0], arguments[1], node)


def _python_compare(op: CompareOp) -> Handler:
    return lambda lowering, arguments, node: lowering.compare(op, arguments[0], arguments[1], node)


def _python_unary(op: UnaryOp) -> Handler:
    return lambda lowering, arguments, node: lowering.unary(op, arguments[0], node)


def _negative(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    return _strengthened(lowering, lowering.unary("neg", arguments[0], node), node)


def _positive(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    return _strengthened(lowering, lowering.unary("pos", arguments[0], node), node)


def _invert(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    return _strengthened(lowering, lowering.unary("invert", arguments[0], node), node)


def _logical_not(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    return _strengthened(lowering, lowering.unary("not", arguments[0], node), node)


def _square(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    value = lowering.spilled(arguments[0], "base", node)
    return _strengthened(lowering, lowering.binary("mul", value, value, node), node)


def _reciprocal(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    (value,) = arguments
    if not value.type.is_float:
        lowering.fail(node, "reciprocal of an integer is an integer", "Write 1 / x.")
    one = Constant(value.type, 1.0)
    return _strengthened(lowering, lowering.binary("truediv", one, value, node), node)


def _where(lowering: Operators, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    """``numpy.where``: both choices are evaluated; their types promote."""
    result = arithmetic_type(arguments[1].type, arguments[2].type).strong
    cond = lowering.truth(arguments[0], node)
    a, b = (lowering.spilled(argument, "choice", node) for argument in arguments[1:])
    return lowering.select(cond, a, b, result, node)


def _fill_operators() -> None:
    binary: dict[object, BinaryOp] = {
        operator.add: "add", operator.sub: "sub", operator.mul: "mul",
        operator.truediv: "truediv", operator.floordiv: "floordiv", operator.mod: "mod",
        operator.pow: "pow", operator.and_: "and", operator.or_: "or", operator.xor: "xor",
        operator.lshift: "shl", operator.rshift: "shr",
    }  # fmt: skip
    for function, op in binary.items():
        _register(function, _python_binary(op), 2)
    comparisons: dict[object, CompareOp] = {
        operator.lt: "lt", operator.le: "le", operator.gt: "gt", operator.ge: "ge",
        operator.eq: "eq", operator.ne: "ne",
    }  # fmt: skip
    for function, comparison in comparisons.items():
        _register(function, _python_compare(comparison), 2)
    unary: dict[object, UnaryOp] = {
        operator.neg: "neg", operator.pos: "pos", operator.invert: "invert", operator.not_: "not",
    }  # fmt: skip
    for function, sign in unary.items():
        _register(function, _python_unary(sign), 1)
    _register(operator.abs, _python_abs, 1)


def _fill_table() -> None:
    for name, canonical in MATH_NAMES.items():
        meaning = MATH_FUNCTIONS[name]
        typing = getattr(np, canonical, np.exp)
        if hasattr(math, name):  # cbrt and exp2 came with Python 3.11
            handler = _float_function(canonical, typing, meaning, weak=True)
            _register(getattr(math, name), handler, FLOAT_FUNCTIONS[canonical])
    for canonical, count in FLOAT_FUNCTIONS.items():
        function = getattr(np, canonical, None)
        if function is not None:
            _register(function, _float_function(canonical, function, function, weak=False), count)
    for canonical in PREDICATES:
        _register(getattr(np, canonical), _predicate(canonical, weak=False), 1)
    for name in ("isnan", "isinf", "isfinite"):
        _register(getattr(math, name), _predicate(name, weak=True), 1)
    for name in ("floor", "ceil", "trunc"):
        _register(getattr(math, name), _rounding(name, MATH_FUNCTIONS[name]), 1)
    for name in ("degrees", "radians"):
        function = getattr(np, name)
        _register(
            getattr(math, name), _unit_conversion(function, MATH_FUNCTIONS[name], weak=True), 1
        )
        _register(function, _unit_conversion(function, function, weak=False), 1)
    _register(np.rad2deg, _unit_conversion(np.degrees, np.degrees, weak=False), 1)
    _register(np.deg2rad, _unit_conversion(np.radians, np.radians, weak=False), 1)
    for canonical, function in (
        ("abs", np.abs), ("sign", np.sign), ("minimum", np.minimum), ("maximum", np.maximum),
        ("fmin", np.fmin), ("fmax", np.fmax),
    ):  # fmt: skip
        _register(function, _same_type(canonical, function), function.nin)
    binary: dict[object, BinaryOp] = {
        np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "truediv",
        np.floor_divide: "floordiv", np.remainder: "mod", np.power: "pow",
        np.bitwise_and: "and", np.bitwise_or: "or", np.bitwise_xor: "xor",
        np.left_shift: "shl", np.right_shift: "shr",
    }  # fmt: skip
    for function, op in binary.items():
        _register(function, _binary(op), 2)
    comparisons: dict[object, CompareOp] = {
        np.less: "lt", np.less_equal: "le", np.greater: "gt", np.greater_equal: "ge",
        np.equal: "eq", np.not_equal: "ne",
    }  # fmt: skip
    for function, comparison in comparisons.items():
        _register(function, _compare(comparison), 2)
    _register(np.logical_and, _logical("and"), 2)
    _register(np.logical_or, _logical("or"), 2)
    _register(np.logical_xor, _logical("xor"), 2)
    _register(np.logical_not, _logical_not, 1)
    _register(np.negative, _negative, 1)
    _register(np.positive, _positive, 1)
    _register(np.invert, _invert, 1)
    _register(np.square, _square, 1)
    _register(np.reciprocal, _reciprocal, 1)
    _register(np.where, _where, 3)
    _register(np.clip, _clip, 3)
    _register(np.fabs, _fabs(np.fabs, weak=False), 1)
    _register(math.fabs, _fabs(MATH_FUNCTIONS["fabs"], weak=True), 1)
    _register(math.pow, _math_power, 2)
    _register(abs, _python_abs, 1)
    _register(round, _rounding("rint", round_to_int), 1)
    _register(pow, _python_power, 2)
    _register(min, _extremum("pymin"), 2, _ANY)
    _register(max, _extremum("pymax"), 2, _ANY)


_fill_table()
_fill_operators()
