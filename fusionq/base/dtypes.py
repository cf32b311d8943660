"""What names a dtype: NumPy's and Python's types, numba's, and bfloat16 of ml_dtypes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


def numba_dtype(obj: object) -> np.dtype[Any] | None:
    """The dtype that one of numba's types stands for, such as ``numba.float32``; None for anything
    else.  numba is not imported for that."""
    if not type(obj).__module__.startswith("numba.core.types"):
        return None
    try:
        return np.dtype(str(obj))
    except TypeError:  # a type that is none of numbers
        return None


@cache
def bfloat16() -> np.dtype[Any]:
    """The dtype of ml_dtypes, which is imported only for it."""
    import ml_dtypes

    found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return found


def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is ``bfloat16()``, to NumPy a type of some other kind."""
    return dtype.kind == "V" and dtype.type.__name__ == "bfloat16"


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype's numbers are floating ones, bfloat16 among them."""
    return dtype.kind == "f" or is_bfloat16(dtype)


def as_dtype(obj: Any) -> np.dtype[Any]:
    """The dtype that ``obj`` names; TypeError if there is none."""
    if isinstance(obj, str) and obj == "bfloat16":
        return bfloat16()  # which NumPy knows by that name only once ml_dtypes is imported
    found = numba_dtype(obj)
    try:
        return np.dtype(obj) if found is None else found
    except (TypeError, ValueError) as error:  # also an object whose ``dtype`` is none
        hint = "give a NumPy dtype or its name, such as numpy.float32"
        raise TypeError(f"{error}; {hint}") from None
