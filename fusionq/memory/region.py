"""Memory regions: what dependences between commands are told by."""

from __future__ import annotations

from fusionq.base.frozen import dataclass


@dataclass(frozen=True, slots=True)
class MemoryRegion:
    """Memory as dependences see it: which storage (None: memory that no Buffer stands for),
    and its bytes' addresses from ``low`` up to ``high`` where it has been allocated."""

    storage: int | None
    low: int
    high: int

    def overlaps(self, other: MemoryRegion) -> bool:
        """Whether the two can share memory."""
        if self.storage is not None and self.storage == other.storage:
            return True
        return self.low < other.high and other.low < self.high
