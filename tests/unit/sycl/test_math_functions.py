"""Mathematical functions: each compiles for each floating type and is right to a few ulp."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fusionq.ir.functions import FLOAT_FUNCTIONS
from fusionq.ir.nodes import Binary, Call
from fusionq.ir.types import FLOAT16, FLOAT32, FLOAT64
from tests.unit.codegen.built_kernels import ITEM, const, load
from tests.unit.sycl.test_operations import compute

EXACT = {"sqrt", "floor", "ceil", "trunc", "rint", "fmod", "copysign", "nextafter"}
DOMAIN = {
    "log": (1e-3, 50), "log2": (1e-3, 50), "log10": (1e-3, 50), "log1p": (-0.99, 50),
    "arcsin": (-1, 1), "arccos": (-1, 1), "arccosh": (1, 50), "arctanh": (-0.99, 0.99),
    "exp": (-8, 8), "exp2": (-8, 8), "expm1": (-8, 8), "sinh": (-8, 8), "cosh": (-8, 8),
    "gamma": (0.1, 8), "lgamma": (3, 50), "erfc": (-3, 3), "tan": (-1.5, 1.5),
}  # fmt: skip
ULP = {"gamma": 16, "lgamma": 8, "tan": 5, "pow": 16, "erfc": 16, "erf": 16}
"""Where OpenCL allows more than 4."""


def reference(name):
    """The function in float64."""
    function = getattr(np, name, None)
    return function if function is not None else np.vectorize(getattr(math, name))


def ulps(got, exact):
    """The error in units of the last place of ``got``'s type."""
    unit = np.spacing(np.abs(exact).astype(got.dtype)).astype(np.float64)
    return np.abs(got.astype(np.float64) - exact) / unit


@pytest.mark.parametrize("type", (FLOAT16, FLOAT32, FLOAT64), ids=str)
def test_functions_are_accurate(device, type):
    names = [name for name in FLOAT_FUNCTIONS if name not in EXACT]
    random = np.random.default_rng(11)
    inputs, results = {}, {}
    for name in names:
        low, high = DOMAIN.get(name, (-10, 10))
        count = FLOAT_FUNCTIONS[name]
        arguments = [f"{name}_{k}" for k in range(count)]
        for argument in arguments:
            inputs[argument] = random.uniform(low, high, 500).astype(type.dtype)
            inputs[argument] = np.clip(inputs[argument], low, high).astype(type.dtype)
        loads = tuple(load(argument, ITEM, type=type) for argument in arguments)
        results[name] = Call(type, name, loads)
    got = compute(device, inputs, results)
    errors = {}
    for name in names:
        operands = [inputs[a].astype(np.float64) for a in inputs if a.rpartition("_")[0] == name]
        errors[name] = ulps(got[name], reference(name)(*operands)).max()
    too_large = {n: e for n, e in errors.items() if not e <= ULP.get(n, 4)}
    assert not too_large


@pytest.mark.parametrize("type", (FLOAT16, FLOAT32, FLOAT64), ids=str)
def test_powers(device, type):
    random = np.random.default_rng(13)
    a = random.uniform(0.1, 4, 500).astype(type.dtype)
    b = random.uniform(-3, 3, 500).astype(type.dtype)
    x, y = load("a", ITEM, type=type), load("b", ITEM, type=type)
    squared = {"square": Binary(type, "pow", x, const(2.0, type))}
    got = compute(device, {"a": a, "b": b}, {"pow": Binary(type, "pow", x, y), **squared})
    assert np.array_equal(got["square"], a * a)
    assert ulps(got["pow"], a.astype(np.float64) ** b.astype(np.float64)).max() <= 16


@pytest.mark.parametrize("type", (FLOAT16, FLOAT32, FLOAT64), ids=str)
def test_special_values(device, type):
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0], type.dtype)
    x = load("a", ITEM, type=type)
    names = ("exp", "log", "tanh", "arctan", "sinh", "cosh", "erf", "cbrt", "expm1", "log1p")
    got = compute(device, {"a": values}, {name: Call(type, name, (x,)) for name in names})
    for name in names:
        with np.errstate(all="ignore"):
            wanted = reference(name)(values.astype(np.float64)).astype(type.dtype)
        assert np.allclose(got[name], wanted, rtol=2e-3, atol=0, equal_nan=True), name
        number = ~np.isnan(wanted)
        assert np.array_equal(np.signbit(got[name][number]), np.signbit(wanted[number])), name
