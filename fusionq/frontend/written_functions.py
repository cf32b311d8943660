"""Functions of NumPy and ``math`` whose bodies (``function_bodies``) are inlined, and those that
give two numbers."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from functools import reduce
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np

from fusionq.frontend import function_bodies
from fusionq.frontend.callees import Callee, entry_of
from fusionq.frontend.complex_numbers import ComplexNumbers
from fusionq.frontend.function_handlers import all_constant, float_function, numpy_type
from fusionq.frontend.typing_rules import arithmetic_type, type_name
from fusionq.frontend.values import Constant, ObjectValue, Runtime, Scalar, TupleValue, Value
from fusionq.ir.nodes import Binary, BinaryOp
from fusionq.ir.types import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    WEAK_FLOAT,
    WEAK_INT,
    ScalarType,
)
from fusionq.language.scalar_functions import MATH_FUNCTIONS

Handler: TypeAlias = Callable[[ComplexNumbers, Sequence[Scalar], ast.Call], Value]
Body: TypeAlias = Callable[..., Any]


def call_written_function(
    lowering: ComplexNumbers, function: object, arguments: Sequence[Value], node: ast.Call
) -> Value | None:
    """The value of calling a function of the table below; None if the table does not have it."""
    entry = entry_of(_HANDLERS, function)
    if entry is None:
        return None
    least, greatest, handler = entry
    name = ast.unparse(node.func)
    if not least <= len(arguments) <= greatest:
        lowering.fail(
            node,
            f"{name} takes {least} argument(s) in a kernel, not {len(arguments)}",
            "Give that many numbers.",
        )
    return handler(lowering, [lowering.scalar(a, node) for a in arguments], node)


def _inlined(
    lowering: ComplexNumbers, body: Body, arguments: Sequence[Value], node: ast.Call
) -> Value:
    assert isinstance(body, FunctionType)
    return lowering.inline(Callee(body), arguments, {}, node)


def _type_of(
    lowering: ComplexNumbers, function: Body, arguments: Sequence[Scalar], node: ast.Call
) -> ScalarType:
    return numpy_type(lowering, function, arguments, node, "np.float32(x) or np.int64(k)")


def _retyped(lowering: ComplexNumbers, value: Value, type: ScalarType, node: ast.AST) -> Scalar:
    return lowering.retyped(lowering.scalar(value, node), type, node)


# ------------------------------------------------------------------------ floating numbers
def _floating(typing: Body, meaning: Body, body: Body, weak: bool = False) -> Handler:
    """``typing``: the NumPy function whose result type counts; types of 16 bits are computed in
    float32 and rounded.  ``weak``: Python numbers give a Python float."""

    def handler(lowering: ComplexNumbers, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        constants = all_constant(arguments)
        if constants is not None:
            return lowering.fold(meaning, constants, node)
        result = _type_of(lowering, typing, arguments, node)
        wide = FLOAT32 if result in (BFLOAT16, FLOAT16) else result
        numbers = [_retyped(lowering, _retyped(lowering, a, result, node), wide, node)
                   for a in arguments]  # fmt: skip
        value = _retyped(lowering, _inlined(lowering, body, numbers, node), result, node)
        all_weak = weak and all(a.type.weak for a in arguments)
        return lowering.retyped(value, WEAK_FLOAT, node) if all_weak else value

    return handler




def _spacing(lowering: ComplexNumbers, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    constants = all_constant(arguments)
    if constants is not None:
        return lowering.fold(np.spacing, constants, node)
    result = _type_of(lowering, np.spacing, arguments, node)
    if result == BFLOAT16:
        lowering.fail(node, "np.spacing of bfloat16", "Take that of float32, times 65536.")
    body = function_bodies.spacing_of_float16 if result == FLOAT16 else function_bodies.spacing
    number = _retyped(lowering, arguments[0], result, node)
    return _retyped(lowering, _inlined(lowering, body, [number], node), result, node)


def _float_power(lowering: ComplexNumbers, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    constants = all_constant(arguments)
    if constants is not None:
        return lowering.fold(np.float_power, constants, node)
    lhs, rhs = [lowering.convert(a, FLOAT64, node) for a in arguments]
    return Runtime(FLOAT64, Binary(FLOAT64, "pow", lhs, rhs))


def _nan_to_num(lowering: ComplexNumbers, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    (number,) = arguments
    if not number.type.is_float:
        return _identity(lowering, arguments, node)
    if isinstance(number, Constant):
        return lowering.fold(np.nan_to_num, [number.value], node)
    result = number.type.strong
    if result == BFLOAT16:
        lowering.fail(node, "np.nan_to_num of bfloat16", "Take that of float32.")
    wide = FLOAT32 if result == FLOAT16 else result
    largest = Constant(wide, wide.dtype.type(np.finfo(result.name).max))
    numbers = [_retyped(lowering, number, wide, node), largest]
    found = _inlined(lowering, function_bodies.nan_to_num, numbers, node)
    return _retyped(lowering, found, result, node)


def _rounded(lowering: ComplexNumbers, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    """``np.round(x, decimals)``, as NumPy computes it: the product with a power of ten is rounded
    to an integer, and divided by it."""
    number, *others = arguments
    places = 0
    if others:
        places = lowering.integer_constant(others[0], node.args[1], "the number of decimals")
    if not number.type.is_float and places < 0:
        lowering.fail(node, "an integer rounded to tens", "Write k // 10 * 10, or round a float.")
    if not number.type.is_float:
        return _identity(lowering, [number], node)
    if isinstance(number, Constant):
        return lowering.fold(lambda x: np.round(x, places), [number.value], node)
    number = _retyped(lowering, number, number.type.strong, node)
    power = Constant(WEAK_FLOAT, 10.0 ** abs(places))
    before: BinaryOp = "mul" if places > 0 else "truediv"
    behind: BinaryOp = "truediv" if places > 0 else "mul"
    if places:
        number = lowering.binary(before, number, power, node)
    number = lowering.scalar(_RINT(lowering, [number], node), node)
    return lowering.binary(behind, number, power, node) if places else number


_RINT = float_function("rint", np.rint, np.rint, weak=False)


def _logarithm(lowering: ComplexNumbers, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    """``math.log(x, base)``, as CPython computes it."""
    if len(arguments) == 1:
        return _LOG(lowering, arguments, node)
    number, base = [lowering.scalar(_LOG(lowering, [a], node), node) for a in arguments]
    return lowering.binary("truediv", number, base, node)


_LOG = float_function("log", np.log, MATH_FUNCTIONS["log"], weak=True)


def _modf(weak: bool) -> Handler:
    def handler(lowering: ComplexNumbers, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        result = _type_of(lowering, np.rint, arguments, node)
        number = _retyped(lowering, arguments[0], result, node)
        parts = _inlined(lowering, function_bodies.modf, [number], node)
        assert isinstance(parts, TupleValue)
        kept = WEAK_FLOAT if weak and arguments[0].type.weak else result
        return TupleValue(tuple(_retyped(lowering, part, kept, node) for part in parts.items))

    return handler


# -------------------------------------------------------------------------------- integers
def _integers(typing: Body, meaning: Body, body: Body, weak: bool = False) -> Handler:
    def handler(lowering: ComplexNumbers, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        if len(arguments) > 2:
            first = lowering.scalar(handler(lowering, arguments[:2], node), node)
            return handler(lowering, [first, *arguments[2:]], node)
        constants = all_constant(arguments)
        if constants is not None:
            return lowering.fold(meaning, constants, node)
        result = _type_of(lowering, typing, arguments, node)
        if not result.is_integer:
            types = ", ".join(type_name(a.type) for a in arguments)
            lowering.fail(
                node,
                f"{ast.unparse(node.func)} of {types}",
                "It needs integers of one sign: convert them, e.g. np.int64(k).",
            )
        unsigned = ObjectValue(np.dtype(f"uint{result.bits}").type)
        own = ObjectValue(result.dtype.type)
        numbers = [_retyped(lowering, a, result, node) for a in arguments]
        found = _inlined(lowering, body, [*numbers, unsigned, own], node)
        value = _retyped(lowering, found, result, node)
        all_weak = weak and all(a.type.weak for a in arguments)
        return _retyped(lowering, value, WEAK_INT, node) if all_weak else value

    return handler




def _fmod(lowering: ComplexNumbers, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    """``numpy.fmod``: of floating numbers it is a function of the IR."""
    of_integers = reduce(arithmetic_type, [a.type for a in arguments]).is_integer
    handler = _INTEGER_FMOD if of_integers else _FLOAT_FMOD
    return handler(lowering, arguments, node)


_INTEGER_FMOD = _integers(np.fmod, np.fmod, function_bodies.fmod)
_FLOAT_FMOD = float_function("fmod", np.fmod, np.fmod, weak=False)


# ----------------------------------------------------------------------------- two numbers
def _divmod(strong: bool) -> Handler:
    """``a // b`` and ``a % b``."""

    def handler(lowering: ComplexNumbers, arguments: Sequence[Scalar], node: ast.Call) -> Value:
        a, b = [lowering.spilled(x, "operand", node) for x in arguments]
        both = [lowering.binary(op, a, b, node) for op in ("floordiv", "mod")]
        return TupleValue(
            tuple(lowering.retyped(x, x.type.strong, node) if strong else x for x in both)
        )

    return handler


def _identity(lowering: ComplexNumbers, arguments: Sequence[Scalar], node: ast.Call) -> Value:
    (number,) = arguments
    return lowering.retyped(number, number.type.strong, node)


_HANDLERS: dict[object, tuple[int, int, Handler]] = {
    np.heaviside: (2, 2, _floating(np.heaviside, np.heaviside, function_bodies.heaviside)),
    np.logaddexp: (2, 2, _floating(np.logaddexp, np.logaddexp, function_bodies.logaddexp)),
    np.logaddexp2: (2, 2, _floating(np.logaddexp2, np.logaddexp2, function_bodies.logaddexp2)),
    np.sinc: (1, 1, _floating(np.sin, np.sinc, function_bodies.sinc)),
    np.nan_to_num: (1, 1, _nan_to_num),
    np.round: (1, 2, _rounded),
    np.around: (1, 2, _rounded),
    np.fix: (1, 1, float_function("trunc", np.trunc, np.trunc, weak=False)),
    math.log: (1, 2, _logarithm),
    np.spacing: (1, 1, _spacing),
    np.float_power: (2, 2, _float_power),
    np.fmod: (2, 2, _fmod),
    np.gcd: (2, 2, _integers(np.gcd, np.gcd, function_bodies.gcd)),
    np.lcm: (2, 2, _integers(np.lcm, np.lcm, function_bodies.lcm)),
    np.divmod: (2, 2, _divmod(strong=True)),
    np.modf: (1, 1, _modf(weak=False)),
    np.conjugate: (1, 1, _identity),
    math.remainder: (
        2, 2, _floating(np.hypot, MATH_FUNCTIONS["remainder"], function_bodies.remainder, True)
    ),
    math.gcd: (2, 1000, _integers(np.gcd, MATH_FUNCTIONS["gcd"], function_bodies.gcd, True)),
    math.lcm: (2, 1000, _integers(np.lcm, MATH_FUNCTIONS["lcm"], function_bodies.lcm, True)),
    math.modf: (1, 1, _modf(weak=True)),
    divmod: (2, 2, _divmod(strong=False)),
}  # fmt: skip
"""Function → least and greatest number of arguments, handler."""
