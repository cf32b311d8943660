"""The reference backend's scalar semantics, one operation at a time."""

import math
from typing import Any

import numpy as np
import pytest

from fusionq.backends.base import ArrayBinding
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.target import LaunchShape
from fusionq.ir.nodes import (
    ArrayParam,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Kernel,
    KernelParam,
    Param,
    ScalarParam,
    Select,
    Store,
    Unary,
    UnaryOp,
)
from fusionq.ir.types import (
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    SCALAR_TYPES,
    UINT8,
    UINT32,
    UINT64,
    ScalarType,
)
from fusionq.language.casts import integer_limits


def evaluate(expr: Expr, **scalars: tuple[ScalarType, Any]) -> Any:
    """The value of ``expr`` in a kernel with those scalar arguments."""
    out = np.empty((), expr.type.dtype)
    params: tuple[KernelParam, ...] = (
        ArrayParam("out", expr.type, 0),
        *(ScalarParam(name, type_) for name, (type_, _) in scalars.items()),
    )
    kernel = Kernel("k", 1, params, (), (Store("out", (), expr),))
    backend = ReferenceBackend()
    arguments = [ArrayBinding(out.ctypes.data, (), ()), *(v for _, v in scalars.values())]
    program = backend.build(kernel, "strict")
    backend.prepare(program, arguments, LaunchShape((1,), (1,))).launch()
    return out[()]


def binary(op: Any, type_: ScalarType, a: Any, b: Any) -> Any:
    expr = Binary(type_, op, Param(type_, "a"), Param(type_, "b"))
    return evaluate(expr, a=(type_, type_.dtype.type(a)), b=(type_, type_.dtype.type(b)))


def same(value: Any, expected: Any) -> bool:
    """Equal bit for bit but for a NaN's payload."""
    both_nan = value != value and expected != expected
    sign = math.copysign(1, value) == math.copysign(1, expected)
    return bool(both_nan or (value == expected and sign))


@pytest.mark.parametrize(
    ("op", "type_", "a", "b", "expected"),
    [
        ("add", INT8, 127, 1, -128),
        ("sub", UINT8, 0, 1, 255),
        ("mul", INT32, 1 << 30, 4, 0),
        ("floordiv", INT32, -7, 2, -4),
        ("mod", INT32, -7, 2, 1),
        ("mod", INT32, 7, -2, -1),
        ("floordiv", INT32, 7, 0, 0),
        ("mod", UINT64, 7, 0, 0),
        ("floordiv", INT8, -128, -1, -128),
        ("mod", INT8, -128, -1, 0),
        ("shl", INT32, 1, 31, -(1 << 31)),
        ("shl", INT32, 1, 32, 0),
        ("shl", UINT8, 255, 200, 0),
        ("shr", INT16, -5, 16, -1),
        ("shr", INT16, 5, 16, 0),
        ("shr", INT16, -5, -1, -1),
        ("shl", INT16, 5, -1, 0),
        ("pow", UINT8, 3, 200, 161),
        ("and", BOOL, True, False, False),
        ("add", BOOL, True, True, True),
        ("mul", BOOL, True, False, False),
        ("truediv", FLOAT32, 1, 0, math.inf),
        ("truediv", FLOAT32, 0, 0, math.nan),
        ("truediv", FLOAT32, 1, 3, float(np.float32(1) / np.float32(3))),
        ("floordiv", FLOAT64, -7.5, 2, -4.0),
        ("floordiv", FLOAT64, 1, 0, math.inf),
        ("mod", FLOAT64, -7.5, 2, 0.5),
        ("mod", FLOAT64, 1, 0, math.nan),
        ("mod", FLOAT32, -0.0, 3, 0.0),
        ("add", FLOAT16, 2048, 1, 2048.0),
        ("mul", FLOAT16, 60000, 2, math.inf),
    ],
)  # fmt: skip
def test_arithmetic(op: str, type_: ScalarType, a: Any, b: Any, expected: Any) -> None:
    value = binary(op, type_, a, b)
    assert value.dtype == type_.dtype
    assert same(value, expected)


@pytest.mark.parametrize(
    ("source", "value", "target", "expected"),
    [
        (FLOAT64, 3.9, INT32, 3),
        (FLOAT64, -3.9, INT32, -3),
        (FLOAT64, 1e30, INT32, (1 << 31) - 1),
        (FLOAT64, -1e30, INT32, -(1 << 31)),
        (FLOAT64, math.inf, UINT64, (1 << 64) - 1),
        (FLOAT64, -math.inf, UINT64, 0),
        (FLOAT64, math.nan, INT8, 0),
        (FLOAT32, 2.0**63, INT64, (1 << 63) - 1),
        (FLOAT32, -1.0, UINT8, 0),
        (INT64, 300, INT8, 44),
        (INT8, -1, UINT32, (1 << 32) - 1),
        (UINT64, (1 << 64) - 1, INT64, -1),
        (INT64, 5, BOOL, True),
        (FLOAT32, 0.25, BOOL, True),
        (FLOAT32, math.nan, BOOL, True),
        (FLOAT32, -0.0, BOOL, False),
        (BOOL, True, FLOAT16, 1.0),
        (FLOAT64, 1e30, FLOAT16, math.inf),
        (UINT64, (1 << 64) - 1, FLOAT32, 2.0**64),
        (INT64, (1 << 53) + 1, FLOAT64, 2.0**53),
    ],
)
def test_casts(source: ScalarType, value: Any, target: ScalarType, expected: Any) -> None:
    result = evaluate(Cast(target, Param(source, "a")), a=(source, source.dtype.type(value)))
    assert result.dtype == target.dtype
    assert same(result, expected)


NAN = math.nan


@pytest.mark.parametrize(
    ("function", "type_", "a", "b", "expected"),
    [
        ("pymin", FLOAT32, NAN, 1, NAN),
        ("pymin", FLOAT32, 1, NAN, 1),
        ("pymax", FLOAT32, NAN, 1, NAN),
        ("pymax", FLOAT32, 1, NAN, 1),
        ("pymin", FLOAT32, 0.0, -0.0, 0.0),
        ("minimum", FLOAT32, 1, NAN, NAN),
        ("minimum", FLOAT32, NAN, 1, NAN),
        ("maximum", FLOAT64, 1, NAN, NAN),
        ("fmin", FLOAT32, 1, NAN, 1),
        ("fmin", FLOAT32, NAN, 1, 1),
        ("fmax", FLOAT16, NAN, 2, 2),
        ("fmax", FLOAT16, NAN, NAN, NAN),
        ("minimum", INT8, -3, 5, -3),
        ("fmax", UINT8, 3, 5, 5),
        ("arctan2", FLOAT32, 0.0, -1.0, float(np.float32(math.pi))),
        ("copysign", FLOAT32, 3.0, -0.0, -3.0),
        ("fmod", FLOAT64, -7.0, 2.0, -1.0),
    ],
)
def test_functions_of_two(function: str, type_: ScalarType, a: Any, b: Any, expected: Any) -> None:
    expr = Call(type_, function, (Param(type_, "a"), Param(type_, "b")))
    value = evaluate(expr, a=(type_, type_.dtype.type(a)), b=(type_, type_.dtype.type(b)))
    assert value.dtype == type_.dtype
    assert same(value, expected)


@pytest.mark.parametrize(
    ("function", "type_", "a", "expected"),
    [
        ("abs", INT8, -128, -128),
        ("abs", FLOAT32, -0.0, 0.0),
        ("sign", FLOAT32, NAN, NAN),
        ("sign", FLOAT32, -3.5, -1.0),
        ("sign", INT32, -9, -1),
        ("sign", UINT8, 9, 1),
        ("rint", FLOAT32, 2.5, 2.0),
        ("floor", FLOAT16, -0.5, -1.0),
        ("erf", FLOAT32, 0.5, float(np.float32(math.erf(0.5)))),
        ("gamma", FLOAT64, 0.0, math.inf),
        ("gamma", FLOAT64, -1.0, math.nan),
        ("gamma", FLOAT64, 1000.0, math.inf),
        ("lgamma", FLOAT64, -1.0, math.inf),
        ("log", FLOAT32, -1.0, NAN),
        ("exp", FLOAT16, 1.0, float(np.exp(np.float16(1)))),
    ],
)
def test_functions_of_one(function: str, type_: ScalarType, a: Any, expected: Any) -> None:
    value = evaluate(Call(type_, function, (Param(type_, "a"),)), a=(type_, type_.dtype.type(a)))
    assert value.dtype == type_.dtype
    assert same(value, expected)


@pytest.mark.parametrize("type_", [t for t in SCALAR_TYPES.values() if t.is_integer])
def test_integers_agree_with_python_modulo_their_width(type_: ScalarType) -> None:
    low, high = integer_limits(type_.dtype)
    values = [low, low + 1, low // 2, 0, 1, 3, high // 3, high - 1, high]
    operations = {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__}
    for op, python in operations.items():
        for a in values:
            for b in values:
                wrapped = (python(a, b) - low) % (high - low + 1) + low
                assert binary(op, type_, a, b) == wrapped, (op, a, b)


def test_unary_operators() -> None:
    a = {"a": (INT8, np.int8(-128))}
    assert evaluate(Unary(INT8, "neg", Param(INT8, "a")), **a) == -128
    assert evaluate(Unary(INT8, "invert", Param(INT8, "a")), **a) == 127
    flag = {"p": (BOOL, True)}
    ops: tuple[UnaryOp, ...] = ("not", "invert")
    for op in ops:
        value = evaluate(Unary(BOOL, op, Param(BOOL, "p")), **flag)
        assert value is np.False_


def test_select_evaluates_the_chosen_side_only() -> None:
    outside = Cast(FLOAT32, Const(INT64, 1))
    x = Param(FLOAT32, "x")
    chosen = Select(FLOAT32, Compare("gt", x, Const(FLOAT32, 0.0)), x, outside)
    assert evaluate(chosen, x=(FLOAT32, 2.0)) == 2
    assert evaluate(chosen, x=(FLOAT32, -2.0)) == 1


def test_constants_round_to_their_type() -> None:
    assert evaluate(Const(FLOAT32, 0.1)) == np.float32(0.1)
    assert evaluate(Const(FLOAT16, 1e30)) == np.float16(np.inf)
