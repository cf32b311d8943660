"""The IR's scalar semantics where NumPy's scalars have other ones, or none.

Everything takes and returns NumPy scalars.  Addition, comparison and the like are NumPy's own,
under ``np.errstate(all="ignore")``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fusionq.ir.functions import FLOAT_FUNCTIONS, PREDICATES
from fusionq.ir.types import ScalarType
from fusionq.language import math_functions
from fusionq.language.scalar_functions import MATH_FUNCTIONS, nextafter

Scalar = Any
"""A NumPy scalar: NumPy's own types do not say which operators one has."""


def int64_range(start: Scalar, stop: Scalar, step: Scalar) -> Iterator[Scalar]:
    """``range`` of int64 scalars; a step of 0 gives nothing."""
    if step:
        yield from map(np.int64, range(int(start), int(stop), int(step)))


def python_min(a: Scalar, b: Scalar) -> Scalar:
    """Python's ``min`` of two."""
    return b if b < a else a


def python_max(a: Scalar, b: Scalar) -> Scalar:
    """Python's ``max`` of two."""
    return b if b > a else a


def minimum(a: Scalar, b: Scalar) -> Scalar:
    """The smaller; a NaN wins.  Of 0.0 and -0.0 the second, which NumPy leaves open."""
    return a if a < b or a != a else b


def maximum(a: Scalar, b: Scalar) -> Scalar:
    """The larger; a NaN wins, of equal ones the second."""
    return a if a > b or a != a else b


def fmin(a: Scalar, b: Scalar) -> Scalar:
    """The smaller; a NaN loses, of equal ones the second."""
    return a if a < b or b != b else b


def fmax(a: Scalar, b: Scalar) -> Scalar:
    """The larger; a NaN loses, of equal ones the second."""
    return a if a > b or b != b else b


_OWN_FUNCTIONS = ("clz", "cospi", "fma", "ldexp", "popcount", "sinpi")

FUNCTIONS: dict[str, Callable[..., Scalar]] = {
    **{name: getattr(np, name) for name in (*FLOAT_FUNCTIONS, *PREDICATES) if hasattr(np, name)},
    **{name: MATH_FUNCTIONS[name] for name in ("erf", "erfc", "gamma", "lgamma")},
    "nextafter": nextafter,
    **{name: getattr(math_functions, name) for name in _OWN_FUNCTIONS},
    "abs": np.abs,
    "sign": np.sign,
    "minimum": minimum,
    "maximum": maximum,
    "fmin": fmin,
    "fmax": fmax,
    "pymin": python_min,
    "pymax": python_max,
}
"""What ``ir.Call`` names."""


def as_scalar(value: bool | int | float | np.generic, type_: ScalarType) -> Scalar:
    """An argument as a scalar of exactly ``type_``; TypeError or OverflowError if it is none."""
    if isinstance(value, np.generic):
        fits = value.dtype == type_.dtype
    elif isinstance(value, bool) or type_.is_bool:
        fits = isinstance(value, bool) and type_.is_bool
    else:
        fits = type_.is_float or isinstance(value, int)
    if not fits:
        raise TypeError(f"{value!r} ({type(value).__name__}) is no {type_}")
    return type_.dtype.type(value)
