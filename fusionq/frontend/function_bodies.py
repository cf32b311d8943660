"""Functions of NumPy and ``math``, written in the kernel language; ``written_functions`` inlines
them.

``own`` is the integer type of the arguments, ``unsigned`` the unsigned one of as many bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_LOG2 = math.log(2)
_LOG2E = math.log2(math.e)


def heaviside(x: Any, at_zero: Any) -> Any:
    return np.where(x != x, x, np.where(x < 0, 0.0, np.where(x > 0, 1.0, at_zero)))


def logaddexp(x: Any, y: Any) -> Any:
    """In NumPy's order of operations."""
    difference = x - y
    larger = np.where(difference > 0, x, y)
    return np.where(x == y, x + _LOG2, larger + np.log1p(np.exp(-abs(difference))))


def logaddexp2(x: Any, y: Any) -> Any:
    """In NumPy's order of operations."""
    difference = x - y
    larger = np.where(difference > 0, x, y)
    tail = _LOG2E * np.log1p(np.exp2(-abs(difference)))
    return np.where(x == y, x + 1.0, larger + tail)


def spacing(x: Any) -> Any:
    """The distance to the next number away from zero, with the sign of ``x``."""
    size = abs(x)
    found = np.nextafter(size, np.inf) - size
    return np.where(x < 0, -found, found)


def spacing_of_float16(x: Any) -> Any:
    """The distance to the next greater number, as NumPy has it for this type."""
    return np.where(np.isinf(x), np.nan, np.nextafter(x, np.inf) - x)


def sinc(x: Any) -> Any:
    """In NumPy's order of operations."""
    angle = np.pi * np.where(x == 0, 1.0e-20, x)
    return np.sin(angle) / angle


def nan_to_num(x: Any, largest: Any) -> Any:
    return np.where(x != x, 0.0, np.minimum(np.maximum(x, -largest), largest))


def remainder(x: Any, y: Any) -> Any:
    """IEEE 754, section 5.3.1, exact; the algorithm of CPython's math.remainder."""
    size, divisor = abs(x), abs(y)
    rest = math.fmod(size, divisor)
    other = divisor - rest
    tie = rest - 2.0 * math.fmod(0.5 * (size - rest), divisor)
    found = np.where(rest < other, rest, np.where(rest > other, -other, tie))
    return math.copysign(1.0, x) * found


def modf(x: Any) -> Any:
    whole = np.trunc(x)
    return np.copysign(np.where(np.isinf(x), 0.0, x - whole), x), whole


def gcd(a: Any, b: Any, unsigned: Any, own: Any) -> Any:
    x, y = unsigned(abs(a)), unsigned(abs(b))
    while y != 0:
        x, y = y, x % y
    return own(x)


def lcm(a: Any, b: Any, unsigned: Any, own: Any) -> Any:
    x, y = unsigned(abs(a)), unsigned(abs(b))
    while y != 0:
        x, y = y, x % y
    return own(unsigned(abs(a)) // max(x, 1) * unsigned(abs(b)))


def fmod(a: Any, b: Any, unsigned: Any, own: Any) -> Any:
    """With the sign of ``a``, as C has it; 0 where ``b`` is."""
    rest = own(unsigned(abs(a)) % unsigned(abs(b)))
    return np.where(a < 0, -rest, rest)
