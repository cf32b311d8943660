"""What names a dtype: NumPy's and Python's types, and numba's."""

from __future__ import annotations

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


def as_dtype(obj: Any) -> np.dtype[Any]:
    """The dtype that ``obj`` names; TypeError if there is none."""
    found = numba_dtype(obj)
    return np.dtype(obj) if found is None else found
