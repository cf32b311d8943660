"""Atomic operations on array elements, and fences.

As plain Python, work-items run one at a time, so that every operation is atomic.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusionq.language.combine import COMBINE, alike
from fusionq.language.memory_model import AddressSpace, MemoryOrder, MemoryScope


class AtomicRef:
    """A reference to one array element, for atomic operations on it.

    ``array``: an array argument or a LocalAccessor of int32, int64, uint32, uint64, float32 or
    float64.  ``index``: an int, or a tuple with one int for each dimension.  ``memory_order``
    and ``memory_scope`` are those of every operation.  ``address_space``: None for the array's
    own.  Operands have the array's dtype, or are Python numbers that it holds.  Each operation
    returns the value that the element had before.  Source: SYCL 2020, section 4.15.3.
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
        dtype = self._array.dtype
        as_element = dtype.type if isinstance(dtype, np.dtype) else dtype
        self._array[self._index] = COMBINE[op](before, as_element(value))
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

    def compare_exchange(self, expected: Any, desired: Any, expected_idx: Any = 0) -> Any:
        """Put ``desired`` in its place if the element equals ``expected[expected_idx]``, and say
        whether it did; if not, put the element's value into ``expected[expected_idx]``.

        ``expected``: a one-dimensional array of the same dtype, such as a PrivateArray.  Floats
        compare by value, but that a NaN equals a NaN.  A loop that tries again with what it has
        seen waits for nobody; one that tries again with a value of its own waits until another
        work-item stores that, and is refused.
        """
        before = self._array[self._index]
        if alike(before, expected[expected_idx]):
            self._array[self._index] = desired
            return np.bool_(True)
        expected[expected_idx] = before
        return np.bool_(False)

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
