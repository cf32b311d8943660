"""Which of several sizes are equal, and which are larger."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def size_order(sizes: Sequence[int]) -> Hashable | None:
    """Equal for sizes that are equal and larger in the same places, of which plans and checks speak
    as of one (``planning.structure``); None where one is 0.  There is at least one."""
    if sizes.count(sizes[0]) == len(sizes):
        return len(sizes) if sizes[0] else None
    if 0 in sizes:
        return None
    numbers: dict[int, int] = {}
    number = numbers.setdefault
    pattern = tuple([number(size, len(numbers)) for size in sizes])
    return pattern, tuple([numbers[size] for size in sorted(numbers)])
