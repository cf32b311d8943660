"""What group functions and atomic operations do with two values, on NumPy scalars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusionq.base.dtypes import is_floating

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


def alike(a: Any, b: Any) -> bool:
    """Whether ``compare_exchange`` takes ``a`` for ``b``: they are equal, or both NaN."""
    return bool(a == b or (a != a and b != b))


def identity(op: str, dtype: np.dtype[Any]) -> Any:
    """The value that changes nothing under ``op``."""
    if op in ("add", "or", "xor"):
        return dtype.type(0)
    if op == "mul":
        return dtype.type(1)
    if op == "and":
        return dtype.type(True) if dtype.kind == "b" else ~dtype.type(0)
    if is_floating(dtype):
        return dtype.type(np.inf if op == "min" else -np.inf)
    if dtype.kind == "b":
        return dtype.type(op == "min")
    limits = np.iinfo(dtype)
    return dtype.type(limits.max if op == "min" else limits.min)


JOINT_LANES = 256
"""Into how many parts a joint function of a work-group deals its elements."""


def joint_lanes(sub_group: int | None) -> int:
    """The lanes of a joint function: those of a work-group, or a sub-group's work-items."""
    return JOINT_LANES if sub_group is None else sub_group


def joint_reduction(op: str, values: Sequence[Any], dtype: np.dtype[Any], lanes: int) -> Any:
    """``values`` of ``dtype`` combined: lane l combines those at l, l + ``lanes``, …, from the
    operation's identity on; then the lanes combine as in a sub-group's reduction."""
    combine, start = COMBINE[op], identity(op, dtype)
    totals = [start] * lanes
    for place, value in enumerate(values):
        totals[place % lanes] = combine(totals[place % lanes], value)
    return over_sub_group("reduce", op, totals, ())[0]


def joint_scan(
    function: str, op: str, values: Sequence[Any], dtype: np.dtype[Any], lanes: int, init: Any
) -> list[Any]:
    """An ``inclusive_scan`` or ``exclusive_scan`` of ``values``, ``lanes`` at a time: each piece is
    scanned as in a sub-group, and behind what all before it make, at first ``init`` or the
    operation's identity."""
    combine, start = COMBINE[op], identity(op, dtype)
    carry, found = start if init is None else init, []
    for first in range(0, len(values), lanes):
        piece = list(values[first : first + lanes])
        scanned = over_sub_group("inclusive_scan", op, piece + [start] * (lanes - len(piece)), ())
        scanned = [combine(carry, value) for value in scanned]
        shifted = [carry, *scanned] if function == "exclusive_scan" else scanned
        found += shifted[: len(piece)]
        carry = scanned[-1]
    return found


def over_sub_group(
    function: str, op: str | None, values: Sequence[Any], sources: Sequence[Any]
) -> list[Any]:
    """As ``over_group`` for a sub-group; ``sources``: each work-item's own."""
    size = len(values)
    places = range(size)
    if function in ("any", "all"):
        return over_group(function, None, values, None)
    if function in READS:
        read = (READS[function](place, int(sources[place])) for place in places)
        return [
            values[from_ if 0 <= sources[place] < size and 0 <= from_ < size else place]
            for place, from_ in zip(places, read, strict=True)
        ]
    return over_group(function, op, values, None)


READS: dict[str, Callable[[int, int], int]] = {
    "broadcast": lambda place, source: source,
    "select": lambda place, source: source,
    "shift_left": lambda place, source: place + source,
    "shift_right": lambda place, source: place - source,
    "permute_xor": lambda place, source: place ^ source,
}
"""Where in its sub-group the work-item at a place reads; beyond it, its own value."""


def over_group(function: str, op: str | None, values: Sequence[Any], source: Any) -> list[Any]:
    """What a group function gives each work-item, for their ``values`` in the order of linear
    local ids.  ``function``: as in ``ir.GroupCall``; ``source``: the linear local id that a
    broadcast takes the value of, which must be that of a work-item.

    A reduction combines each value with the one half the group further on, if there is one, then a
    quarter, and so on; a scan each with the one before, then two before, four before, and so on.
    """
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
    combine, totals = COMBINE[op], list(values)
    if function == "reduce":
        for distance in halves(len(values)):
            for place in range(min(distance, len(totals) - distance)):
                totals[place] = combine(totals[place], totals[place + distance])
            del totals[distance:]
        return [totals[0]] * len(values)
    distance = 1
    while distance < len(values):
        totals = [
            combine(totals[place - distance], total) if place >= distance else total
            for place, total in enumerate(totals)
        ]
        distance *= 2
    if function == "inclusive_scan":
        return totals
    return [identity(op, values[0].dtype), *totals[:-1]]


def halves(size: int) -> list[int]:
    """The powers of two below ``size``, the greatest first: the distances of a reduction."""
    return [1 << power for power in reversed(range((size - 1).bit_length()))]
