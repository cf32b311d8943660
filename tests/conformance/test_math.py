"""Mathematical functions: each is there for each floating type, and right to a few ulp."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fusionq.backends.base import Backend
from fusionq.ir.functions import FLOAT_FUNCTIONS
from fusionq.ir.nodes import Binary, Call
from fusionq.language import math_functions
from tests.conformance.running import Array
from tests.conformance.test_operators import Table, computed, fewer, types_of
from tests.unit.codegen.built_kernels import const

EXACT = {"fma", "sqrt", "floor", "ceil", "trunc", "rint", "fmod", "copysign", "nextafter"}
"""Those of ``test_operators``, and of the kernel language's own tests."""
DOMAIN = {
    "log": (1e-3, 50), "log2": (1e-3, 50), "log10": (1e-3, 50), "log1p": (-0.99, 50),
    "arcsin": (-1, 1), "arccos": (-1, 1), "arccosh": (1, 50), "arctanh": (-0.99, 0.99),
    "exp": (-8, 8), "exp2": (-8, 8), "expm1": (-8, 8), "sinh": (-8, 8), "cosh": (-8, 8),
    "gamma": (0.1, 8), "lgamma": (3, 50), "erfc": (-3, 3), "tan": (-1.5, 1.5),
}  # fmt: skip
ULP = {"gamma": 16, "lgamma": 16, "tan": 5, "pow": 16, "erfc": 16, "erf": 16}
"""Where OpenCL allows more than 4; the reference of ``lgamma``, Python's, is off by up to 8."""


def reference(name: str) -> Callable[..., Any]:
    """The function in float64."""
    function: Callable[..., Any] | None = getattr(np, name, None)
    own = math_functions if hasattr(math_functions, name) else math
    return function if function is not None else np.vectorize(getattr(own, name))


def ulps(got: Array, exact: Array) -> Array:
    """The error in units of the last place of ``got``'s type."""
    unit = np.spacing(np.abs(exact).astype(got.dtype)).astype(np.float64)
    error: Array = np.abs(got.astype(np.float64) - exact) / unit
    return error


def test_functions_are_accurate(backend: Backend) -> None:
    names = [name for name in FLOAT_FUNCTIONS if name not in EXACT]
    random, count = np.random.default_rng(11), fewer(backend, 500)
    tables = []
    for type in types_of(backend, "f"):
        operands = []
        for name in names:
            low, high = DOMAIN.get(name, (-10, 10))
            for _ in range(FLOAT_FUNCTIONS[name]):
                drawn = random.uniform(low, high, count).astype(type.dtype)
                operands.append(np.clip(drawn, low, high).astype(type.dtype))
        table, row = Table(type, {"x": np.stack(operands)}), 0
        for name in names:
            places = [*range(row, row + FLOAT_FUNCTIONS[name])]
            function = Call(type, name, tuple(table.load("x", place) for place in places))
            table.rows[name] = function, lambda x, n=name, p=places: reference(n)(*x[p])
            row += len(places)
        tables.append(table)
    for table, got in zip(tables, computed(backend, tables), strict=True):
        exact = table.inputs["x"].astype(np.float64)
        errors = {name: ulps(got[name], f(exact)).max() for name, (_, f) in table.rows.items()}
        too_large = {name: e for name, e in errors.items() if not e <= ULP.get(name, 4)}
        assert not too_large, table.type


def test_powers(backend: Backend) -> None:
    random, count = np.random.default_rng(13), fewer(backend, 500)
    tables = []
    for type in types_of(backend, "f"):
        a = random.uniform(0.1, 4, count).astype(type.dtype)
        b = random.uniform(-3, 3, count).astype(type.dtype)
        table = Table(type, {"a": a, "b": b})
        x, y = table.load("a"), table.load("b")
        table.rows["pow"] = Binary(type, "pow", x, y), np.power
        table.rows["square"] = Binary(type, "pow", x, const(2.0, type)), np.square
        tables.append(table)
    for table, got in zip(tables, computed(backend, tables), strict=True):
        a, b = table.inputs.values()
        assert np.array_equal(got["square"], a * a), table.type
        assert ulps(got["pow"], a.astype(np.float64) ** b.astype(np.float64)).max() <= ULP["pow"]


def test_special_values(backend: Backend) -> None:
    names = (
        "exp", "log", "tanh", "arctan", "sinh", "cosh", "erf", "cbrt", "expm1", "log1p", "cospi",
        "sinpi",
    )
    tables = []
    for type in types_of(backend, "f"):
        values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0], type.dtype)
        table = Table(type, {"a": values})
        for name in names:
            table.rows[name] = Call(type, name, (table.load("a"),)), reference(name)
        tables.append(table)
    for table, got in zip(tables, computed(backend, tables), strict=True):
        values = table.inputs["a"].astype(np.float64)
        for name, (_, function) in table.rows.items():
            with np.errstate(all="ignore"):
                wanted = function(values).astype(table.type.dtype)
            assert np.allclose(got[name], wanted, rtol=2e-3, atol=0, equal_nan=True), name
            number = ~np.isnan(wanted)
            signs = np.signbit(got[name][number]), np.signbit(wanted[number])
            assert np.array_equal(*signs), name
