"""Small USM allocations that are used again, since the runtime takes microseconds for each."""

from __future__ import annotations

import atexit
from collections import deque
from typing import Any
from weakref import WeakSet

LARGEST = 1 << 16
"""Bytes of the largest allocation that is kept."""
MOST_BYTES = 4 << 20
"""What one pool keeps at most."""
_SMALLEST = 1 << 6


class UsmPool:
    """``dpctl.memory`` objects of one context that nobody uses, by their size, a power of two.

    Their contents are whatever was there: who takes one overwrites it.
    """

    capacity = MOST_BYTES
    """Here too for finalizers, which also run when the module's names are gone."""

    def __init__(self) -> None:
        self._free: dict[int, deque[Any]] = {}
        self._bytes = 0
        """What is kept, about: threads may count past each other."""
        self._is_closed = False
        _pools.add(self)

    def take(self, size: int) -> Any:
        """One of ``size`` bytes; None where there is none."""
        try:
            memory = self._free[size].pop()
        except (KeyError, IndexError):
            return None
        self._bytes -= size
        return memory

    def give(self, memory: Any, size: int) -> None:
        """Keep ``memory``, of ``size`` bytes, which no launch uses any longer; for finalizers."""
        if not self._is_closed and self._bytes + size <= self.capacity:
            self._bytes += size
            self._free.setdefault(size, deque()).append(memory)

    def clear(self) -> None:
        """Give back all that is kept."""
        self._free = {}
        self._bytes = 0

    def close(self) -> None:
        """Give back all that is kept, and keep nothing any longer."""
        self._is_closed = True
        self.clear()


_pools: WeakSet[UsmPool] = WeakSet()


def clear_all_pools() -> None:
    """Give back what all pools of the process keep."""
    for pool in tuple(_pools):
        pool.clear()


def pooled_size(nbytes: int) -> int | None:
    """How large an allocation for ``nbytes`` is that can be kept; None for more than are kept."""
    if nbytes > LARGEST:
        return None
    return max(1 << (nbytes - 1).bit_length(), _SMALLEST) if nbytes else _SMALLEST



@atexit.register
def _close_all_pools() -> None:
    """What is freed when the program has ended, by finalizers that may find nothing of this module
    any longer, is kept nowhere."""
    for pool in tuple(_pools):
        pool.close()
