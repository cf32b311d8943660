"""What group functions and atomic operations do with two values, on NumPy scalars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "min": lambda a, b: b if b < a else a,
    "max": lambda a, b: b if b > a else a,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "exchange": lambda a, b: b,
    "store": lambda a, b: b,
}
"""By name; ``a`` is what was there before."""


def identity(op: str, dtype: np.dtype[Any]) -> Any:
    """The value that changes nothing under ``op``."""
    if op in ("add", "or", "xor"):
        return dtype.type(0)
    if op == "mul":
        return dtype.type(1)
    if op == "and":
        return dtype.type(True) if dtype.kind == "b" else ~dtype.type(0)
    if dtype.kind == "f":
        return dtype.type(np.inf if op == "min" else -np.inf)
    if dtype.kind == "b":
        return dtype.type(op == "min")
    limits = np.iinfo(dtype)
    return dtype.type(limits.max if op == "min" else limits.min)


def over_group(function: str, op: str | None, values: Sequence[Any], source: Any) -> list[Any]:
    """What a group function gives each work-item, for their ``values`` in the order of linear
    local ids.  ``function``: as in ``ir.GroupCall``; ``source``: the linear local id that a
    broadcast takes the value of, which must be that of a work-item."""
    match function:
        case "any":
            return [np.bool_(any(values))] * len(values)
        case "all":
            return [np.bool_(all(values))] * len(values)
        case "broadcast":
            if not 0 <= source < len(values):
                raise IndexError(
                    f"a broadcast from the linear local id {source} in a group of {len(values)}"
                )
            return [values[int(source)]] * len(values)
    assert op is not None
    totals = [values[0]]
    for value in values[1:]:
        totals.append(COMBINE[op](totals[-1], value))
    if function == "reduce":
        return [totals[-1]] * len(values)
    if function == "inclusive_scan":
        return totals
    return [identity(op, values[0].dtype), *totals[:-1]]
