"""Atomic operations on array elements, and fences.

As plain Python, work-items run one at a time, so that every operation is atomic.
"""

from __future__ import annotations

from typing import Any

from fusionq.language.combine import COMBINE
from fusionq.language.memory_model import AddressSpace, MemoryOrder, MemoryScope


class AtomicRef:
    """A reference to one array element, for atomic operations on it.

    ``array``: an array argument or a LocalAccessor of int32, int64, uint32, uint64, float32 or
    float64.  ``index``: an int, or a tuple with one int for each dimension.  ``memory_order``
    and ``memory_scope`` are those of every operation.  ``address_space``: None for the array's
    own.  Each operation converts its value to the array's dtype, as a store does, and returns
    the value that the element had before.  Source: SYCL 2020, section 4.15.3.
    """

    __slots__ = ("_array", "_index")

    def __init__(
        self,
        array: Any,
        index: Any,
        memory_order: MemoryOrder = MemoryOrder.RELAXED,
        memory_scope: MemoryScope = MemoryScope.DEVICE,
        address_space: AddressSpace | None = None,
    ) -> None:
        self._array = array
        self._index = index

    def _update(self, op: str, value: Any) -> Any:
        before = self._array[self._index]
        self._array[self._index] = COMBINE[op](before, self._array.dtype(value))
        return before

    def fetch_add(self, value: Any) -> Any:
        """Add ``value``; integers wrap."""
        return self._update("add", value)

    def fetch_sub(self, value: Any) -> Any:
        """Subtract ``value``; integers wrap."""
        return self._update("sub", value)

    def fetch_min(self, value: Any) -> Any:
        """Keep the smaller; a NaN ``value`` changes nothing."""
        return self._update("min", value)

    def fetch_max(self, value: Any) -> Any:
        """Keep the larger; a NaN ``value`` changes nothing."""
        return self._update("max", value)

    def fetch_and(self, value: Any) -> Any:
        """Bitwise and; integers only."""
        return self._update("and", value)

    def fetch_or(self, value: Any) -> Any:
        """Bitwise or; integers only."""
        return self._update("or", value)

    def fetch_xor(self, value: Any) -> Any:
        """Bitwise exclusive or; integers only."""
        return self._update("xor", value)

    def exchange(self, value: Any) -> Any:
        """Put ``value`` in its place."""
        return self._update("exchange", value)

    def load(self) -> Any:
        """The element's value."""
        return self._array[self._index]

    def store(self, value: Any) -> None:
        """Put ``value`` in its place; returns nothing."""
        self._array[self._index] = value


def atomic_fence(memory_order: MemoryOrder, memory_scope: MemoryScope) -> None:
    """Order this work-item's accesses before and after, as others in the scope see them.

    Source: SYCL 2020, section 4.15.1.
    """
