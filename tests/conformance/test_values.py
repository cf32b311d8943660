"""Operations on chosen operands, with the results written down: what docs/kernel-language.md says.

All rows are one kernel of one work-item.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fusionq.backends.base import Backend
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
    Load,
    Select,
    Store,
    Unary,
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
    UINT8,
    UINT32,
    UINT64,
    ScalarType,
)
from tests.conformance.running import Array, run
from tests.conformance.test_operators import types_of
from tests.unit.codegen.built_kernels import const

INF, NAN = math.inf, math.nan

BINARY = [
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
    ("truediv", FLOAT32, 1, 0, INF),
    ("truediv", FLOAT32, 0, 0, NAN),
    ("truediv", FLOAT32, 1, 3, np.float32(1) / np.float32(3)),
    ("floordiv", FLOAT64, -7.5, 2, -4.0),
    ("floordiv", FLOAT64, 1, 0, INF),
    ("mod", FLOAT64, -7.5, 2, 0.5),
    ("mod", FLOAT64, 1, 0, NAN),
    ("mod", FLOAT32, -0.0, 3, 0.0),
    ("add", FLOAT16, 2048, 1, 2048.0),
    ("mul", FLOAT16, 60000, 2, INF),
]  # fmt: skip
CASTS = [
    (FLOAT64, 3.9, INT32, 3),
    (FLOAT64, -3.9, INT32, -3),
    (FLOAT64, 1e30, INT32, (1 << 31) - 1),
    (FLOAT64, -1e30, INT32, -(1 << 31)),
    (FLOAT64, INF, UINT64, (1 << 64) - 1),
    (FLOAT64, -INF, UINT64, 0),
    (FLOAT64, NAN, INT8, 0),
    (FLOAT32, 2.0**63, INT64, (1 << 63) - 1),
    (FLOAT32, -1.0, UINT8, 0),
    (INT64, 300, INT8, 44),
    (INT8, -1, UINT32, (1 << 32) - 1),
    (UINT64, (1 << 64) - 1, INT64, -1),
    (INT64, 5, BOOL, True),
    (FLOAT32, 0.25, BOOL, True),
    (FLOAT32, NAN, BOOL, True),
    (FLOAT32, -0.0, BOOL, False),
    (BOOL, True, FLOAT16, 1.0),
    (FLOAT64, 1e30, FLOAT16, INF),
    (UINT64, (1 << 64) - 1, FLOAT32, 2.0**64),
    (INT64, (1 << 53) + 1, FLOAT64, 2.0**53),
]
OF_TWO = [
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
    ("copysign", FLOAT32, 3.0, -0.0, -3.0),
    ("fmod", FLOAT64, -7.0, 2.0, -1.0),
]
OF_ONE = [
    ("abs", INT8, -128, -128),
    ("abs", FLOAT32, -0.0, 0.0),
    ("sign", FLOAT32, NAN, NAN),
    ("sign", FLOAT32, -3.5, -1.0),
    ("sign", INT32, -9, -1),
    ("sign", UINT8, 9, 1),
    ("rint", FLOAT32, 2.5, 2.0),
    ("floor", FLOAT16, -0.5, -1.0),
    ("gamma", FLOAT64, 0.0, INF),
    ("gamma", FLOAT64, -1.0, NAN),
    ("gamma", FLOAT64, 1000.0, INF),
    ("lgamma", FLOAT64, -1.0, INF),
    ("log", FLOAT32, -1.0, NAN),
]
UNARY = [
    ("neg", INT8, -128, -128),
    ("invert", INT8, -128, 127),
    ("not", BOOL, True, False),
    ("invert", BOOL, True, False),
]
CONSTANTS = [(FLOAT32, 0.1, np.float32(0.1)), (FLOAT16, 1e30, INF)]


class Row(NamedTuple):
    """``expr`` over the loads of operands, and its value."""

    operands: tuple[tuple[ScalarType, Any], ...]
    expr: Any
    expected: Any
    text: str


def rows() -> list[Row]:
    found = [
        Row(((t, a), (t, b)), lambda x, y, op=op, t=t: Binary(t, op, x, y), e, f"{a} {op} {b}: {t}")
        for op, t, a, b, e in BINARY
    ]
    found += [
        Row(((s, a),), lambda x, t=t: Cast(t, x), e, f"{t}({s} {a})") for s, a, t, e in CASTS
    ]
    found += [
        Row(((t, a), (t, b)), lambda *x, f=f, t=t: Call(t, f, x), e, f"{f}({a}, {b}): {t}")
        for f, t, a, b, e in OF_TWO
    ]
    found += [
        Row(((t, a),), lambda *x, f=f, t=t: Call(t, f, x), e, f"{f}({a}): {t}")
        for f, t, a, e in OF_ONE
    ]
    found += [
        Row(((t, a),), lambda x, op=op, t=t: Unary(t, op, x), e, f"{op} {a}: {t}")
        for op, t, a, e in UNARY
    ]
    found += [Row((), lambda t=t, v=v: Const(t, v), e, f"constant {v}") for t, v, e in CONSTANTS]
    for value, expected in ((2.0, 2.0), (-2.0, 1.0)):
        found.append(Row(((FLOAT32, value),), _chosen, expected, f"select by {value} > 0"))
    return found


def _chosen(x: Expr) -> Expr:
    one = Cast(FLOAT32, const(1))
    return Select(FLOAT32, Compare("gt", x, Const(FLOAT32, 0.0)), x, one)


def test_documented_values(backend: Backend) -> None:
    known = types_of(backend)
    operands: dict[ScalarType, list[Any]] = {}
    results: dict[ScalarType, list[tuple[Expr, Any, str]]] = {}
    for row in rows():
        loads = []
        for type, value in row.operands:
            values = operands.setdefault(type, [])
            loads.append(Load(type, f"in_{type}", (const(len(values)),)))
            values.append(value)
        expr = row.expr(*loads)
        if {expr.type, *(type for type, _ in row.operands)} <= set(known):
            results.setdefault(expr.type, []).append((expr, row.expected, row.text))
    arrays: dict[str, Array] = {
        f"in_{t}": np.array(values, t.dtype) for t, values in operands.items() if t in known
    }
    outs = {t: np.empty(len(found), t.dtype) for t, found in results.items()}
    arrays |= {f"out_{t}": out for t, out in outs.items()}
    types = {f"{side}_{t}": t for t in known for side in ("in", "out")}
    params = tuple(ArrayParam(name, types[name], 1) for name in arrays)
    body = tuple(
        Store(f"out_{t}", (const(k),), expr)
        for t, found in results.items()
        for k, (expr, _, _) in enumerate(found)
    )
    kernel = Kernel("values", 1, params, (), body)
    run(backend, kernel, *arrays.values(), items=1, shape=LaunchShape((1,), (1,)))
    wrong = [
        f"{text} gave {got}, not {wanted}"
        for t, found in results.items()
        for (_, wanted, text), got in zip(found, outs[t], strict=True)
        if not same(got, wanted)
    ]
    assert not wrong


def same(value: Any, expected: Any) -> bool:
    """Equal, zeros by their signs; NaNs are equal to each other."""
    if value != value or expected != expected:
        return bool(value != value and expected != expected)
    return bool(value == expected and math.copysign(1, value) == math.copysign(1, expected))
