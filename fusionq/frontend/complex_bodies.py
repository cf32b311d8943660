"""Functions of complex numbers on their parts, written in the kernel language; ``complex_numbers``
inlines them.

Infinities and NaN are those of C99, annex G, as in NumPy; other results are right to a few units in
the last place, as far as the functions of real numbers are.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fusionq.language.math_functions import fma

_LN2 = math.log(2)
_LOG2E = 1 / math.log(2)
_LOG10E = 1 / math.log(10)
_LARGE = 22
"""tanh of more is 1, in float64 too."""


def quotient(a: Any, b: Any, c: Any, d: Any) -> Any:
    """The parts of (a + bj) / (c + dj) by Smith's algorithm, in NumPy's order of operations."""
    if abs(c) >= abs(d):
        if abs(c) == 0 and abs(d) == 0:
            return a / abs(c), b / abs(c)
        ratio = d / c
        scale = 1.0 / (c + d * ratio)
        return (a + b * ratio) * scale, (b - a * ratio) * scale
    ratio = c / d
    scale = 1.0 / (d + c * ratio)
    return (a * ratio + b) * scale, (b * ratio - a) * scale


def exponential(a: Any, b: Any) -> Any:
    if b == 0:
        return np.exp(a), b
    if np.isinf(a) and not np.isfinite(b):
        if a < 0:
            return np.exp(a), np.copysign(np.exp(a), b)
        return a, b - b
    size = np.exp(a)
    if np.isinf(size) and np.isfinite(a):  # its product with the cosine may be none
        root = np.exp(a * 0.5)
        return root * np.cos(b) * root, root * np.sin(b) * root
    return size * np.cos(b), size * np.sin(b)


def log_of_length(a: Any, b: Any) -> Any:
    """log(hypot(a, b)), also where that is near 1, very large or subnormal."""
    length = np.hypot(a, b)
    large, small = max(abs(a), abs(b)), min(abs(a), abs(b))
    if length > 0.7 and length < 1.5:  # a * a + b * b - 1 with twice the digits (Dekker)
        square, other = large * large, small * small
        rest = fma(large, large, -square) + fma(small, small, -other)
        near = square - 1.0
        total = near + other
        virtual = total - near
        rest += (near - (total - virtual)) + (other - virtual)
        return 0.5 * np.log1p(total + rest)
    if np.isinf(length) and not np.isinf(large):
        return np.log(np.hypot(a * 0.5, b * 0.5)) + _LN2
    if length < 1e-30:
        return np.log(np.hypot(a * 2.0**60, b * 2.0**60)) - 60 * _LN2
    return np.log(length)


def logarithm(a: Any, b: Any) -> Any:
    return log_of_length(a, b), np.arctan2(b, a)


def logarithm2(a: Any, b: Any) -> Any:
    return log_of_length(a, b) * _LOG2E, np.arctan2(b, a) * _LOG2E


def logarithm10(a: Any, b: Any) -> Any:
    return log_of_length(a, b) * _LOG10E, np.arctan2(b, a) * _LOG10E


def square_root(a: Any, b: Any) -> Any:
    """Kahan, Branch cuts for complex elementary functions, 1987, with other scaling."""
    if a == 0 and b == 0:
        return abs(a), b
    if np.isinf(b):
        return abs(b), b
    if np.isinf(a):
        bound = np.where(np.isnan(b), b, np.copysign(0.0, b))
        if a > 0:
            return a, bound
        return abs(np.where(np.isnan(b), b, 0.0)), np.copysign(a, b)
    scale, back = a * 0.0 + 1.0, 1.0
    large = max(abs(a), abs(b))
    if np.isinf(large * 4.0):
        scale, back = scale * 0.0625, 4.0
    elif large < 1e-30:
        scale, back = scale * 2.0**60, 2.0**-30
    x, y = a * scale, b * scale
    root = np.sqrt((abs(x) + np.hypot(x, y)) * 0.5)
    other = abs(y) / (2.0 * root)
    if a >= 0:
        return root * back, np.copysign(other, b) * back
    if a < 0:
        return other * back, np.copysign(root, b) * back
    return a, a + b  # a NaN


def hyperbolic_sine(a: Any, b: Any) -> Any:
    if b == 0:
        return np.sinh(a), b
    if np.isinf(a) and not np.isfinite(b):
        return a, b - b
    if a == 0:
        return a, np.sin(b)
    if np.isinf(np.cosh(a)) and np.isfinite(a):
        root = np.exp(abs(a) * 0.5)
        return (
            np.copysign(root, a) * (0.5 * np.cos(b)) * root,
            root * (0.5 * np.sin(b)) * root,
        )
    return np.sinh(a) * np.cos(b), np.cosh(a) * np.sin(b)


def hyperbolic_cosine(a: Any, b: Any) -> Any:
    if b == 0:
        return np.cosh(a), np.copysign(b, np.copysign(1.0, a) * np.copysign(1.0, b))
    if np.isinf(a) and not np.isfinite(b):
        return abs(a), b - b
    if a == 0:
        return np.cos(b), np.copysign(0.0, np.sin(b) * np.copysign(1.0, a))
    if np.isinf(np.cosh(a)) and np.isfinite(a):
        root = np.exp(abs(a) * 0.5)
        return (
            root * (0.5 * np.cos(b)) * root,
            np.copysign(root, a) * (0.5 * np.sin(b)) * root,
        )
    return np.cosh(a) * np.cos(b), np.sinh(a) * np.sin(b)


def hyperbolic_tangent(a: Any, b: Any) -> Any:
    """Kahan, Branch cuts for complex elementary functions, 1987."""
    if b == 0:
        return np.tanh(a), b
    if np.isinf(a):
        turn = np.where(np.isfinite(b), np.sin(2.0 * b), b * 0.0 + 1.0)
        return np.copysign(1.0, a), np.copysign(0.0, np.where(np.isfinite(b), turn, b))
    if not np.isfinite(b):
        return np.where(a == 0, a, b - b), b - b
    if abs(a) > _LARGE:
        size = np.exp(-abs(a))
        return np.copysign(1.0, a), 4.0 * np.sin(b) * np.cos(b) * size * size
    tangent, sine = np.tan(b), np.sinh(a)
    beta = 1.0 + tangent * tangent
    rho = np.sqrt(1.0 + sine * sine)
    below = 1.0 + beta * sine * sine
    return beta * rho * sine / below, tangent / below


def sine(a: Any, b: Any) -> Any:
    imag, real = hyperbolic_sine(b, a)
    return real, imag


def cosine(a: Any, b: Any) -> Any:
    real, imag = hyperbolic_cosine(b, a)
    return real, -imag


def tangent(a: Any, b: Any) -> Any:
    imag, real = hyperbolic_tangent(b, a)
    return real, imag


def reciprocal(a: Any, b: Any) -> Any:
    """In NumPy's order of operations."""
    if abs(b) <= abs(a):
        ratio = b / a
        below = a + b * ratio
        return 1.0 / below, -ratio / below
    ratio = a / b
    below = a * ratio + b
    return ratio / below, -1.0 / below


def square(a: Any, b: Any) -> Any:
    return a * a - b * b, a * b + b * a


def power(a: Any, b: Any, c: Any, d: Any) -> Any:
    """(a + bj) ** (c + dj); for whole exponents below 100 in NumPy's order of operations."""
    if c == 0 and d == 0:
        return c + 1.0, d
    if a == 0 and b == 0:
        bound = np.where(c > 0, 0.0, np.nan)
        return a * 0.0 + bound, b * 0.0 + bound
    if d == 0 and abs(c) < 100 and c == np.floor(c):
        p, q = a, b
        x = abs(np.copysign(1.0, a))
        y = x - x
        if c == 1 or c == 2 or c == 3:  # not multiplied by 1, which makes NaN of infinities
            x, y = a, b
            for _ in range(int(c) - 1):
                x, y = a * x - b * y, a * y + b * x
            return x, y
        count = int(abs(c))
        while count > 0:
            if count % 2 == 1:
                x, y = x * p - y * q, x * q + y * p
            count = count // 2
            if count > 0:
                p, q = p * p - q * q, p * q + q * p
        if c < 0:
            return quotient(1.0, 0.0, x, y)
        return x, y
    size, angle = log_of_length(a, b), np.arctan2(b, a)
    return exponential(c * size - d * angle, c * angle + d * size)


def phase(a: Any, b: Any) -> Any:
    return np.arctan2(b, a)


def is_nan(a: Any, b: Any) -> Any:
    return np.isnan(a) or np.isnan(b)


def is_infinite(a: Any, b: Any) -> Any:
    return np.isinf(a) or np.isinf(b)


def is_finite(a: Any, b: Any) -> Any:
    return np.isfinite(a) and np.isfinite(b)


FUNCTIONS: dict[object, Callable[..., Any]] = {
    np.exp: exponential, np.log: logarithm, np.log2: logarithm2, np.log10: logarithm10,
    np.sqrt: square_root, np.sin: sine, np.cos: cosine, np.tan: tangent,
    np.sinh: hyperbolic_sine, np.cosh: hyperbolic_cosine, np.tanh: hyperbolic_tangent,
    np.reciprocal: reciprocal, np.square: square,
    cmath.exp: exponential, cmath.log: logarithm, cmath.log10: logarithm10,
    cmath.sqrt: square_root, cmath.sin: sine, cmath.cos: cosine, cmath.tan: tangent,
    cmath.sinh: hyperbolic_sine, cmath.cosh: hyperbolic_cosine, cmath.tanh: hyperbolic_tangent,
}  # fmt: skip
"""Functions of a complex number that give one."""

REAL_FUNCTIONS: dict[object, Callable[..., Any]] = {
    np.angle: phase, cmath.phase: phase,
    np.isnan: is_nan, np.isinf: is_infinite, np.isfinite: is_finite,
    cmath.isnan: is_nan, cmath.isinf: is_infinite, cmath.isfinite: is_finite,
}  # fmt: skip
"""Functions of a complex number that give real ones or a bool."""
