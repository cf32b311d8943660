"""Small allocations that are used again, since devices' runtimes take microseconds for each."""

from __future__ import annotations

import atexit
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

_SMALLEST = 1 << 6
_POWERS_OF_TWO = 1 << 16
"""Bytes of the largest block of which the next size is twice as large; of larger ones four to eight
sizes lie between a power of two and the next, so that at most a quarter is not used."""


def _drop(block: object) -> None:
    """What ends with its last reference needs no more."""


class BlockPool:
    """What stands for memory that nobody uses, by its size, up to ``largest``; ``capacity``: bytes
    that are kept at most.  Where there are more, blocks of the size go that has the most bytes.

    ``free`` gives a block back to its runtime.  A finalizer of the block itself must not: where it
    is garbage together with its user, in a cycle, it has run when that gives the block.  Contents
    are whatever was there: who takes a block overwrites it.
    """

    def __init__(
        self, largest: int, capacity: int, free: Callable[[Any], object] = _drop
    ) -> None:
        # Here for finalizers, too, which also run when the module's names are gone.
        self._largest, self._capacity, self._give_back = largest, capacity, free
        self._free: dict[int, deque[Any]] = {}
        self.kept_bytes = 0
        """What is kept, about: threads may count past each other."""
        self._is_closed = False
        _pools.add(self)

    def size_for(self, nbytes: int) -> int | None:
        """How large a block for ``nbytes`` is that can be kept; None for more than are kept."""
        if nbytes > self._largest:
            return None
        if nbytes <= _SMALLEST:
            return _SMALLEST
        bits = (nbytes - 1).bit_length()
        if nbytes <= _POWERS_OF_TWO:
            return 1 << bits
        step = 1 << bits - 3
        return -(-nbytes // step) * step

    def take(self, size: int) -> Any:
        """One of ``size`` bytes; None where there is none."""
        try:
            block = self._free[size].pop()
        except (KeyError, IndexError):
            return None
        self.kept_bytes -= size
        return block

    def give(self, block: Any, size: int) -> None:
        """Keep ``block``, of ``size`` bytes, which no launch uses any longer, or give it back; for
        finalizers."""
        if self._is_closed or size > self._capacity:
            self._give_back(block)
            return
        self.kept_bytes += size
        self._free.setdefault(size, deque()).append(block)
        while self.kept_bytes > self._capacity:
            sizes = self._free
            most = max(tuple(sizes), key=lambda each: each * len(sizes[each]))
            other = self.take(most)
            if other is None:  # other threads were faster
                return
            self._give_back(other)

    def clear(self) -> None:
        """Give back all that is kept."""
        blocks, self._free = self._free, {}
        self.kept_bytes = 0
        for of_size in blocks.values():
            while of_size:
                self._give_back(of_size.pop())

    def close(self) -> None:
        """Give back all that is kept, and keep nothing any longer."""
        self._is_closed = True
        self.clear()


_pools: WeakSet[BlockPool] = WeakSet()


def clear_all_pools() -> None:
    """Give back what all pools of the process keep."""
    for pool in tuple(_pools):
        pool.clear()


@atexit.register
def _close_all_pools() -> None:
    """What is freed when the program has ended, by finalizers that may find nothing of this module
    any longer, is kept nowhere."""
    for pool in tuple(_pools):
        pool.close()
