"""Integer division, and conversions between integers and floats, in operations that CPUs have for
vectors.

For what AVX2 has no instruction, and for divisions under a mask, Intel's CPU compiler (runtime
2026.21.7) runs the work-items of a vector one by one.  262,144 work-items take, in µs, with what C
has and with these functions:

    float of an int64 id                        85      20, under a condition  605   22
    int64 of a float, saturated                560      76
    int32 of a float, saturated                277      22
    id // n and id % n                         412      45
    int32 // 3 under a condition               943      30

All are exact.  For integers a and b, |a| < 2⁵¹ and b ≠ 0, the double next to a / b has the same
floor as a / b: a quotient that is no integer is at least 1 / |b| from the next one, more than half
a unit in the last place of a double of its size.  A double holds each integer below 2⁵³; added to
1.5 · 2⁵², one below 2⁵¹ stands in the last bits.

Where b is the same for all, (a + h) · (1 / b) has that floor, too, h being a half with b's sign:
(a + h) / b is at least 1 / 2|b| from the next integer, and the product, which is rounded twice,
less than that from it while |a| < 2⁵¹, in floats while |a| < 2²².

In the bodies ``a`` and ``b`` are the operands, of type ``$T``; ``$U`` is the unsigned one of its
wrapping arithmetic, ``$R`` the result's.  Devices without float64 keep C's operators.
"""

from __future__ import annotations

from textwrap import dedent

from fusionq.codegen.intervals import DOUBLE_BITS, FLOAT_BITS
from fusionq.ir.types import ScalarType

_OF_INTEGER = "(as_double((long)a + 0x4338000000000000L) - 6755399441055744.0)"
_OF_HALVES = "((double)({high})({x} >> 32) * 4294967296.0 + (double)(uint){x})"
_TO_INTEGER = "as_long({x} + 6755399441055744.0) - 0x4338000000000000L"

_DIVISION = {
    "floordiv": "return b == 0 ? 0 : ($T)quotient;",
    "mod": "return ($T)(($U)a - ($U)quotient * ($U)divisor);",
}


def division(
    op: str, type: ScalarType, bits: int, same_divisor: bool, otherwise: str
) -> str | None:
    """The body of ``floordiv`` or ``mod`` of integers, as NumPy defines them; ``otherwise`` without
    float64.  ``bits``: ``a`` is less than two to so many in magnitude; None where these are more
    than a double has.  ``same_divisor``: ``b`` is the same for all work-items."""
    if type.bits == 64 and bits > DOUBLE_BITS:
        return None
    divisor = "const $T divisor = b == 0 ? 1 : b;"
    if type.bits < 64 and bits <= FLOAT_BITS:
        quotient = _floored("float", "f", "(float)a", "(float)divisor", type, same_divisor)
        return f"{divisor}\n{quotient}\nconst int quotient = (int)whole;\n{_DIVISION[op]}"
    a, b = "(double)a", "(double)divisor"
    if type.bits == 64:
        a, b = _OF_INTEGER, _halves("divisor", type)
    quotient = _floored("double", "", a, b, type, same_divisor)
    converted = f"const long quotient = {_TO_INTEGER.format(x='whole')};"
    return _with_float64(f"{divisor}\n{quotient}\n{converted}\n{_DIVISION[op]}", otherwise)


def _floored(real: str, end: str, a: str, b: str, type: ScalarType, same_divisor: bool) -> str:
    """``whole``, the floor of a / b; a division by what is the same for all is one product for each
    work-item, since the other factor is computed once."""
    if not same_divisor:
        return f"const {real} whole = floor({a} / {b});"
    half = f"0.5{end}"
    if type.kind == "i":
        half = f"(divisor < 0 ? -0.5{end} : 0.5{end})"
    return f"""\
const {real} inverse = 1.0{end} / ({b});
const {real} whole = floor(({a} + {half}) * inverse);"""


def float_of_integer(target: ScalarType, source: ScalarType, within_double: bool) -> str | None:
    """The body of a conversion of ``a``, of 64 bits; ``within_double`` as above.  None: C's."""
    if within_double:
        # Integers that float32 rounds are beyond float16, infinities in any case.
        rounded = "(float)" if target.name == "float16" else ""
        return _with_float64(f"return ($R){rounded}{_OF_INTEGER};", "return ($R)a;")
    if target.name == "float64":
        return f"return {_halves('a', source)};"
    return None


def half_of_double() -> str:
    """The body of the conversion of ``a``: float32's last bit says whether something was cut off,
    so that the number is rounded once.  Compilers for CPUs call a function for each.

    Source: Boldo, Melquiond, Emulation of a FMA and Correctly Rounded Sums (2008): to odd."""
    return """\
const float near = (float)a;
const double back = near;
const uint odd = (as_uint(near) - (fabs(back) > fabs(a) ? 1u : 0u)) | 1u;
return ($R)(back == a || a != a ? near : as_float(odd));"""


def integer_of_float(target: ScalarType, source: ScalarType) -> str:
    """The body of the conversion that truncates, saturates and gives 0 for NaN."""
    wide = source.name == "float64"
    real, end = ("double", "") if wide else ("float", "f")
    signed = target.kind == "i"
    x = f"const {real} x = a;"
    if target.bits <= 16:
        top = (1 << target.bits - signed) - 1
        low, high = f"{-top - 1 if signed else 0}.0{end}", f"{top}.0{end}"
        return f"{x}\nreturn ($R)(int)(x != x ? 0 : x < {low} ? {low} : x > {high} ? {high} : x);"
    if target.bits == 32:
        return f"{x}\n{_INT32 if signed else _UINT32}".replace("@END", end).replace("@REAL", real)
    bits, exponent, bias, mantissa = ("ulong", 0x7FF, 1075, 52) if wide else ("uint", 0xFF, 150, 23)
    return f"""\
{x}
const {bits} bits = as_{bits}(x);
const long exponent = (long)(bits >> {mantissa} & {exponent:#x}) - {bias};
const ulong mantissa = (bits & {(1 << mantissa) - 1:#x}) | {1 << mantissa:#x};
const ulong large = mantissa << (ulong)clamp(exponent, 0L, 63L);
const ulong small = mantissa >> (ulong)clamp(-exponent, 0L, 63L);
const ulong size = exponent < 0 ? small : large;
""" + (_INT64 if signed else _UINT64).replace("@END", end)


_INT32 = """\
const bool fits = x >= -0x1p31@END && x < 0x1p31@END;
const int inside = (int)(fits ? x : 0);
return fits ? inside : x > 0 ? INT_MAX : x < 0 ? INT_MIN : 0;"""

_UINT32 = """\
const bool upper = x >= 0x1p31@END;
const @REAL rest = upper ? x - 0x1p31@END : x;
const bool fits = rest >= 0 && rest < 0x1p31@END;
const uint inside = (uint)(int)(fits ? rest : 0) + (upper ? 0x80000000u : 0u);
return fits ? inside : x > 0 ? UINT_MAX : 0;"""

_INT64 = """\
const bool fits = x >= -0x1p63@END && x < 0x1p63@END;
const long inside = (long)(x < 0 ? 0 - size : size);
return fits ? inside : x > 0 ? LONG_MAX : x < 0 ? LONG_MIN : 0;"""

_UINT64 = """\
const bool fits = x > -1 && x < 0x1p64@END;
return fits ? size : x > 0 ? ULONG_MAX : 0;"""


def _halves(x: str, type: ScalarType) -> str:
    """``x``, of 64 bits, as a double: both halves are exact, and their sum rounds once."""
    return _OF_HALVES.format(x=x, high="int" if type.kind == "i" else "uint")


def _with_float64(body: str, otherwise: str) -> str:
    return f"#if defined(cl_khr_fp64)\n{body}\n#else\n{dedent(otherwise)}\n#endif"
