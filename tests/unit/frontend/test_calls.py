"""Functions that kernels call: math, NumPy, built-in ones; names, types and values."""

import math
from types import ModuleType

import numpy as np
import pytest

from fusionq.base.errors import KernelLanguageError
from fusionq.ir.nodes import Assign, Binary, Call, Const, Extent, Load, Select, Store, Var
from fusionq.ir.types import BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT64
from fusionq.ir.walk import expressions
from tests.unit.frontend.running import define, run_both, specialised


def element_wise(text, **names):
    return define(
        f"def k(item, a, out):\n    i = item.get_id(0)\n    x = a[i]\n    out[i] = {text}\n",
        math=math,
        **names,
    )


def call_of(text, dtype="float32", **names):
    """The only ``Call`` in an expression over ``x`` of that dtype."""
    a = np.ones(1, dtype)
    ir = specialised(element_wise(text, **names), 1, a, np.zeros(1, "float64"))
    (call,) = [e for e in expressions(ir.body) if isinstance(e, Call)]
    return call


UNARY = {
    "sqrt": "sqrt", "exp": "exp", "expm1": "expm1", "log": "log", "log2": "log2",
    "log10": "log10", "log1p": "log1p", "sin": "sin", "cos": "cos", "tan": "tan",
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "sinh": "sinh", "cosh": "cosh",
    "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "erf": "erf", "erfc": "erfc", "gamma": "gamma", "lgamma": "lgamma",
}  # fmt: skip


def test_functions_of_dpnp_are_numpys():
    """Those of its own are for arrays."""
    dpnp = ModuleType("dpnp")
    dpnp.sqrt = dpnp.asnumpy = lambda *arrays: arrays
    dpnp.float32, dpnp.pi = np.float32, math.pi
    call = call_of("dpnp.sqrt(x + dpnp.float32(dpnp.pi))", dpnp=dpnp)
    assert (call.function, call.type) == ("sqrt", FLOAT32)
    with pytest.raises(KernelLanguageError, match=r"asnumpy|takes \* or"):
        call_of("dpnp.asnumpy(x)", dpnp=dpnp)


@pytest.mark.parametrize(("name", "canonical"), UNARY.items())
def test_math_means_numpys_function(name, canonical):
    call = call_of(f"math.{name}(x)")
    assert (call.function, call.type) == (canonical, FLOAT32)
    assert call_of(f"math.{name}(x)", "int32").type == FLOAT64
    assert call_of(f"math.{name}(x)", "int8").type == FLOAT16


@pytest.mark.parametrize("name", ["sqrt", "exp", "arcsin", "cbrt", "exp2", "rint", "floor"])
def test_numpy_functions(name):
    assert call_of(f"np.{name}(x)").function == name
    assert call_of(f"np.{name}(x)", "float16").type == FLOAT16


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("math.atan2(x, 2.0)", "arctan2"),
        ("np.arctan2(x, x)", "arctan2"),
        ("math.hypot(x, x)", "hypot"),
        ("math.fmod(x, 2.0)", "fmod"),
        ("math.copysign(x, -1.0)", "copysign"),
        ("np.nextafter(x, 2.0)", "nextafter"),
        ("np.maximum(x, 0.0)", "maximum"),
        ("np.fmin(x, x)", "fmin"),
        ("np.abs(x)", "abs"),
        ("abs(x)", "abs"),
        ("math.fabs(x)", "abs"),
        ("np.sign(x)", "sign"),
        ("min(x, 0)", "pymin"),
        ("max(0.0, x)", "pymax"),
    ],
)
def test_functions_that_keep_float32(text, canonical):
    call = call_of(text)
    assert (call.function, call.type) == (canonical, FLOAT32)


def test_functions_may_have_any_name():
    call = call_of("root(x)", root=math.sqrt)
    assert call.function == "sqrt"


def test_math_of_python_numbers_is_weak_and_numpys_is_not():
    def operand_types(text):
        ir = specialised(element_wise(text), 1, np.ones(1, "float32"), np.zeros(1, "float64"))
        return {e.type for e in expressions(ir.body) if isinstance(e, Binary)}

    assert operand_types("x * math.sqrt(2.0)") == {FLOAT32}
    assert operand_types("x * math.exp(len(a))") == {FLOAT32}
    assert operand_types("x * np.sqrt(2.0)") == {FLOAT64}
    assert operand_types("x * math.pi") == {FLOAT32}
    assert operand_types("x * np.pi") == {FLOAT32}


def test_constants_are_computed():
    ir = specialised(element_wise("math.sqrt(2.0)"), 1, np.ones(1), np.zeros(1))
    assert ir.body[-1].value == Const(FLOAT64, math.sqrt(2.0))


VALUES = np.array(
    [0.0, -0.0, 0.5, -0.5, 1.0, 1.5, 2.5, -2.5, 3.75, 100.0, -7.25, np.inf, -np.inf, np.nan],
    "float32",
)
RUN = [
    "math.exp(x)", "np.log(x)", "math.sqrt(x)", "np.tanh(x)", "math.erf(x)", "math.gamma(x)",
    "math.lgamma(x)", "math.floor(x)", "math.ceil(x)", "math.trunc(x)", "round(x)", "int(x)",
    "np.floor(x)", "np.ceil(x)", "np.trunc(x)", "np.rint(x)", "math.isnan(x)", "np.isinf(x)",
    "np.isfinite(x)", "np.signbit(x)", "math.degrees(x)", "math.radians(x)", "np.rad2deg(x)",
    "np.square(x)", "np.square(x + 1)", "np.reciprocal(x)", "np.negative(x)", "np.add(x, 1)",
    "np.true_divide(x, 3)", "np.floor_divide(x, 0.75)", "np.remainder(x, 0.75)",
    "np.mod(x, -2)", "np.power(x, 2)", "math.pow(x, 0.5)", "pow(x, 3)", "x ** 2", "x ** 0.5",
    "np.where(x > 0, x, -1)", "np.where(x, 1.5, x)", "np.clip(x, -1, 1)", "min(x, 0.3)",
    "max(x, 0.3, 2)", "np.minimum(x, 0.3)", "np.fmax(x, 0.3)", "np.maximum(x, 0.3)",
    "np.sign(x)", "abs(x)", "math.fabs(x)", "np.fabs(x)", "math.copysign(3, x)",
    "np.logical_and(x, x > 1)", "np.logical_or(x, 0)", "np.logical_not(x)",
    "np.logical_xor(x, x < 1)", "np.less(x, 1)", "np.equal(x, 0.5)", "np.greater_equal(x, 1)",
    "math.fmod(x, 0.75)", "math.hypot(x, 3)", "math.atan2(x, -1)", "np.nextafter(x, 0)",
    "np.heaviside(x, 0.5)", "np.spacing(x)", "np.float_power(x, 2)", "math.remainder(x, 0.75)",
    "np.modf(x)[0]", "math.modf(x)[1]", "divmod(x, 0.75)[0]", "np.divmod(x, 2)[1]", "np.conj(x)",
    "math.remainder(2.5, 2.0) + math.gcd(12, 18) + math.lcm(4, 6) + math.modf(1.5)[0]",
    "np.fmod(x, 0.75)", "np.fmod(i, 2) + x",
    "float(x) * 0.1", "bool(x)", "np.bool_(x)", "1.5 if x > 1 else x", "x > 0 and x < 2",
    "x < 0 or not x < 2", "-1 < x <= 1.5 < 2", "(x > 1) + 1", "math.exp2(x)" if
    hasattr(math, "exp2") else "np.exp2(x)",
]  # fmt: skip


@pytest.mark.parametrize("text", RUN)
def test_values_are_those_of_plain_python(text):
    run_both(element_wise(text), VALUES.size, VALUES, np.zeros(VALUES.size, "float64"))


INTEGER_RUN = [
    "abs(x)", "np.abs(x)", "np.sign(x)", "np.sqrt(x)", "np.floor(x)", "math.floor(x)", "round(x)",
    "np.bitwise_and(x, 5)", "np.left_shift(x, 2)", "np.right_shift(x, 1)", "np.invert(x)",
    "np.isnan(x)", "math.isfinite(x)", "math.fabs(x)", "np.degrees(x)", "x / 3", "x // 3", "x % 3",
    "np.maximum(x, 3)", "np.clip(x, 0, 2)", "min(x, 2)", "-x", "x * x", "math.pow(x, 2)",
    "np.power(x, 3)", "np.subtract(x, 1)", "np.where(x > 1, x, 0)", "np.square(x)", "math.log1p(x)",
    "np.gcd(x, 12)", "np.lcm(x, 3)", "np.fmod(x, 3)", "math.gcd(x, 4, 6)", "divmod(x, 3)[0]",
    "np.divmod(x, 3)[1]", "np.conjugate(x)", "math.gcd(int(x), i)", "np.float_power(x, 2)",
    "x & 3", "x | 8", "x ^ 1", "x << 1", "int(x) * 1000", "math.atan(x)",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "int64"])
@pytest.mark.parametrize("text", INTEGER_RUN)
def test_values_of_integers_are_those_of_plain_python(text, dtype):
    values = [0, 1, 2, 3, 100, 127] if dtype == "uint16" else [-128, -3, -1, 0, 1, 3, 127]
    a = np.array(values, dtype)
    run_both(element_wise(text), a.size, a, np.zeros(a.size, "float64"))


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("text", ["math.degrees(x)", "np.radians(x)", "math.exp(x)", "x * 0.1"])
def test_other_widths(text, dtype):
    run_both(element_wise(text), VALUES.size, VALUES.astype(dtype), np.zeros(VALUES.size))


def test_numpys_where_evaluates_both_sides():
    ir = specialised(
        element_wise("np.where(x > 0, a[i + 1], 0.0)"), 1, np.ones(2, "f4"), np.zeros(2, "f4")
    )
    choice, store = ir.body[-2:]
    assert isinstance(choice, Assign) and isinstance(choice.value, Load)
    assert isinstance(store, Store) and isinstance(store.value, Select)
    assert store.value.then == Var(FLOAT32, choice.name)


def test_array_properties():
    function = define(
        "def k(item, a, out):\n"
        "    rows, columns = a.shape\n"
        "    out[0] = rows\n    out[1] = columns\n    out[2] = a.shape[-1]\n"
        "    out[3] = a.ndim\n    out[4] = a.size\n    out[5] = len(a)\n"
        "    out[6] = len(a.shape)\n    out[7] = a.dtype == np.float32\n"
        "    out[8] = a.dtype.type(0.1)\n    out[9] = np.finfo(np.float32).eps\n"
        "    out[10] = np.iinfo(np.int8).max\n"
    )
    _, out = run_both(function, 1, np.zeros((3, 5), "float32"), np.zeros(11))
    assert out[:8].tolist() == [3, 5, 5, 2, 15, 3, 2, 1]
    ir = specialised(function, 1, np.zeros((3, 5), "float32"), np.zeros(11))
    extents = [e for e in expressions(ir.body) if isinstance(e, Extent)]
    assert {(e.array, e.dim) for e in extents} == {("a", 0), ("a", 1)}
    assert not any(s for s in ir.body if isinstance(s, Assign))  # extents need no variables


def test_dtype_tests_choose_at_compile_time():
    function = define(
        "def k(item, a):\n"
        "    if a.dtype == np.float32:\n        a[0] = 1\n"
        "    else:\n        a[0] = unknown_name\n"
    )
    assert len(specialised(function, 1, np.zeros(1, "float32")).body) == 1
    with pytest.raises(KernelLanguageError, match="'unknown_name' is not defined"):
        specialised(function, 1, np.zeros(1, "float64"))


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("math.fma(x, x, x)" if hasattr(math, "fma") else "math.comb(3, 2)", "cannot", "math"),
        ("math.sqrt(x, 2)", r"math.sqrt takes 1 argument\(s\)", "optional"),
        ("round(x, 2)", "round takes 1", "optional"),
        ("max(x)", "max of a number", "a tuple, a row"),
        ("np.trace(a)", "np.trace cannot be called", "joint_reduce"),
        ("np.frexp(x)", "np.frexp cannot be called", "scalar functions"),
        ("np.matmul(x, x)", "np.matmul of a number", "row such as"),
        ("math.factorial(3)", "math.factorial cannot be called", "scalar functions"),
        ("np.gcd(x, 2)", "np.gcd takes no float32, int", "np.int64"),
        ("np.gcd(2)", "takes 2 argument", "that many"),
        ("np.isclose(x, 1)", "np.isclose cannot be called", "scalar functions"),
        ("print(x)", "print cannot be called", "host"),
        ("sum(x)", "sum of a number", "a generator"),
        ("math.fmod(i, 2)", "math.fmod of integers", "floating"),
        ("np.reciprocal(i)", "reciprocal of an integer", "1 / x"),
        ("np.clongdouble(x)", "np.clongdouble cannot be called", "math"),
        ("np.float32(x, x)", "takes one number", "convert"),
        ("np.maximum(x, x, out=a)", "no keyword arguments", "position"),
        ("math.sqrt(*a)", r"\* of a 1-d array", "x, y = a"),
        ("max(*x)", r"\* of a number", "tuple"),
        ("math.sqrt(a)", "a number is needed here, not a 1-d array", "index"),
        ("item.get_id(0)(1)", "cannot be called", "functions"),
        ("len(x)", "len of a number", "array"),
        ("np.sign(x > 0)", "of bools", "int"),
        ("np.left_shift(x, 1)", "<< of float32", "integers"),
        ("abs(x > 0)", "abs of a bool", "int"),
        ("np.signbit(i)", "signbit of an integer", "x < 0"),
        ("np.finfo(a).eps", "no limits", "floating"),
        ("np.iinfo(np.float32).max", "no limits", "integer"),
    ],
)
def test_calls_that_are_refused(text, message, hint):
    with pytest.raises(KernelLanguageError, match=message) as error:
        specialised(element_wise(text), 1, np.ones(1, "float32"), np.zeros(1, "float32"))
    assert hint in str(error.value).splitlines()[-1]


def test_predicates_are_bools():
    ir = specialised(element_wise("np.isnan(x)"), 1, np.ones(1, "float32"), np.zeros(1, "bool"))
    assert ir.body[-1].value == Call(BOOL, "isnan", (Var(FLOAT32, "x"),))
    ir = specialised(element_wise("np.isnan(x)"), 1, np.ones(1, "int32"), np.zeros(1, "bool"))
    assert ir.body[-1].value == Const(BOOL, False)


def test_rounding_gives_python_ints():
    ir = specialised(element_wise("math.floor(x) * i"), 1, np.ones(1, "f4"), np.zeros(1, "i8"))
    assert ir.body[-1].value.type == INT64
    ir = specialised(element_wise("round(x) * np.int32(2)"), 1, np.ones(1, "f4"), np.zeros(1, "i4"))
    assert ir.body[-1].value.type == INT32
