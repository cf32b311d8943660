"""Fresh names in a fused kernel."""

from __future__ import annotations

from collections.abc import Iterable


class Names:
    """Hands out names that are not taken: ``x``, ``x_1``, ``x_2``, …"""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def fresh(self, wanted: str) -> str:
        """``wanted`` if it is free, else with the first free number."""
        name, number = wanted, 0
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name
