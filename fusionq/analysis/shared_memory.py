"""How submissions share memory, as numbers that are equal where they share it alike.

A plan asks about tens of thousands of stages and pairs of few submissions, whose arrays lie in a
few ways: to number groups and views anew for each question, and to hash what that gives, took a
tenth of the planning of eliminations.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.analysis.aliasing import ViewPlace

Memory = tuple[int, int, int, ViewPlace | None]
"""An array argument's position, and where it lies: group, view, and address in the group."""

MemoryOfEach = tuple[tuple[Memory, ...], ...]
"""Those of each of some submissions, groups and views in the order of their appearance, addresses
from the first that appears."""


class SharedMemory:
    """The numbers of what has been asked for."""

    def __init__(self) -> None:
        self._own: dict[tuple[Memory, ...], int] = {}
        self._known: dict[tuple[int, ...], int] = {}
        self._numbers: dict[MemoryOfEach, int] = {}
        self._all: list[MemoryOfEach] = []

    def own(self, memory: tuple[Memory, ...]) -> int:
        """The number of what one submission has."""
        return self._own.setdefault(memory, len(self._own))

    def of(self, own: tuple[int, ...], memory: Sequence[tuple[Memory, ...]]) -> int:
        """The number of how submissions share memory that have this ``memory`` each, whose numbers
        are their ``own``."""
        number = self._known.get(own)
        if number is None:
            number = self._known[own] = self.number(_in_order(memory))
        return number

    def of_arguments(
        self, memory: Sequence[tuple[Memory, ...]], arguments: Sequence[Sequence[int]]
    ) -> int:
        """The same of the given ``arguments`` of each alone."""
        pairs = zip(memory, arguments, strict=True)
        return self.number(
            _in_order([tuple([m for m in of_one if m[0] in own]) for of_one, own in pairs])
        )

    def number(self, memory: MemoryOfEach) -> int:
        """Equal for equal ones."""
        number = self._numbers.setdefault(memory, len(self._all))
        if number == len(self._all):
            self._all.append(memory)
        return number

    def __getitem__(self, number: int) -> MemoryOfEach:
        return self._all[number]


def _in_order(memory: Sequence[tuple[Memory, ...]]) -> MemoryOfEach:
    groups: dict[int, int] = {}
    views: dict[tuple[int, int], int] = {}
    origin: dict[int, int] = {}
    found = []
    for of_one in memory:
        renamed = []
        for argument, group, view, lie in of_one:
            number = groups.setdefault(group, len(groups))
            which = views.setdefault((group, view), len(views))
            if lie is not None:
                start = origin.setdefault(group, lie.offset)
                lie = ViewPlace(lie.offset - start, lie.strides, lie.width)
            renamed.append((argument, number, which, lie))
        found.append(tuple(renamed))
    return tuple(found)
