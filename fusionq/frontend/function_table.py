"""The functions that kernels may call: built-in, ``math``'s, NumPy's and the kernel language's.

Each has a handler of ``function_handlers``.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Sequence

import numpy as np

from fusionq.frontend.callees import entry_of
from fusionq.frontend.function_handlers import (
    Handler,
    binary_function,
    bit_count,
    bits,
    choice,
    clip,
    comparison_function,
    extremum,
    fabs,
    float_function,
    fused_multiply_add,
    inverse_root,
    invert,
    logical,
    logical_not,
    math_power,
    negative,
    positive,
    predicate,
    python_abs,
    python_binary,
    python_compare,
    python_power,
    python_unary,
    reciprocal,
    rounding,
    same_type,
    scaled,
    square,
    unit_conversion,
)
from fusionq.frontend.operators import Operators
from fusionq.frontend.refused import COMBINE
from fusionq.frontend.values import ArrayValue, Value
from fusionq.ir.functions import FLOAT_FUNCTIONS, PREDICATES
from fusionq.ir.nodes import BinaryOp, CompareOp, UnaryOp
from fusionq.language.math_functions import clz, cospi, fma, popcount, rsqrt, sinpi
from fusionq.language.scalar_functions import MATH_FUNCTIONS, MATH_NAMES, round_to_int

_HANDLERS: dict[object, tuple[int, int, Handler]] = {}
"""Function → least and greatest number of arguments, handler."""
_ANY = 1000


def _register(function: object, handler: Handler, least: int, greatest: int | None = None) -> None:
    _HANDLERS[function] = (least, least if greatest is None else greatest, handler)


def call_scalar_function(
    lowering: Operators, function: object, arguments: Sequence[Value], node: ast.Call
) -> Value | None:
    """The value of calling a function of the table; None if the table does not have it."""
    entry = entry_of(_HANDLERS, function)
    if entry is None:
        return None
    least, greatest, handler = entry
    name = ast.unparse(node.func)
    if not least <= len(arguments) <= greatest:
        count = str(least) if least == greatest else f"{least} or more"
        lowering.fail(
            node,
            f"{name} takes {count} argument(s) in a kernel, not {len(arguments)}",
            _number_of_arguments(arguments, least),
        )
    scalars = [lowering.scalar(a, n) for a, n in zip(arguments, node.args, strict=True)]
    return handler(lowering, scalars, node)


def _number_of_arguments(arguments: Sequence[Value], least: int) -> str:
    """What to write instead of too few or too many."""
    if len(arguments) > least:
        return "Leave optional arguments out."
    if any(isinstance(argument, ArrayValue) for argument in arguments):
        return COMBINE
    return "Give that many numbers."


def _fill_own() -> None:
    _register(cospi, float_function("cospi", np.cos, cospi, weak=False), 1)
    _register(sinpi, float_function("sinpi", np.sin, sinpi, weak=False), 1)
    _register(fma, fused_multiply_add, 3)
    if hasattr(math, "fma"):  # from Python 3.13 on
        _register(math.fma, fused_multiply_add, 3)
    _register(rsqrt, inverse_root, 1)
    _register(clz, bits("clz", clz), 1)
    _register(popcount, bits("popcount", popcount), 1)
    if hasattr(np, "bitwise_count"):  # from NumPy 2.0 on
        _register(np.bitwise_count, bit_count, 1)
    _register(math.ldexp, scaled(weak=True), 2)
    _register(np.ldexp, scaled(weak=False), 2)


def _fill_operators() -> None:
    binary: dict[object, BinaryOp] = {
        operator.add: "add", operator.sub: "sub", operator.mul: "mul",
        operator.truediv: "truediv", operator.floordiv: "floordiv", operator.mod: "mod",
        operator.pow: "pow", operator.and_: "and", operator.or_: "or", operator.xor: "xor",
        operator.lshift: "shl", operator.rshift: "shr",
    }  # fmt: skip
    for function, op in binary.items():
        _register(function, python_binary(op), 2)
    comparisons: dict[object, CompareOp] = {
        operator.lt: "lt", operator.le: "le", operator.gt: "gt", operator.ge: "ge",
        operator.eq: "eq", operator.ne: "ne",
    }  # fmt: skip
    for function, comparison in comparisons.items():
        _register(function, python_compare(comparison), 2)
    unary: dict[object, UnaryOp] = {
        operator.neg: "neg", operator.pos: "pos", operator.invert: "invert", operator.not_: "not",
    }  # fmt: skip
    for function, sign in unary.items():
        _register(function, python_unary(sign), 1)
    _register(operator.abs, python_abs, 1)


def _fill_table() -> None:
    for name, canonical in MATH_NAMES.items():
        meaning = MATH_FUNCTIONS[name]
        typing = getattr(np, canonical, np.exp)
        if hasattr(math, name):  # cbrt and exp2 came with Python 3.11
            handler = float_function(canonical, typing, meaning, weak=True)
            _register(getattr(math, name), handler, FLOAT_FUNCTIONS[canonical])
    for canonical, count in FLOAT_FUNCTIONS.items():
        function = getattr(np, canonical, None)
        if function is not None:
            _register(function, float_function(canonical, function, function, weak=False), count)
    for canonical in PREDICATES:
        _register(getattr(np, canonical), predicate(canonical, weak=False), 1)
    for name in ("isnan", "isinf", "isfinite"):
        _register(getattr(math, name), predicate(name, weak=True), 1)
    for name in ("floor", "ceil", "trunc"):
        _register(getattr(math, name), rounding(name, MATH_FUNCTIONS[name]), 1)
    for name in ("degrees", "radians"):
        function = getattr(np, name)
        _register(
            getattr(math, name), unit_conversion(function, MATH_FUNCTIONS[name], weak=True), 1
        )
        _register(function, unit_conversion(function, function, weak=False), 1)
    for function in (np.rad2deg, np.deg2rad):
        _register(function, unit_conversion(function, function, weak=False), 1)
    for canonical, function in (
        ("abs", np.abs), ("sign", np.sign), ("minimum", np.minimum), ("maximum", np.maximum),
        ("fmin", np.fmin), ("fmax", np.fmax),
    ):  # fmt: skip
        _register(function, same_type(canonical, function), function.nin)
    binary: dict[object, BinaryOp] = {
        np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "truediv",
        np.floor_divide: "floordiv", np.remainder: "mod", np.power: "pow",
        np.bitwise_and: "and", np.bitwise_or: "or", np.bitwise_xor: "xor",
        np.left_shift: "shl", np.right_shift: "shr",
    }  # fmt: skip
    for function, op in binary.items():
        _register(function, binary_function(op), 2)
    comparisons: dict[object, CompareOp] = {
        np.less: "lt", np.less_equal: "le", np.greater: "gt", np.greater_equal: "ge",
        np.equal: "eq", np.not_equal: "ne",
    }  # fmt: skip
    for function, comparison in comparisons.items():
        _register(function, comparison_function(comparison), 2)
    _register(np.logical_and, logical("and"), 2)
    _register(np.logical_or, logical("or"), 2)
    _register(np.logical_xor, logical("xor"), 2)
    _register(np.logical_not, logical_not, 1)
    _register(np.negative, negative, 1)
    _register(np.positive, positive, 1)
    _register(np.invert, invert, 1)
    _register(np.square, square, 1)
    _register(np.reciprocal, reciprocal, 1)
    _register(np.where, choice, 3)
    _register(np.clip, clip, 3)
    _register(np.fabs, fabs(np.fabs, weak=False), 1)
    _register(math.fabs, fabs(MATH_FUNCTIONS["fabs"], weak=True), 1)
    _register(math.pow, math_power, 2)
    _register(abs, python_abs, 1)
    _register(round, rounding("rint", round_to_int), 1)
    _register(pow, python_power, 2)
    _register(min, extremum("pymin"), 2, _ANY)
    _register(max, extremum("pymax"), 2, _ANY)


_fill_table()
_fill_own()
_fill_operators()
