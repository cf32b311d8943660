"""Single expressions: wrapping arithmetic, precedences, literals, names."""

from __future__ import annotations

import numpy as np
import pytest

from fusionq.codegen import ExtentArgument, Pointer, Scalar, Stride
from fusionq.codegen.kernel_source import generate
from fusionq.codegen.names import Names
from fusionq.codegen.opencl import OPENCL_C
from fusionq.ir.nodes import (
    ArrayParam,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Kernel,
    Load,
    Logical,
    Param,
    ScalarParam,
    Select,
    Store,
    Unary,
    Var,
)
from fusionq.ir.types import (
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    UINT8,
    UINT32,
    UINT64,
)
from tests.unit.codegen.built_kernels import IDS, ITEM, N, add, binary, const, elementwise, mul, sub
from tests.unit.targets import TWO_CORES


def printed(value, **inputs):
    """How ``value`` is printed as what is stored."""
    scalars = tuple(ScalarParam(name, type) for name, type in inputs.items())
    kernel = elementwise("k", {}, value.type, value, scalars)
    text = generate(kernel, "strict", TWO_CORES, OPENCL_C).text
    return text.split("out[i] = ")[1].split(";")[0]


def params(type, *names):
    return tuple(Param(type, name) for name in names)


A, B, C = params(INT64, "a", "b", "c")
LONGS = {"a": INT64, "b": INT64, "c": INT64}
LONGS_AS_PARAMS = tuple(ScalarParam(name, type) for name, type in LONGS.items())
(A32, B32), (AF, BF) = params(INT32, "a", "b"), params(FLOAT32, "a", "b")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (add(ITEM, const(1)), "i + 1"),
        (sub(const(7), ITEM), "7 - i"),
        (add(A, B), "(long)((ulong)a + b)"),
        (add(const(1), A), "(long)(1 + (ulong)a)"),
        (mul(add(A, B), C), "(long)(((ulong)a + b) * c)"),
        (mul(A, add(B, C)), "(long)((ulong)a * ((ulong)b + c))"),
        (mul(A, add(ITEM, const(1))), "(long)((ulong)a * (i + 1))"),
        (Unary(INT64, "neg", A), "(long)((get_work_dim() >> 2) - (ulong)a)"),
        (sub(const(0), A), "(long)((get_work_dim() >> 2) - (ulong)a)"),
        (mul(A, const(-1)), "(long)((get_work_dim() >> 2) - (ulong)a)"),
        (binary("floordiv", ITEM, const(4)), "i / 4"),
        (binary("mod", ITEM, const(4)), "i % 4"),
        (binary("floordiv", sub(ITEM, const(1)), const(4)), "fq_floordiv_i64(i - 1, 4)"),
        (binary("floordiv", ITEM, A), "fq_floordiv_short_same_i64(i, a)"),
        (binary("floordiv", ITEM, ITEM), "fq_floordiv_short_i64(i, i)"),
        (binary("mod", A, ITEM), "fq_mod_i64(a, i)"),
        (binary("mod", A, const(3)), "fq_mod_i64(a, 3)"),
        (binary("shl", A, const(3)), "(long)((ulong)a << 3)"),
        (binary("shr", A, const(3)), "a >> 3"),
        (binary("shr", A, B), "fq_shr_i64(a, b)"),
        (binary("and", binary("or", A, B), C), "(a | b) & c"),
        (const(-(2**63)), "(-9223372036854775807L - 1)"),
    ],
)
def test_int64(value, text):
    assert printed(value, **LONGS) == text


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (UINT64, "a * b + a"), (UINT32, "a * b + a"), (INT32, "(int)((uint)a * b + a)"),
        (UINT8, "(uchar)((uint)a * b + a)"), (INT8, "(char)((uint)a * b + a)"),
        (FLOAT32, "a * b + a"),
    ],
)  # fmt: skip
def test_wrapping_arithmetic_is_unsigned(type, text):
    a, b = params(type, "a", "b")
    assert printed(add(mul(a, b), a), a=type, b=type) == text


def test_parentheses_follow_c():
    a, b, c = params(FLOAT32, "a", "b", "c")
    types = {"a": FLOAT32, "b": FLOAT32, "c": FLOAT32}
    assert printed(sub(sub(a, b), c), **types) == "a - b - c"
    assert printed(sub(a, sub(b, c)), **types) == "a - (b - c)"
    assert printed(add(a, add(b, c)), **types) == "a + (b + c)"
    assert printed(mul(add(a, b), c), **types) == "(a + b) * c"
    negated = Unary(FLOAT32, "neg", Unary(FLOAT32, "neg", a))
    assert printed(negated, **types) == "-(-a)"
    either = Logical("or", Compare("lt", a, b), Compare("lt", b, c))
    both = Logical("and", either, Compare("lt", a, c))
    assert printed(both, **types) == "((a < b) | (b < c)) & (a < c)"
    nested = Select(FLOAT32, both, Select(FLOAT32, either, a, b), c)
    assert printed(nested, **types) == (
        "((a < b) | (b < c)) & (a < c) ? ((a < b) | (b < c) ? a : b) : c"
    )


def test_conditions_on_ids_keep_their_branches():
    """Compilers look for bounds of ids in ``&&``."""
    a, b, c = params(INT64, "a", "b", "c")
    types = {"a": INT64, "b": INT64, "c": INT64}
    either = Logical("or", Compare("lt", a, b), Compare("lt", b, c))
    both = Logical("and", either, Compare("lt", a, c))
    assert printed(both, **types) == "(a < b || b < c) && a < c"


def test_products_of_sums_are_not_distributed():
    """But of arguments and of squares, of which Intel's compiler has nothing to share."""
    a, b = params(FLOAT32, "a", "b")
    types = {"a": FLOAT32, "b": FLOAT32}
    total, seven = add(a, b), const(0.5, FLOAT32)
    hidden = "as_float(as_uint(a + b) + fq_zero)"
    constant = "as_float(as_uint(0.5f) + fq_zero)"
    assert printed(mul(total, seven), **types) == f"(a + b) * {constant}"
    assert printed(mul(seven, total), **types) == f"{constant} * (a + b)"
    assert printed(binary("truediv", total, const(2, FLOAT32)), **types) == f"(a + b) * {constant}"
    assert printed(binary("truediv", total, const(3, FLOAT32)), **types) == "(a + b) / 3.0f"
    assert printed(mul(total, Call(FLOAT32, "exp", (a,))), **types) == f"{hidden} * exp(a)"
    both = mul(total, sub(a, b))
    assert printed(both, **types) == f"{hidden} * as_float(as_uint(a - b) + fq_zero)"
    assert printed(mul(total, total), **types) == "(a + b) * (a + b)"
    assert printed(mul(total, b), **types) == "(a + b) * b"
    assert printed(mul(mul(a, b), seven), **types) == "a * b * 0.5f"


def test_casts():
    a, b = params(FLOAT32, "a", "b")
    assert printed(Cast(BOOL, a), a=FLOAT32) == "a != 0"
    assert printed(Cast(INT32, add(a, b)), a=FLOAT32, b=FLOAT32) == "fq_i32_of_f32(a + b)"
    assert printed(Cast(FLOAT64, add(a, b)), a=FLOAT32, b=FLOAT32) == "(double)(a + b)"
    assert printed(Cast(INT64, Cast(INT32, A)), a=INT64) == "(long)(int)a"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Const(FLOAT32, 0.1), "0.1f"), (Const(FLOAT32, 1.0), "1.0f"),
        (Const(FLOAT32, -0.0), "-0.0f"),
        (Const(FLOAT32, 1e-45), "1e-45f"),
        (Const(FLOAT32, 3.4028234663852886e38), "3.4028235e+38f"),
        (Const(FLOAT32, 1e39), "INFINITY"), (Const(FLOAT32, float("nan")), "NAN"),
        (Const(FLOAT64, 0.1), "0.1"), (Const(FLOAT64, 1e300), "1e+300"),
        (Const(FLOAT64, float("-inf")), "-(double)INFINITY"), (Const(FLOAT16, 0.1), "0.1h"),
        (Const(FLOAT16, float("inf")), "(half)INFINITY"), (Const(BOOL, True), "true"),
        (Const(INT32, -(2**31)), "(-2147483647 - 1)"), (Const(UINT64, 2**64 - 1),
         "18446744073709551615UL"), (Const(UINT8, 255), "255"),
    ],
)  # fmt: skip
def test_literals(value, text):
    assert OPENCL_C.scalars.literal(value).text == text


@pytest.mark.parametrize("type", [FLOAT16, FLOAT32, FLOAT64], ids=str)
def test_decimal_literals_are_exact(type):
    bits = np.random.default_rng(1).integers(0, 1 << type.bits, 2000, dtype=f"u{type.nbytes}")
    for value in bits.view(type.dtype):
        if np.isfinite(value):
            text = OPENCL_C.scalars.literal(Const(type, float(value))).text
            assert type.dtype.type(text.rstrip("hf")) == value


def test_names_are_legal_unique_and_kept():
    names = Names(OPENCL_C.unit.is_reserved)
    assert [names.of(n) for n in ("a", "a", "float", "float4", "exp", "get_global_id")] == [
        "a", "a", "v_float", "v_float4", "v_exp", "v_get_global_id",
    ]  # fmt: skip
    assert names.of("a.1") == "a_1"
    assert names.of("a_1") == "a_1_2"
    assert names.of("ä") == "u00e4"
    assert names.of("1st") == "v_1st"
    assert names.fresh("a") == "a_2"


def test_only_what_is_used_is_passed():
    row = ArrayParam("row", FLOAT32, 2, contiguous=False)
    flat = ArrayParam("flat", FLOAT32, 3)
    unused = ArrayParam("unused", FLOAT32, 1)
    kernel = Kernel(
        "k", 1, (ScalarParam("s", FLOAT32), flat, unused, row, ScalarParam("n", INT64)),
        (("i", INT64),),
        (IDS[0], Store("flat", (ITEM, ITEM, ITEM), Load(FLOAT32, "row", (ITEM, const(0))))),
    )  # fmt: skip
    assert generate(kernel, "strict", TWO_CORES, OPENCL_C).slots == (
        Pointer("flat"), ExtentArgument("flat", 1), ExtentArgument("flat", 2),
        Pointer("row"), Stride("row", 0), Stride("row", 1),
    )  # fmt: skip
    used = Kernel("k", 1, kernel.params, kernel.variables,
                  (Store("flat", (N, N, N), Param(FLOAT32, "s")),))  # fmt: skip
    assert Scalar("s") in generate(used, "strict", TWO_CORES, OPENCL_C).slots


def test_float_modes_differ_in_contraction_only():
    kernel = elementwise("k", {}, FLOAT32, Param(FLOAT32, "x"), (ScalarParam("x", FLOAT32),))
    strict = generate(kernel, "strict", TWO_CORES, OPENCL_C).text
    fast = generate(kernel, "fast", TWO_CORES, OPENCL_C).text
    assert "FP_CONTRACT OFF" in strict
    assert fast == strict.replace("FP_CONTRACT OFF", "FP_CONTRACT ON")


def test_helpers_come_only_when_used_and_once():
    a, b = params(INT32, "a", "b")
    quotient = binary("floordiv", a, b)
    value = add(quotient, Binary(INT32, "floordiv", b, a))
    kernel = elementwise("k", {}, INT32, value, tuple(ScalarParam(n, INT32) for n in "ab"))
    text = generate(kernel, "strict", TWO_CORES, OPENCL_C).text
    assert text.count("static inline") == 1
    kernel = elementwise("k", {}, INT64, Var(INT64, "i"))
    assert "static inline" not in generate(kernel, "fast", TWO_CORES, OPENCL_C).text


def test_extrema_of_uniform_integers_are_conditions():
    """Intel's compiler for CPUs takes its ``min`` to differ between work-items, also of equal
    operands, and a loop up to there runs under masks; a condition between values that do differ is
    what it makes wrong vectors of (``tests/property/test_nested_recomputation.py``)."""

    def least(*args):
        return Call(INT64, "pymin", args)

    assert printed(least(A, const(4)), a=INT64) == "fq_uniform_min_i64(a, 4)"
    assert printed(Call(INT32, "maximum", (A32, B32)), a=INT32, b=INT32) == (
        "fq_uniform_max_i32(a, b)"
    )
    assert printed(least(A, ITEM), **LONGS) == "fq_pymin_i64(a, i)"
    assert printed(Call(FLOAT32, "minimum", (AF, BF)), a=FLOAT32, b=FLOAT32).startswith(
        "fq_minimum_f32("
    )
    kernel = elementwise("k", {}, INT64, least(A, B), LONGS_AS_PARAMS)
    text = generate(kernel, "strict", TWO_CORES, OPENCL_C).text
    assert "long fq_uniform_min_i64(long a, long b) {\n    return b < a ? b : a;\n}" in text
