"""Reductions and scans over a work-group in one order, as C text: sub-groups combine by shuffles
what the work-items have stored in local memory.

The order is that of ``language.combine.over_group``.  Of values that lie a multiple of the
sub-group apart, each lane combines those of its own; only the last steps pass between lanes.
"""

from __future__ import annotations

from collections.abc import Callable

from fusionq.base.frozen import dataclass
from fusionq.language.combine import halves


@dataclass(frozen=True)
class OrderedValues:
    """Values of ``count`` work-items, in the array ``array`` by their linear local ids, which has
    places for whole sub-groups, and what their text is made of.

    ``type``: of a value; ``lane``: the place in a sub-group of ``lanes`` work-items, a power of
    two.  ``combined`` gives the combination of two values, ``shuffled`` the value of a variable in
    another lane, ``fresh`` a name.
    """

    array: str
    count: int
    type: str
    lane: str
    lanes: int
    combined: Callable[[str, str], str]
    shuffled: Callable[[str, str], str]
    fresh: Callable[[str], str]

    @property
    def parts(self) -> int:
        """How many values a lane has, the last of them perhaps not in every lane."""
        return -(-self.count // self.lanes)

    def at(self, part: str) -> str:
        """A lane's value with the number ``part``."""
        return f"{self.array}[{self.lanes} * {part} + {self.lane}]"

    def reduction(self, target: str) -> list[str]:
        """What assigns the reduction of all values to ``target``, in each lane."""
        lines: list[str] = []
        parts = [self._named(lines, "part", self.at(str(k))) for k in range(self.parts)]
        for distance in halves(self.count):
            if distance < self.lanes:
                break
            apart = distance // self.lanes
            for k in range(min(apart, len(parts) - apart)):
                both = self.combined(parts[k], parts[k + apart])
                inside = self.count - self.lanes * (k + apart)
                if inside < self.lanes:
                    both = f"{self.lane} < {inside} ? {both} : {parts[k]}"
                parts[k] = self._named(lines, "part", both)
            del parts[apart:]
        total = parts[0]
        for distance in halves(min(self.count, self.lanes)):
            place = f"({self.lane} + {distance}) % {self.lanes}"
            other = self._named(lines, "other", self.shuffled(total, place))
            both = self.combined(total, other)
            if 2 * distance > self.count:
                both = f"{self.lane} < {self.count - distance} ? {both} : {total}"
            total = self._named(lines, "part", both)
        return [*lines, f"{target} = {self.shuffled(total, '0')};"]

    def scan(self) -> list[str]:
        """What one sub-group does to leave in each place the inclusive scan up to there."""
        near = [d for d in reversed(halves(self.lanes)) if d < self.count]
        lines: list[str] = []
        names = [self.fresh("scanned") for _ in range(len(near) + 1)]
        lines.append(f"{self.type} {names[0]} = {self.at('0')};")
        for distance, before, after in zip(near, names, names[1:], strict=False):
            other = self._named(lines, "other", self._from_lane(before, distance))
            both = f"{self.lane} < {distance} ? {before} : {self.combined(other, before)}"
            lines.append(f"{self.type} {after} = {both};")
        lines.append(f"{self.at('0')} = {names[-1]};")
        if self.parts > 1:
            part = self.fresh("part")
            inside: list[str] = []
            value = self._named(inside, "value", self.at(part))
            for distance, earlier in zip(near, names, strict=False):
                passed = f"{self.lane} < {self.lanes - distance} ? {value} : {earlier}"
                passed = self._named(inside, "passed", passed)
                other = self._named(inside, "other", self._from_lane(passed, distance))
                inside.append(f"{earlier} = {value};")
                value = self._named(inside, "value", self.combined(other, value))
            inside.append(f"{self.at(part)} = {value};")
            lines += self._loop(f"{part} = 1; {part} < {self.parts}; {part}++", inside)
        for distance in reversed(halves(self.count)):
            if distance < self.lanes:
                continue
            part, apart = self.fresh("part"), distance // self.lanes
            both = self.combined(self.at(f"({part} - {apart})"), self.at(part))
            head = f"{part} = {self.parts - 1}; {part} >= {apart}; {part}--"
            lines += self._loop(head, [f"{self.at(part)} = {both};"])
        return lines

    def shifted(self, start: str) -> list[str]:
        """What one sub-group does to move each value one place on, with ``start`` at the first."""
        part = self.fresh("part")
        last = f"{part} > 0 ? {self.at(f'({part} - 1)')} : {start}"
        inside: list[str] = []
        value = self._named(inside, "value", self.at(part))
        before = self._named(inside, "value", last)
        passed = f"{self.lane} < {self.lanes - 1} ? {value} : {before}"
        passed = self._named(inside, "passed", passed)
        inside.append(f"{self.at(part)} = {self._from_lane(passed, 1)};")
        return self._loop(f"{part} = {self.parts - 1}; {part} >= 0; {part}--", inside)

    def _from_lane(self, variable: str, distance: int) -> str:
        return self.shuffled(variable, f"({self.lane} - {distance}) & {self.lanes - 1}")

    def _named(self, lines: list[str], name: str, value: str) -> str:
        found = self.fresh(name)
        lines.append(f"const {self.type} {found} = {value};")
        return found

    def _loop(self, head: str, body: list[str]) -> list[str]:
        return [f"for (int {head}) {{", *(f"    {line}" for line in body), "}"]
