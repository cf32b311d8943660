"""Scalar functions that Python's ``math`` and NumPy lack, or have in new versions only.

They take NumPy scalars, whose type they keep, and Python numbers, and also run as plain Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fractions import Fraction


def _floating(value: Any) -> np.dtype[Any]:
    """The floating dtype in which NumPy computes functions of ``value``."""
    found: np.dtype[Any] = np.exp(value).dtype
    return found


def cospi(x: Any) -> Any:
    """The cosine of ``x`` times pi, exact at multiples of 0.5.  Source: IEEE 754, section 9.2."""
    return _of_half_turns(x, 0.5)


def sinpi(x: Any) -> Any:
    """The sine of ``x`` times pi, exact at multiples of 0.5.  Source: IEEE 754, section 9.2."""
    return _of_half_turns(x, 0.0)


def _of_half_turns(x: Any, shift: float) -> Any:
    """``sin(pi * (x + shift))``."""
    with np.errstate(all="ignore"):
        dtype, value = _floating(x), np.float64(x)
        if not np.isfinite(value):
            return dtype.type(np.nan)
        turns = np.fmod(value, 2.0)
        if shift:
            turns = np.fmod(abs(turns) + shift, 2.0)
        sign = np.copysign(1.0, turns)
        turns = abs(turns)
        if turns > 1:
            turns, sign = turns - 1, -sign
        part = turns if turns <= 0.5 else 1 - turns
        sine = np.sin(np.pi * part) if part <= 0.25 else np.cos(np.pi * (0.5 - part))
        return dtype.type(sine if shift and sine == 0 else sign * sine)


def rsqrt(x: Any) -> Any:
    """1 divided by the square root of ``x``, each rounded."""
    with np.errstate(all="ignore"):
        dtype = _floating(x)
        return dtype.type(1) / np.sqrt(dtype.type(x))


def fma(x: Any, y: Any, z: Any) -> Any:
    """``x * y + z``, rounded once (in float16 computed in float32).  Source: IEEE 754, section
    5.4.1."""
    from fractions import Fraction  # takes a while to import

    with np.errstate(all="ignore"):
        dtype = np.dtype(np.hypot(np.hypot(x, y), z).dtype)
        wide = np.dtype(np.float32) if dtype.itemsize == 2 else dtype
        a, b, c = (wide.type(dtype.type(value)) for value in (x, y, z))
        if np.isfinite(a) and np.isfinite(b) and np.isinf(c):
            return dtype.type(c)
        if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)) or a == 0 or b == 0:
            return dtype.type(a * b + c)
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        if exact == 0:
            return dtype.type(a * b + c)  # with the sign of the sum of two zeros or of x and -x
        return dtype.type(_rounded(exact, wide))


def _rounded(exact: Fraction, dtype: np.dtype[Any]) -> Any:
    """The number of a binary floating dtype that is nearest, ties to even."""
    from fractions import Fraction

    info = np.finfo(dtype)
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, int(info.minexp)) - int(info.nmant))
    rounded = round(magnitude / unit) * unit  # Fraction rounds ties to even
    if rounded > Fraction(float(info.max)):
        return dtype.type(np.inf if exact > 0 else -np.inf)
    return dtype.type(np.copysign(float(rounded), 1 if exact > 0 else -1))  # also where it is 0


def clz(x: Any) -> Any:
    """How many bits of an integer are zero before the first one, in its own type; all of them for
    0."""
    value = x if isinstance(x, np.integer) else np.int64(x)
    bits = value.dtype.itemsize * 8
    return value.dtype.type(bits - (int(value) % 2**bits).bit_length())


def popcount(x: Any) -> Any:
    """How many bits of an integer are one, in its own type (two's complement)."""
    value = x if isinstance(x, np.integer) else np.int64(x)
    return value.dtype.type((int(value) % 2 ** (value.dtype.itemsize * 8)).bit_count())


def ldexp(x: Any, exponent: Any) -> Any:
    """``x`` times two to the ``exponent``, an integer, rounded once; ``math.ldexp`` of kernels."""
    with np.errstate(all="ignore"):
        dtype = _floating(x)
        number = min(max(int(exponent), -5000), 5000)
        wide = np.dtype(np.float32) if dtype.itemsize == 2 else dtype
        return dtype.type(np.ldexp(wide.type(dtype.type(x)), np.int32(number)))
