"""The meaning of ``math`` and of built-in functions in a kernel, as functions on scalars.

``math.f`` of NumPy scalars means ``numpy.f``: ``math.exp(np.float32(1))`` is a float32.  Of
Python numbers it is a Python ``float``, so it stays weak: ``x * math.sqrt(2.0)`` has the type
of ``x``.  There are no domain errors: the result is NaN or infinite, as on a device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from types import SimpleNamespace
from typing import Any

import numpy as np

from fusionq.language.casts import is_floating_number, saturate
from fusionq.language.math_functions import ldexp

ScalarFunction = Callable[..., Any]
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def is_python_number(value: object) -> bool:
    """Whether the value is a Python bool, int or float (and no NumPy scalar)."""
    return isinstance(value, (bool, int, float)) and not isinstance(value, np.generic)


def _numpy_meaning(numpy_function: ScalarFunction) -> ScalarFunction:
    def function(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            if all(map(is_python_number, arguments)):
                return numpy_function(*(np.float64(a) for a in arguments)).item()
            return numpy_function(*arguments)

    return function


def _float_type_of(value: Any) -> np.dtype[Any]:
    """The floating dtype in which NumPy computes a function of ``value``."""
    return np.exp(np.zeros((), np.asarray(value).dtype)).dtype


def _python_only(python_function: Callable[[float], float]) -> ScalarFunction:
    """A function that NumPy lacks: computed in double precision and rounded."""

    def function(value: Any) -> Any:
        result = python_function(float(value))
        if is_python_number(value):
            return result
        with np.errstate(all="ignore"):
            return _float_type_of(value).type(result)

    return function


def _gamma(value: float) -> float:
    if value == 0:
        return math.copysign(math.inf, value)
    try:
        return math.gamma(value)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


def _lgamma(value: float) -> float:
    try:
        return math.lgamma(value)
    except (OverflowError, ValueError):
        return math.inf


def _power(base: Any, exponent: Any) -> Any:
    """``math.pow``: always floating."""
    with np.errstate(all="ignore"):
        if is_python_number(base) and is_python_number(exponent):
            return (np.float64(base) ** np.float64(exponent)).item()
        dtype = np.hypot(type(base)(1), type(exponent)(1)).dtype
        return dtype.type(base) ** dtype.type(exponent)


def _to_integer(numpy_function: ScalarFunction) -> Callable[[Any], int]:
    """``math.floor`` and its like: a Python int, saturating at int64."""

    def function(value: Any) -> int:
        if is_floating_number(value):
            return to_int(numpy_function(value))
        return to_int(value)

    return function


def to_int(value: Any) -> int:
    """Built-in ``int``: truncates, saturates at int64, 0 for NaN; a uint64 wraps."""
    if is_floating_number(value):
        return saturate(float(value), _INT64_MIN, _INT64_MAX)
    if isinstance(value, np.unsignedinteger):
        return int(value.astype(np.int64))
    return int(value)


def round_to_int(value: Any) -> int:
    """Built-in ``round`` without digits: to nearest, ties to even."""
    return to_int(np.rint(value)) if is_floating_number(value) else to_int(value)


def _typed_choice(
    replaces: Callable[[Any, Any], Any],
) -> Callable[..., Any]:
    def function(*values: Any) -> Any:
        if not values[1:]:
            values = tuple(values[0])
        chosen = values[0]
        for value in values[1:]:
            if replaces(value, chosen):
                chosen = value
        strong = [type(v) for v in values if isinstance(v, np.generic)]
        if strong:
            if issubclass(strong[0], np.integer):
                info = np.iinfo(strong[0])
                if not info.min <= chosen <= info.max:
                    return np.int64(chosen)
            return strong[0](chosen)
        return float(chosen) if any(isinstance(v, float) for v in values) else chosen

    return function


python_min = _typed_choice(lambda new, best: new < best)
"""Built-in ``min``; a Python number takes the type of the NumPy scalars beside it, or is an int64
where that does not hold it."""
python_max = _typed_choice(lambda new, best: new > best)
"""Built-in ``max``; a Python number takes the type of the NumPy scalars beside it, or is an int64
where that does not hold it."""


def where(condition: Any, then: Any, orelse: Any) -> Any:
    """``numpy.where`` of scalars, as a scalar."""
    return np.where(condition, then, orelse)[()]


def power(base: Any, exponent: Any) -> Any:
    """``numpy.power`` of scalars: the operator ``**``, without the array function's special
    cases (an exponent of 0.5 or 2 gives other last bits and zeros there)."""
    if is_python_number(base) and is_python_number(exponent):
        return np.asarray(base)[()] ** exponent
    return base**exponent


def nextafter(start: Any, towards: Any) -> Any:
    """``numpy.nextafter`` of scalars.  Of two equal ones it is the second, as C has it (IEC 60559,
    annex F of C23) and NumPy for float32 and float64; for float16 NumPy before 2.5 gives the first,
    which has another sign if they are 0.0 and -0.0."""
    following = np.nextafter(start, towards)
    return type(following)(towards) if start == towards else following


def _remainder(x: Any, y: Any) -> Any:
    """``math.remainder``, which is exact, in the type of the arguments."""
    with np.errstate(all="ignore"):
        result = math.nan
        if not (math.isinf(x) or y == 0):
            result = math.remainder(float(x), float(y))
        if is_python_number(x) and is_python_number(y):
            return result
        return np.hypot(type(x)(1), type(y)(1)).dtype.type(result)


def _of_integers(numpy_function: ScalarFunction) -> ScalarFunction:
    """``math.gcd`` and its like: NumPy's function, of Python ints a Python int."""

    def function(*values: Any) -> Any:
        found = reduce(numpy_function, values)
        return int(found) if all(map(is_python_number, values)) else found

    return function


def _logarithm(value: Any, *base: Any) -> Any:
    """``math.log``; to a base it is the quotient of two logarithms."""
    numbers = [_numpy_meaning(np.log)(x) for x in (value, *base)]
    return numbers[0] / numbers[1] if base else numbers[0]


def _modf(value: Any) -> tuple[Any, Any]:
    if is_python_number(value):
        return math.modf(value)
    part, whole = np.modf(value)
    return part, whole


MATH_NAMES: dict[str, str] = {
    name: name
    for name in (
        "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p",
        "sin", "cos", "tan", "sinh", "cosh", "tanh",
        "erf", "erfc", "gamma", "lgamma", "hypot", "fmod", "copysign", "nextafter",
    )
} | {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2",
    "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
}  # fmt: skip
"""``math``'s floating functions and their canonical (NumPy) names, see ``ir.functions``."""

_PYTHON_ONLY: dict[str, Callable[[float], float]] = {
    "erf": math.erf, "erfc": math.erfc, "gamma": _gamma, "lgamma": _lgamma,
}  # fmt: skip

MATH_FUNCTIONS: dict[str, ScalarFunction] = {
    name: _python_only(_PYTHON_ONLY[name])
    if name in _PYTHON_ONLY
    else _numpy_meaning(getattr(np, canonical))
    for name, canonical in MATH_NAMES.items()
} | {
    "pow": _power,
    "log": _logarithm,
    "prod": math.prod,
    "nextafter": _numpy_meaning(nextafter),
    "fabs": _numpy_meaning(np.fabs),
    "floor": _to_integer(np.floor),
    "ceil": _to_integer(np.ceil),
    "trunc": _to_integer(np.trunc),
    "ldexp": ldexp,
    "remainder": _remainder,
    "gcd": _of_integers(np.gcd),
    "lcm": _of_integers(np.lcm),
    "modf": _modf,
    "isnan": lambda value: bool(np.isnan(value)),
    "isinf": lambda value: bool(np.isinf(value)),
    "isfinite": lambda value: bool(np.isfinite(value)),
    "degrees": _numpy_meaning(np.degrees),
    "radians": _numpy_meaning(np.radians),
}
"""What each function of ``math`` means in a kernel."""

BUILTIN_FUNCTIONS: dict[str, ScalarFunction] = {
    "int": to_int, "round": round_to_int, "min": python_min, "max": python_max,
}  # fmt: skip
"""The built-in functions that mean something else in a kernel than in Python."""

math_module = SimpleNamespace(
    **MATH_FUNCTIONS, pi=math.pi, e=math.e, tau=math.tau, inf=math.inf, nan=math.nan
)
"""Stands for the module ``math`` when a kernel runs as plain Python."""
