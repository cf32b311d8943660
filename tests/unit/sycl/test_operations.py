"""Each operation on each type, on edge values, against NumPy bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from fusionq.ir.nodes import (
    ArrayParam,
    Binary,
    Call,
    Cast,
    Compare,
    If,
    Kernel,
    ScalarParam,
    Select,
    Store,
    Unary,
)
from fusionq.ir.types import BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, SCALAR_TYPES
from tests.unit.codegen.built_kernels import IDS, ITEM, N, const, less, load
from tests.unit.sycl.running import different, run

ALL = tuple(SCALAR_TYPES.values())
FLOATS = (FLOAT16, FLOAT32, FLOAT64)
INTEGERS = tuple(t for t in ALL if t.is_integer)

ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
DIVISION = {"floordiv": np.floor_divide, "mod": np.remainder}
BITS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
SHIFTS = {"shl": np.left_shift, "shr": np.right_shift}
COMPARISONS = {"lt": np.less, "le": np.less_equal, "gt": np.greater,
               "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}  # fmt: skip
ORDER = {"minimum": np.minimum, "maximum": np.maximum, "fmin": np.fmin, "fmax": np.fmax,
         "pymin": lambda a, b: np.where(b < a, b, a),
         "pymax": lambda a, b: np.where(b > a, b, a)}  # fmt: skip


def edge_values(type):
    """Limits, neighbours of zero, special values and a few random ones."""
    random = np.random.default_rng(7)
    dtype = type.dtype
    if type.is_bool:
        return np.array([False, True])
    if type.is_float:
        limits = np.finfo(dtype)
        plain = [0, 1, 1.5, 2, 3, 2.5, 0.1, 7, 1e3, limits.max, limits.tiny, np.inf,
                 limits.smallest_subnormal, limits.smallest_subnormal * 3, limits.eps]  # fmt: skip
        drawn = random.integers(0, 1 << type.bits, 12, dtype=f"u{type.nbytes}").view(dtype)
        values = np.concatenate([np.array(plain, dtype), drawn, [np.nan]]).astype(dtype)
        return np.concatenate([values, -values])
    limits = np.iinfo(dtype)
    drawn = random.integers(limits.min, limits.max, 8, dtype=dtype, endpoint=True)
    near = np.array([0, 1, 2, 3, 5, 7, 8, 31, 63, 64, 100], dtype)
    ends = np.array([limits.min, limits.min + 1, limits.max, limits.max - 1], dtype)
    values = [near, ends, drawn] if type.kind == "u" else [near, -near, ends, drawn]
    return np.concatenate(values)


def pairs(type):
    values = edge_values(type)
    x, y = np.meshgrid(values, values)
    return x.ravel(), y.ravel()


def compute(device, inputs, results):
    """Evaluates the expressions ``results`` (name → expression over loads of ``inputs``) for
    each element, in one kernel."""
    n = len(next(iter(inputs.values())))
    outputs = {name: np.empty(n, value.type.dtype) for name, value in results.items()}
    arrays = {**inputs, **{f"out_{name}": array for name, array in outputs.items()}}
    params = tuple(
        ArrayParam(name, SCALAR_TYPES[array.dtype.name], 1, restrict=True)
        for name, array in arrays.items()
    )
    stores = tuple(Store(f"out_{name}", (ITEM,), value) for name, value in results.items())
    kernel = Kernel(
        "operations", 1, (*params, ScalarParam("n", INT64)), (("i", INT64),),
        (IDS[0], If(less(ITEM, N), stores)),
    )  # fmt: skip
    run(device, kernel, *arrays.values(), n, items=n)
    return outputs


def check(got, functions, operands, **how):
    with np.errstate(all="ignore"):
        for name, function in functions.items():
            wanted = function(*operands).astype(got[name].dtype)
            wrong = different(got[name], wanted, **how)
            shown = [(*(x[k] for x in operands), got[name][k], wanted[k]) for k in wrong[:5]]
            assert not len(wrong), f"{name}: {len(wrong)} differ; (operands, got, NumPy): {shown}"


@pytest.mark.parametrize("type", [t for t in ALL if not t.is_bool], ids=str)
def test_arithmetic(device, type):
    a, b = pairs(type)
    x, y = load("a", ITEM, type=type), load("b", ITEM, type=type)
    functions = {**ARITHMETIC, **DIVISION}
    results = {op: Binary(type, op, x, y) for op in functions}
    functions |= {"neg": lambda a, b: np.negative(a), "abs": lambda a, b: np.abs(a),
                  "sign": lambda a, b: np.sign(a), "pos": lambda a, b: a}  # fmt: skip
    results["neg"], results["pos"] = Unary(type, "neg", x), Unary(type, "pos", x)
    results["abs"], results["sign"] = Call(type, "abs", (x,)), Call(type, "sign", (x,))
    if type.is_float:
        functions |= {"truediv": np.true_divide, "fmod": np.fmod, "copysign": np.copysign,
                      "nextafter": np.nextafter}  # fmt: skip
        results["truediv"] = Binary(type, "truediv", x, y)
        results |= {f: Call(type, f, (x, y)) for f in ("fmod", "copysign", "nextafter")}
    else:
        functions |= {**BITS, **SHIFTS, "invert": lambda a, b: np.invert(a)}
        results |= {op: Binary(type, op, x, y) for op in (*BITS, *SHIFTS)}
        results["invert"] = Unary(type, "invert", x)
    check(compute(device, {"a": a, "b": b}, results), functions, (a, b))


@pytest.mark.parametrize("type", FLOATS, ids=str)
def test_exact_functions_of_one_argument(device, type):
    bits = np.dtype(f"u{type.nbytes}")
    random = np.random.default_rng(3).integers(0, 1 << type.bits, 20_000, dtype=bits)
    a = np.concatenate([edge_values(type), random.view(type.dtype)])
    x = load("a", ITEM, type=type)
    names = ("sqrt", "floor", "ceil", "trunc", "rint")
    predicates = ("isnan", "isinf", "isfinite", "signbit")
    results = {f: Call(type, f, (x,)) for f in names}
    results |= {f: Call(BOOL, f, (x,)) for f in predicates}
    check(compute(device, {"a": a}, results), {f: getattr(np, f) for f in results}, (a,))


@pytest.mark.parametrize("type", FLOATS, ids=str)
def test_random_bits_round_as_in_numpy(device, type):
    bits = np.dtype(f"u{type.nbytes}")
    random = np.random.default_rng(5)
    a, b = (random.integers(0, 1 << type.bits, 50_000, dtype=bits).view(type.dtype) for _ in "ab")
    with np.errstate(all="ignore"):
        near = (a * random.uniform(0.4, 3, len(a))).astype(type.dtype)
    b = np.where(np.arange(len(b)) % 2, b, near)
    x, y = load("a", ITEM, type=type), load("b", ITEM, type=type)
    functions = {**ARITHMETIC, **DIVISION, "truediv": np.true_divide}
    results = {op: Binary(type, op, x, y) for op in functions}
    chain = Binary(type, "add", Binary(type, "mul", x, y), Binary(type, "mul", x, x))
    functions["chain"] = lambda a, b: a * b + a * a
    check(compute(device, {"a": a, "b": b}, {**results, "chain": chain}), functions, (a, b))


@pytest.mark.parametrize("type", ALL, ids=str)
def test_comparisons_and_order(device, type):
    a, b = pairs(type)
    x, y = load("a", ITEM, type=type), load("b", ITEM, type=type)
    compared = {op: Compare(op, x, y) for op in COMPARISONS}
    check(compute(device, {"a": a, "b": b}, compared), COMPARISONS, (a, b))
    ordered = {f: Call(type, f, (x, y)) for f in ORDER}
    # NumPy is of two minds about which of 0.0 and -0.0 is smaller.
    check(compute(device, {"a": a, "b": b}, ordered), ORDER, (a, b), zeros_by_sign=False)
    selected = {"select": Select(type, less(x, y), x, y)}
    functions = {"select": lambda a, b: np.where(a < b, a, b)}
    check(compute(device, {"a": a, "b": b}, selected), functions, (a, b))


def test_bool_operations(device):
    a, b = pairs(BOOL)
    x, y = load("a", ITEM, type=BOOL), load("b", ITEM, type=BOOL)
    functions = {**BITS, "add": np.add, "mul": np.multiply}
    results = {op: Binary(BOOL, op, x, y) for op in functions}
    functions |= {"not": lambda a, b: ~a, "invert": lambda a, b: ~a}
    results |= {op: Unary(BOOL, op, x) for op in ("not", "invert")}
    check(compute(device, {"a": a, "b": b}, results), functions, (a, b))


@pytest.mark.parametrize("type", INTEGERS, ids=str)
def test_integer_powers(device, type):
    a = edge_values(type)
    exponents = np.array([0, 1, 2, 3, 5, 8, 31, 100], type.dtype)
    a, b = (x.ravel() for x in np.meshgrid(a, exponents))
    power = {"pow": Binary(type, "pow", load("a", ITEM, type=type), load("b", ITEM, type=type))}
    check(compute(device, {"a": a, "b": b}, power), {"pow": np.power}, (a, b))


@pytest.mark.parametrize("type", INTEGERS, ids=str)
def test_operations_with_constants(device, type):
    """Constants take other paths: plain division and shifts, wrapping chains."""
    a = edge_values(type)
    x = load("a", ITEM, type=type)
    low, high = np.iinfo(type.dtype).min, np.iinfo(type.dtype).max
    constants = [1, 2, 3, high, low, low + 1] + ([-1, -2] if type.kind == "i" else [])
    functions, results = {}, {}
    for k, value in enumerate(constants):
        c, scalar = const(value, type), type.dtype.type(value)
        for op, function in (ARITHMETIC | DIVISION).items():
            results[f"{op}_{k}"] = Binary(type, op, x, c)
            functions[f"{op}_{k}"] = lambda a, f=function, s=scalar: f(a, s)
            results[f"{op}_by_{k}"] = Binary(type, op, c, x)
            functions[f"{op}_by_{k}"] = lambda a, f=function, s=scalar: f(s, a)
    for k, shift in enumerate((0, 1, type.bits - 1, type.bits, 100)):
        for op, function in SHIFTS.items():
            results[f"{op}_s{k}"] = Binary(type, op, x, const(shift, type))
            functions[f"{op}_s{k}"] = lambda a, f=function, s=shift: f(a, type.dtype.type(s))
    y = Binary(type, "mul", Unary(type, "neg", x), Binary(type, "add", x, const(3, type)))
    results["chain"] = Binary(type, "sub", const(5, type), Binary(type, "mul", y, y))
    functions["chain"] = lambda a: 5 - (-a * (a + 3)) * (-a * (a + 3))
    check(compute(device, {"a": a}, results), functions, (a,))


@pytest.mark.parametrize("source", ALL, ids=str)
def test_casts(device, source):
    a = edge_values(source)
    if source.is_float:
        with np.errstate(over="ignore"):
            powers = np.float64(2) ** np.arange(-30, 66)
            around = np.concatenate([powers, -powers, powers + 0.5, powers * 1.0000001])
            a = np.concatenate([a, around.astype(source.dtype)])
    x = load("a", ITEM, type=source)
    got = compute(device, {"a": a}, {target.name: Cast(target, x) for target in ALL})
    functions = {target.name: lambda a, t=target: convert(a, t) for target in ALL}
    check(got, functions, (a,))


def convert(a, target):
    """The language's casts: NumPy's, but floating to integer saturates and NaN gives 0."""
    if a.dtype.kind != "f" or not target.is_integer:
        return a.astype(target.dtype)
    limits = np.iinfo(target.dtype)
    exact = [int(x) if np.isfinite(x) else (0 if np.isnan(x) else 1 << 70 if x > 0 else -1 << 70)
             for x in a.tolist()]  # fmt: skip
    return np.array([min(max(x, limits.min), limits.max) for x in exact], target.dtype)
