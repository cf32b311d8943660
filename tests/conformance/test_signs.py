"""Signs of what wraps: a compiler that takes arithmetic for exact gets those of -x wrong where x is
the most negative integer.

All operations are one kernel, over enough work-items for a vector of each type.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from fusionq.backends.base import Backend
from fusionq.ir.nodes import (
    ArrayParam,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    ItemQuery,
    Kernel,
    Load,
    Store,
    Unary,
)
from fusionq.ir.types import INT8, INT16, INT32, INT64, ScalarType
from tests.conformance.running import Array, run
from tests.conformance.test_operators import types_of
from tests.unit.codegen.built_kernels import const

ITEMS = 64
ID = ItemQuery("global_id", 0)

NEGATIONS: dict[str, Callable[[Expr, ScalarType], Expr]] = {
    "-x": lambda x, t: Unary(t, "neg", x),
    "0 - x": lambda x, t: Binary(t, "sub", Const(t, 0), x),
    "x * -1": lambda x, t: Binary(t, "mul", x, Const(t, -1)),
    "-1 * x": lambda x, t: Binary(t, "mul", Const(t, -1), x),
    "x // -1": lambda x, t: Binary(t, "floordiv", x, Const(t, -1)),
    "-x << 1": lambda x, t: Binary(t, "shl", Unary(t, "neg", x), Const(t, 1)),
    "-x // -1": lambda x, t: Binary(t, "floordiv", Unary(t, "neg", x), Const(t, -1)),
    "x - 1": lambda x, t: Binary(t, "sub", x, Const(t, 1)),
}
"""Of the most negative integer; none of these, but for the last two and a shift, changes it."""

SIGNS: dict[str, Callable[[Expr, ScalarType], Expr]] = {
    "sign": lambda x, t: Call(t, "sign", (x,)),
    "x >> last bit": lambda x, t: Binary(t, "shr", x, Const(t, t.bits - 1)),
    "(x > 0) - (x < 0)": lambda x, t: Binary(t, "sub", _compared("gt", x), _compared("lt", x)),
    "-1 where x < 0": lambda x, t: Unary(t, "neg", _compared("lt", x)),
}


def _compared(op: str, x: Expr) -> Expr:
    return Cast(x.type, Compare(op, x, Const(x.type, 0)))  # type: ignore[arg-type]  # gt or lt


def _expected(values: Array, negation: str, sign: str) -> Array:
    bits, dtype = values.dtype.itemsize * 8, values.dtype
    exact = [int(v) for v in values]
    changed = {
        "-x << 1": [-2 * v for v in exact],
        "-x // -1": [-v if v == -(1 << (bits - 1)) else v for v in exact],
        "x - 1": [v - 1 for v in exact],
    }.get(negation, [-v for v in exact])
    wrapped = [(v + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1)) for v in changed]
    signs = [(v > 0) - (v < 0) for v in wrapped]
    if sign in ("x >> last bit", "-1 where x < 0"):
        signs = [min(s, 0) for s in signs]
    return np.array(signs, dtype)


def test_signs_of_what_wraps(backend: Backend, target: str) -> None:
    if target == "dpex":
        pytest.skip("the compiler of oneAPI 2024.2 takes it that a negation does not wrap")
    types = [t for t in (INT8, INT16, INT32, INT64) if t in types_of(backend)]
    params, body, arrays = [], [], []
    wanted: list[tuple[str, Array, Array]] = []
    for t in types:
        least = int(np.iinfo(t.dtype).min)
        edges = [least, least + 1, -least - 1, least // 2, -2, -1, 0, 1, 2]
        values = np.resize(np.array(edges, t.dtype), ITEMS)
        out = np.empty((len(NEGATIONS) * len(SIGNS), ITEMS), t.dtype)
        params += [ArrayParam(f"in_{t}", t, 1), ArrayParam(f"out_{t}", t, 2)]
        arrays += [values, out]
        x = Load(t, f"in_{t}", (ID,))
        for row, (negation, sign) in enumerate(product(NEGATIONS, SIGNS)):
            expr = SIGNS[sign](NEGATIONS[negation](x, t), t)
            body.append(Store(f"out_{t}", (const(row), ID), expr))
            name = f"{sign} of {negation}: {t}"
            wanted.append((name, out[row], _expected(values, negation, sign)))
    run(backend, Kernel("signs", 1, tuple(params), (), tuple(body)), *arrays, items=ITEMS)
    assert not [name for name, out, expected in wanted if not np.array_equal(out, expected)]
