"""NEP 50 in kernels: arithmetic, comparisons, casts, joins; the IR against plain Python."""

import math

import numpy as np
import pytest

from fusionq.base.errors import KernelLanguageError
from fusionq.frontend.typing_rules import WEAK_BOOL, arithmetic_type, comparison_type, join
from fusionq.ir.nodes import Binary, Call, Cast, Compare, Const, Param, Store, Var
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
    WEAK_FLOAT,
    WEAK_INT,
)
from fusionq.ir.walk import expressions
from tests.unit.frontend.bodies import both, refused
from tests.unit.frontend.running import define, run_both, run_ir, specialised


def expression(text, *arrays, n=None, **names):
    """The IR of an expression over ``a``, ``b`` (elements of arrays) and the Python int ``n``,
    stored into a float64 array; without the conversion to that."""
    parameters = "".join(f", {name}_" for name, _ in zip("abc", arrays, strict=False))
    setup = "".join(f"    {p} = {p}_[i]\n" for p, _ in zip("abc", arrays, strict=False))
    function = define(
        f"def k(item, out{parameters}, n):\n    i = item.get_id(0)\n{setup}    out[i] = {text}\n",
        **names,
    )
    ir = specialised(function, 1, np.zeros(1), *arrays, 1 if n is None else n)
    store = ir.body[-1]
    assert isinstance(store, Store)
    value = store.value
    return value.operand if isinstance(value, Cast) else value


def of(*dtypes):
    return [np.ones(1, dtype) for dtype in dtypes]


NUMERIC = [name for name in SCALAR_TYPES if name != "bool"]


@pytest.mark.parametrize("b", NUMERIC)
@pytest.mark.parametrize("a", NUMERIC)
def test_arithmetic_of_two_arrays_has_numpys_type(a, b):
    expected = (np.ones(1, a)[0] + np.ones(1, b)[0]).dtype.name
    assert expression("a + b", *of(a, b)).type.name == expected


@pytest.mark.parametrize("literal", ["2", "0.5"])
@pytest.mark.parametrize("a", NUMERIC)
def test_a_literal_is_weak(a, literal):
    expected = (np.ones(1, a)[0] * eval(literal)).dtype.name
    value = expression(f"a * {literal}", *of(a))
    assert value.type.name == expected
    assert isinstance(value, Binary) and value.rhs == Const(SCALAR_TYPES[expected], eval(literal))


@pytest.mark.parametrize("weak", ["n", "len(a_)", "a_.shape[0]", "int(a)", "math.floor(a)"])
def test_python_ints_at_run_time_are_weak(weak):
    value = expression(f"b * ({weak})", *of("float32", "float32"), math=math)
    assert value.type == FLOAT32


def test_python_floats_at_run_time_are_weak():
    assert expression("b * float(a)", *of("float64", "float32")).type == FLOAT32
    assert expression("b * n", *of("float64", "float32"), n=0.5).type == FLOAT32


def test_ids_are_strong():
    assert expression("b * i", *of("float64", "float32")).type == FLOAT64
    assert expression("a + i", *of("int8")).type == INT64


def test_a_python_bool_is_an_int_in_arithmetic_and_numpys_is_not():
    assert arithmetic_type(WEAK_BOOL, WEAK_INT) == WEAK_INT
    assert arithmetic_type(BOOL, WEAK_INT) == INT64
    assert arithmetic_type(WEAK_BOOL, INT8) == INT8
    assert arithmetic_type(BOOL, WEAK_FLOAT) == FLOAT64
    assert arithmetic_type(BOOL, FLOAT32) == FLOAT32
    assert expression("a * ((n > 1) + 1)", *of("float32")).type == FLOAT32
    assert expression("a * ((a > 1) + 1)", *of("float32")).type == FLOAT64


@pytest.mark.parametrize(
    ("a", "b", "joined"),
    [
        (WEAK_INT, WEAK_FLOAT, WEAK_FLOAT),
        (WEAK_INT, INT8, INT8),
        (WEAK_INT, INT64, INT64),
        (WEAK_INT, FLOAT16, FLOAT16),
        (WEAK_FLOAT, FLOAT32, FLOAT32),
        (WEAK_FLOAT, INT32, FLOAT64),
        (WEAK_FLOAT, INT64, None),
        (WEAK_BOOL, BOOL, BOOL),
        (WEAK_BOOL, WEAK_INT, None),
        (BOOL, INT8, None),
        (FLOAT32, FLOAT64, FLOAT64),
        (INT32, INT64, INT64),
        (INT32, UINT8, INT32),
        (INT8, UINT8, INT16),
        (INT32, FLOAT32, FLOAT64),
        (INT16, FLOAT32, FLOAT32),
        (UINT64, FLOAT64, None),
        (UINT64, INT64, None),
        (INT32, INT32, INT32),
    ],
)
def test_joins(a, b, joined):
    assert join(a, b) == joined
    assert join(b, a) == joined


@pytest.mark.parametrize(
    ("a", "b", "common"),
    [
        (INT8, UINT8, INT16),
        (UINT32, INT32, INT64),
        (INT64, UINT64, None),
        (UINT64, INT8, None),
        (WEAK_INT, INT8, INT64),
        (WEAK_INT, UINT64, None),
        (WEAK_INT, FLOAT32, FLOAT32),
        (WEAK_FLOAT, INT32, FLOAT64),
        (FLOAT32, UINT64, FLOAT64),
        (BOOL, INT8, INT8),
        (WEAK_INT, WEAK_INT, INT64),
        (BOOL, WEAK_BOOL, BOOL),
    ],
)
def test_comparison_types(a, b, common):
    assert comparison_type(a, b) == common
    assert comparison_type(b, a) == common


def test_int_division_is_float64_and_float_division_keeps_its_type():
    assert expression("a / b", *of("int8", "int8")).type == FLOAT64
    assert expression("a / 2", *of("float16")).type == FLOAT16
    assert expression("a * (n / 2)", *of("float32")).type == FLOAT32


@pytest.mark.parametrize("op", ["//", "%"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "float32", "float64"])
def test_floor_division_and_remainder_are_pythons(op, dtype):
    function = define(
        "def k(item, a, b, out):\n    i = item.get_id(0)\n"
        f"    j = item.get_id(1)\n    out[i, j] = a[i] {op} b[j]\n"
    )
    values = [0, 1, 2, 3, 7, 250] if dtype == "uint16" else [-7, -3, -1, 0, 1, 2, 5]
    a = np.array(values, dtype)
    run_both(function, (a.size, a.size), a, a, np.zeros((a.size, a.size), dtype))


def test_power():
    squared = Binary(FLOAT32, "pow", Var(FLOAT32, "a"), Const(FLOAT32, 2.0))
    assert expression("a ** 2", *of("float32")) == squared
    assert expression("a ** 3", *of("int32")).type == INT32
    assert expression("a ** b", *of("int32", "uint8")).type == INT32
    assert expression("a ** b", *of("int64", "uint64")).type == FLOAT64
    assert expression("a ** n", *of("float32")).type == FLOAT32
    for text in ("a ** b", "a ** -1", "n ** n"):
        with pytest.raises(KernelLanguageError, match=r"power that may be negative.*\n.*\n.*\n.*"):
            expression(text, *of("int32", "int32"))


def test_constants_are_computed_at_compile_time():
    assert expression("a * (2 ** 10 - 1)", *of("int32")).rhs == Const(INT32, 1023)
    assert expression("a * (7 // -2)", *of("int32")).rhs == Const(INT32, -4)
    assert expression("a * np.float32(0.1)", *of("float64")).rhs == Const(
        FLOAT64, float(np.float32(0.1))
    )
    assert expression("a * (np.int8(100) + np.int8(100))", *of("int8")).rhs == Const(INT8, -56)


@pytest.mark.parametrize(
    "text", ["a + 300", "np.int8(300) + a", "a * (1 // 0)", "a + 2 ** 5000", "a * 10.0 ** 999"]
)
def test_constants_that_cannot_be_are_refused(text):
    with pytest.raises(KernelLanguageError, match=r"out of the range|cannot be computed|too large"):
        expression(text, *of("int8"))


def test_literals_round_to_the_type_they_take():
    assert expression("a * 0.1", *of("float32")).rhs.value == float(np.float32(0.1))
    assert expression("a * 0.1", *of("float64")).rhs.value == 0.1
    assert math.isinf(expression("a * 1e300", *of("float32")).rhs.value)


def test_comparisons_of_integers_are_exact():
    function = define(
        "def k(item, a, b, out):\n    i = item.get_id(0)\n    j = item.get_id(1)\n"
        "    out[i, j] = (a[i] < b[j]) + 2 * (a[i] == b[j]) + 4 * (a[i] >= b[j])\n"
    )
    a, b = np.array([-128, -1, 0, 1, 127], "int8"), np.array([0, 1, 127, 128, 255], "uint8")
    run_both(function, (5, 5), a, b, np.zeros((5, 5), "int64"))
    run_both(function, (5, 5), b, a, np.zeros((5, 5), "int64"))


@pytest.mark.parametrize(
    ("text", "answer"),
    [("a < 300", True), ("300 < a", False), ("a >= -129", True), ("a == 1000", False),
     ("a != 1000", True), ("-129 < a", True), ("a <= -500", False)],
)  # fmt: skip
def test_comparison_with_a_literal_out_of_range_is_known(text, answer):
    assert expression(text, *of("int8")) == Const(FLOAT64, float(answer))


def test_comparison_with_a_literal_in_range_stays_narrow():
    value = expression("a < 100", *of("int8"))
    assert isinstance(value, Compare) and value.rhs == Const(INT8, 100)


def test_run_time_python_ints_compare_in_int64():
    value = expression("a < n", *of("int8"))
    assert isinstance(value, Compare)
    assert value.lhs.type == INT64 and value.rhs == Param(INT64, "n")


@pytest.mark.parametrize("text", ["a < b", "b == a"])
def test_int64_and_uint64_do_not_compare(text):
    with pytest.raises(KernelLanguageError, match=r"(?s)no type holds both.*np.uint64"):
        expression(text, *of("int64", "uint64"))


def test_casts():
    assert expression("np.float32(a) * b", *of("float64", "float32")).type == FLOAT32
    assert expression("np.int16(a) + b", *of("float64", "int8")).type == INT16
    assert expression("a_.dtype.type(0.1) + b", *of("float32", "float32")).type == FLOAT32
    assert expression("bool(a) + b", *of("float32", "int8")).type == INT8
    value = expression("int(a)", *of("float32"))
    assert value == Cast(INT64, value.operand)


def test_conversions_to_integers_saturate():
    function = define(
        "def k(item, a, narrow, weak, stored):\n    i = item.get_id(0)\n"
        "    narrow[i] = np.int32(a[i])\n    weak[i] = int(a[i])\n    stored[i] = a[i]\n"
    )
    a = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.9, -2.9, 3e9], "float32")
    narrow, weak, stored = (np.zeros(8, t) for t in ("int32", "int64", "uint8"))
    _, narrow, weak, stored = run_both(function, 8, a, narrow, weak, stored)
    top = 2**31 - 1
    assert narrow.tolist() == [0, top, -top - 1, top, -top - 1, 2, -2, top]
    assert weak.tolist()[:2] == [0, 2**63 - 1]
    assert stored.tolist() == [0, 255, 0, 255, 0, 2, 0, 255]


def test_a_python_int_argument_into_a_narrower_type_has_bounds():
    function = define(
        "def k(item, a, b, n, m):\n    i = item.get_id(0)\n"
        "    a[i] = a[i] + n\n    b[i] = n\n    b[i] = b[i] + m * 2\n"
    )
    ir = specialised(function, 1, np.zeros(1, "int16"), np.zeros(1, "uint8"), 1, 1)
    assert ir.param("n").bounds == (0, 255)
    assert ir.param("m").bounds is None
    function = define("def k(item, a, n):\n    a[0] = a[0] + n\n")
    assert specialised(function, 1, np.zeros(1, "int8"), 1).param("n").bounds == (-128, 127)
    assert specialised(function, 1, np.zeros(1, "int64"), 1).param("n").bounds is None
    assert specialised(function, 1, np.zeros(1, "float32"), 1).param("n").bounds is None
    assert specialised(function, 1, np.zeros(1, "int8"), np.int64(1)).param("n").bounds is None


def test_a_comparison_alone_gives_no_bounds():
    function = define("def k(item, a, n):\n    a[0] = a[0] < n\n")
    assert specialised(function, 1, np.zeros(1, "int8"), 1).param("n").bounds is None


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("(a > 0) + (b > 0)", r"\+ of two bools", "convert"),
        ("-(a > 0)", "- of a bool", "int"),
        ("~(a > 0)", "~ of a bool", "not"),
        ("~a", "~ of float32", "integer"),
        ("a & b", "& of float32 and float32", "np.int64"),
        ("a << 1", "<< of float32 and int", "np.int64"),
        ("a > 0 and b", "give one of their operands", "!= 0"),
        ("a if b > 0 else i", "has type float32 or int64", "np.float64"),
        ("min(a > 0, b > 0)", "of a bool", "int"),
        ("min(a, i)", "has type float32 or int64", "np.float64"),
    ],
)
def test_operators_that_are_refused(text, message, hint):
    with pytest.raises(KernelLanguageError, match=message) as error:
        expression(text, *of("float32", "float32"))
    assert hint in str(error.value).splitlines()[-1]


def test_bits_of_mixed_integers():
    assert expression("a & 7", *of("uint8")).type == UINT8
    assert expression("a | b", *of("int8", "uint8")).type == INT16
    assert expression("(a > 1) & (b > 1)", *of("int8", "uint8")).type == BOOL
    with pytest.raises(KernelLanguageError, match="no integer type holds both"):
        expression("a ^ b", *of("int64", "uint64"))


def test_bits_of_uint64_and_what_is_not_negative():
    """NumPy has no type for both; such as a shift by a constant of type int32."""
    for text in ("a >> bit", "bit << a", "a & bit", "bit | a", "a ^ np.int64(item.get_id(0))"):
        assert expression(text, *of("uint64"), bit=np.int32(63)).type == UINT64
    for text in ("a >> bit", "bit | a", "a ^ np.int64(n)", "a & (np.int64(item.get_id(0)) - 1)"):
        with pytest.raises(KernelLanguageError, match="no integer type holds both"):
            expression(text, *of("uint64"), bit=np.int32(-1))
    a = np.array([1 << 63, 3, 2**64 - 1], "uint64")
    out = np.zeros((3, 3), "uint64")
    function = define(
        "def k(item, a, out):\n"
        "    i = item.get_id(0)\n"
        "    out[0, i] = -(a[i] >> bit) | np.uint64(7)\n"
        "    out[1, i] = (a[i] >> np.int64(i)) & np.int8(6)\n"
        "    out[2, i] = np.int16(3) << (a[i] & np.int8(6))\n",
        bit=np.int32(63),
    )
    run_ir(function, 3, a, out)
    u = np.uint64
    np.testing.assert_array_equal(
        out,
        [
            -(a >> u(63)) | u(7),
            (a >> np.arange(3, dtype="uint64")) & u(6),
            u(3) << (a & u(6)),
        ],
    )


def test_not_of_numbers_and_bools():
    value = expression("not a", *of("float32"))
    assert isinstance(value, Compare) and value.op == "eq"
    value = expression("not a < b", *of("int32", "int32"))
    assert isinstance(value, Compare) and value.op == "ge"
    assert expression("not a < b", *of("float32", "float32")).op == "not"  # not >=, for NaN


def test_shifts_and_powers_of_integers_run_as_in_python():
    function = define(
        "def k(item, a, b, out):\n    i = item.get_id(0)\n"
        "    out[i, 0] = a[i] << b[i]\n    out[i, 1] = a[i] >> b[i]\n"
        "    out[i, 2] = a[i] ** b[i]\n    out[i, 3] = a[i] ** 3\n    out[i, 4] = ~a[i]\n"
    )
    a, b = np.array([1, -3, 7, 100], "int32"), np.array([1, 2, 5, 3], "uint8")
    run_both(function, 4, a, b, np.zeros((4, 5), "int64"))


def test_min_and_max_of_mixed_integers_compare_exactly():
    function = define(
        "def k(item, a, out, n):\n    i = item.get_id(0)\n"
        "    out[i] = min(a[i], n) + max(n, a[i], 3)\n"
    )
    a = np.array([-128, -3, 0, 5, 100], "int8")
    for n in (4, 1000, -1000):
        run_both(function, 5, a, np.zeros(5, "int64"), n)
    ir = specialised(function, 5, a, np.zeros(5, "int64"), 4)
    calls = [e for e in expressions(ir.body) if isinstance(e, Call)]
    assert [c.function for c in calls] == ["pymax"]  # the others are selects on int64


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("min(a[i], n)", "int64"),
        ("max(a[i], n)", "int64"),
        ("min(a[i], k)", "uint8"),  # not greater than a[i]
        ("max(a[i], k)", "uint8"),
        ("max(a[i], 1000 * k)", "int64"),
        ("min(a[i], k - 1)", "int64"),
        ("max(a[i], 7)", "uint8"),
    ],
)
def test_the_type_of_the_smaller_of_an_integer_and_a_python_int(text, dtype):
    function = define(
        "def k(item, a, out, n):\n    i = item.get_id(0)\n"
        f"    for k in range(100):\n        y = {text}\n        out[i] = y\n"
    )
    a = np.array([0, 3, 255], "uint8")
    for n in (-1, 40, 1000):
        run_both(function, 3, a, np.zeros(3, "int64"), n)
    ir = specialised(function, 3, a, np.zeros(3, "int64"), 1)
    assert {t.name for name, t in ir.variables if name.startswith("y")} == {dtype}


def test_integer_powers_whose_exponents_cannot_be_negative():
    both("for k in range(1, 5):", "    out[i, 0] += 2 ** k + 3 ** (k - 1)", "out[i, 1] = 2 ** i")
    both("for k in range(6, 0, -2):", "    out[i, 0] += (-3) ** k * np.int32(2) ** k")
    for exponent in ("n", "i - 1", "k - 1", "-k"):
        lines = ["for k in range(4):", f"    out[i, 0] += 2 ** ({exponent})"]
        assert "to a power that may be negative" in refused(*lines)
