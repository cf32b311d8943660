"""Numbers that repeat with a stride, as arithmetic progressions, and as people write them."""

from __future__ import annotations

import re
from collections.abc import Iterable

FEWEST = 3
"""So many numbers make a progression; fewer stand for themselves."""
_AHEAD = 16
"""How many of the following numbers a progression may leave out between two of its own."""

_SUBMISSION = re.compile(r"(?<=\bsubmission )\d+\b|(?<=\bwhich \[)\d+(?=\])")


def progressions(numbers: Iterable[int]) -> list[range]:
    """``numbers`` as few progressions, in order of their first numbers; what belongs to none is a
    range of one."""
    left = sorted(set(numbers))
    found = []
    while left:
        first, present = left[0], set(left)
        longest = range(first, first + 1)
        for other in left[1 : 1 + _AHEAD]:
            stride = other - first
            end = other
            while end in present:
                end += stride
            if (end - first) // stride > len(longest):
                longest = range(first, end, stride)
        if len(longest) < FEWEST:
            longest = range(first, first + 1)
        found.append(longest)
        taken = set(longest)
        left = [number for number in left if number not in taken]
    return found


def written(numbers: range) -> str:
    """Such as ``0 … 15``, ``1, 3, …, 15`` or ``7``."""
    if len(numbers) <= (2 if numbers.step == 1 else 3):
        return ", ".join(map(str, numbers))
    return written_to(numbers, str(numbers[-1]))


def written_to(numbers: range, last: str) -> str:
    """The same with other words for the last number."""
    if numbers.step == 1:
        return f"{numbers[0]} … {last}"
    return f"{numbers[0]}, {numbers[1]}, …, {last}"


def sum_of(variable: str, offset: int) -> str:
    """Such as ``k``, ``k + 1`` or ``k - 2``."""
    if offset == 0:
        return variable
    return f"{variable} {'+' if offset > 0 else '-'} {abs(offset)}"


def relative(text: str, base: int, variable: str) -> str:
    """``text`` with the submissions that it names (``submission 3``, ``which [3]``) counted from
    ``base``, which is called ``variable``."""
    return _SUBMISSION.sub(lambda found: sum_of(variable, int(found[0]) - base), text)
