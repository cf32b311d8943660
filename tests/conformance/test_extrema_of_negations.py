"""Minima and maxima of three integers, some of them negated: a compiler that makes one instruction
of two such operations has to keep the minus.

Each expression loads elements of its own, so that none has a part in common with another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest

from fusionq.backends.base import Backend
from fusionq.ir.nodes import (
    ArrayParam,
    Binary,
    Call,
    Compare,
    Const,
    Expr,
    ItemQuery,
    Kernel,
    Load,
    Select,
    Store,
    Unary,
)
from fusionq.ir.types import INT8, INT16, INT32, UINT32, ScalarType
from tests.conformance.running import Array, run
from tests.conformance.test_operators import types_of
from tests.unit.codegen.built_kernels import add, const

ITEMS = 32
ID = ItemQuery("global_id", 0)

OPERANDS: dict[str, Callable[[Expr, Expr, Expr], tuple[Expr, Expr, Expr]]] = {
    "x, -x, y": lambda x, y, z: (x, _minus(x), y),
    "x, -y, z": lambda x, y, z: (x, _minus(y), z),
    "-x, -y, z": lambda x, y, z: (_minus(x), _minus(y), z),
    "x, -(y + z), z": lambda x, y, z: (x, _minus(add(y, z)), z),
    "x, y * -1, 7": lambda x, y, z: (x, _times_minus_one(y), _seven(z)),
}

FUNCTIONS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "min": lambda a, b: Call(a.type, "pymin", (a, b)),
    "max": lambda a, b: Call(a.type, "pymax", (a, b)),
}
CONDITIONS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "a if a < b else b": lambda a, b: Select(a.type, Compare("lt", a, b), a, b),
    "b if a < b else a": lambda a, b: Select(a.type, Compare("lt", a, b), b, a),
}

ORDERS = ((0, 1, 2), (1, 0, 2), (2, 1, 0))


def _minus(x: Expr) -> Expr:
    return Unary(x.type, "neg", x)


def _times_minus_one(x: Expr) -> Expr:
    return Binary(x.type, "mul", x, Const(x.type, _wrapped(-1, x.type)))


def _seven(x: Expr) -> Expr:
    return Const(x.type, 7)


def _least(t: ScalarType) -> int:
    return 0 if t.kind == "u" else -(1 << (t.bits - 1))


def _wrapped(value: int, t: ScalarType) -> int:
    return (value - _least(t)) % (1 << t.bits) + _least(t)


def _expected(operands: str, order: Sequence[int], extremum: str, t: ScalarType, three: Array):
    chosen = min if extremum in ("min", "a if a < b else b") else max
    rows = []
    for x, y, z in three.T.tolist():
        exact = {
            "x, -x, y": (x, -x, y),
            "x, -y, z": (x, -y, z),
            "-x, -y, z": (-x, -y, z),
            "x, -(y + z), z": (x, -(y + z), z),
            "x, y * -1, 7": (x, -y, 7),
        }[operands]
        rows.append(chosen(_wrapped(exact[i], t) for i in order))
    return np.array(rows, t.dtype)


@pytest.mark.parametrize("t", [INT8, INT16, INT32, UINT32], ids=str)
@pytest.mark.parametrize("extrema", [FUNCTIONS, CONDITIONS], ids=["functions", "conditions"])
def test_of_three_integers(
    backend: Backend,
    target: str,
    t: ScalarType,
    extrema: dict[str, Callable[[Expr, Expr], Expr]],
) -> None:
    if t not in types_of(backend):
        pytest.skip(f"the backend has no {t}")
    if target == "dpex":
        pytest.skip("the compiler of oneAPI 2024.2 takes it that a negation does not wrap")
    most = _least(t) + (1 << t.bits) - 1
    edges = [_least(t), _least(t) + 1, most // 2, most - 1, most]
    draws = np.random.default_rng(3)
    body: list[Store] = []
    wanted: list[tuple[str, Array]] = []
    cases = list(product(OPERANDS, ORDERS, extrema, ("left", "right")))
    values = draws.integers(-99, 99, (3, len(cases) * ITEMS)).astype(t.dtype)
    values[:, ::5] = draws.choice(np.array(edges, t.dtype), values[:, ::5].shape)
    for number, (operands, order, extremum, side) in enumerate(cases):
        index = add(ID, const(number * ITEMS))
        x, y, z = (Load(t, "values", (const(row), index)) for row in range(3))
        three = OPERANDS[operands](x, y, z)
        one, other, last = (three[i] for i in order)
        of = extrema[extremum]
        expr = of(of(one, other), last) if side == "left" else of(one, of(other, last))
        body.append(Store("out", (index,), expr))
        mine = values[:, number * ITEMS : (number + 1) * ITEMS]
        name = f"{extremum} of {operands} in the order {order}, two on the {side}"
        wanted.append((name, _expected(operands, order, extremum, t, mine)))
    out = np.empty(values.shape[1], t.dtype)
    params = (ArrayParam("values", t, 2), ArrayParam("out", t, 1))
    run(backend, Kernel("extrema", 1, params, (), tuple(body)), values, out, items=ITEMS)
    found = out.reshape(len(cases), ITEMS)
    pairs = zip(wanted, found, strict=True)
    assert not [name for (name, right), mine in pairs if not np.array_equal(mine, right)]
