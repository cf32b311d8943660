"""What work-items do that takes time: accesses, functions, and what is done one after the other."""

from __future__ import annotations

from fusionq.base.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """Bytes that work-items load and store, where neighbours' are consecutive or the same;
    mathematical functions that they evaluate; and what is ``serial``, one work-item after the
    other: elements at any other addresses, divisions of integers, atomic operations, counted in
    such elements."""

    accessed: float = 0.0
    functions: float = 0.0
    serial: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.accessed + other.accessed,
            self.functions + other.functions,
            self.serial + other.serial,
        )

    def __mul__(self, times: float) -> Work:
        return Work(self.accessed * times, self.functions * times, self.serial * times)

    def with_accesses_faster(self, times: float) -> Work:
        """What takes as long as this would if accesses were so many times as fast."""
        return Work(self.accessed / times, self.functions, self.serial)


NOTHING = Work()
