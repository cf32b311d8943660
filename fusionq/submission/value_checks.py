"""Checks of the arguments of a known submission that differ from call to call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusionq.analysis.aliasing import places
from fusionq.analysis.submission import Argument, ArrayArgument, ScalarArgument, ScalarValue
from fusionq.base.call_site import user_span
from fusionq.base.errors import ArgumentError
from fusionq.base.units import shown
from fusionq.submission.known import KnownSubmission

MOST_FITTING = 256
"""Scalars of a submission that are remembered as fitting."""


def check_values(entry: KnownSubmission, values: Sequence[ScalarValue]) -> None:
    """ArgumentError if scalars of a known submission do not fit: see ``check_bounds``, and those
    with which an index certainly leaves its array."""
    known = entry.sized or entry
    if not entry.bounds and not known.rests_on:
        return
    check_bounds(entry, values)
    if known.rests_on and known.integers(values) not in known.passed:
        known.check_again(known, values)
    fitting = entry.fitting
    if fitting is None or len(fitting) >= MOST_FITTING:
        fitting = entry.fitting = set()
    fitting.add(tuple(values))


def check_bounds(entry: KnownSubmission, values: Sequence[ScalarValue]) -> None:
    """ArgumentError if a Python int does not fit the type that the kernel gives it."""
    for position, least, greatest in entry.bounds:
        value = values[position]
        if not least <= int(value) <= greatest:
            scalars = [a for a in entry.submission.arguments if isinstance(a, ScalarArgument)]
            raise ArgumentError(
                f"{user_span()}: argument {scalars[position].name!r} of kernel "
                f"{entry.submission.name!r} is {shown(int(value))}, outside {least} … {greatest}, "
                "what the type that the kernel gives it can hold; "
                f"{_instead(int(value), least, greatest)}"
            )


def _instead(value: int, least: int, greatest: int) -> str:
    """What to pass in place of an integer that does not fit: the first wider type that it fits."""
    for name in ("int16", "int32", "int64", "uint64"):
        limits = np.iinfo(name)
        if limits.min <= value <= limits.max and limits.max > greatest:
            return f"pass np.{name}({value})"
    return "no integer type can; pass a float, or a smaller number"


def check_apart(
    kernel: str, apart: Sequence[tuple[str, str, bool]], arguments: Sequence[Argument]
) -> None:
    """ArgumentError for arrays that overlap where a statement of the ``kernel`` writes to one
    while it reads the other."""
    if not apart:
        return
    arrays = [a for a in arguments if isinstance(a, ArrayArgument)]
    place = dict(zip([a.name for a in arrays], places(arrays), strict=True))
    for written, read, may_be_one in apart:
        a, b = place[written], place[read]
        one = a == b and a.by_address is None
        if a.group == b.group and not (one and may_be_one):
            raise ArgumentError(
                f"kernel {kernel!r} assigns to a row or slice of {written!r} what it computes "
                f"from one of {read!r}, element by element, and the two arguments share memory"
                f"{'' if one else ' but are not the same view'}: NumPy would read all before it "
                "writes. Pass arrays that do not overlap, or write the loop"
            )
