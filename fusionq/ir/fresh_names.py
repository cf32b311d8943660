"""Names that a kernel does not have yet."""

from __future__ import annotations

from collections.abc import Iterable


class FreshNames:
    """Hands out names that are not taken: ``x``, ``x_1``, ``x_2``, …"""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}
        """For each name that was wanted the last number that it got: all below are taken."""

    def fresh(self, wanted: str) -> str:
        """``wanted`` if it is free, else with the first free number."""
        name, number = wanted, self._numbers.get(wanted, 0)
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        self._numbers[wanted] = number
        return name
