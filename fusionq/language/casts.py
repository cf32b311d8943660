"""Conversions between scalar types, as a kernel does them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fusionq.base.dtypes import is_bfloat16, is_floating


def integer_limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype."""
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def saturate(value: float, low: int, high: int) -> int:
    """A floating value truncated to an integer within ``low … high``; 0 for NaN."""
    if math.isnan(value):
        return 0
    if value <= low:
        return low
    if value >= high:
        return high
    return int(value)


def is_floating_number(value: Any) -> bool:
    """Whether a Python or NumPy scalar is a floating number."""
    if isinstance(value, (float, np.floating)):
        return True
    return isinstance(value, np.generic) and is_floating(value.dtype)


def cast(value: Any, dtype: np.dtype[Any]) -> np.generic:
    """``value``, a Python or NumPy scalar, as a NumPy scalar of ``dtype``.

    Integers wrap; a floating value becomes an integer by truncation, saturates, and gives 0
    for NaN; a conversion to a floating dtype rounds to nearest.
    """
    if dtype.kind in "iu":
        low, high = integer_limits(dtype)
        if is_floating_number(value):
            number = saturate(float(value), low, high)
        else:
            number = (int(value) - low) % (high - low + 1) + low
        return dtype.type(number)  # type: ignore[no-any-return]  # NumPy types dtype.type as Any
    with np.errstate(all="ignore"):
        if is_bfloat16(dtype):
            value = np.float32(value)  # for any type, so that all round as kernels do
        return dtype.type(value)  # type: ignore[no-any-return]  # as above
