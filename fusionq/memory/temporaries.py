"""Buffers for what kernels of ours hand to each other, used again by later calls and lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusionq.memory.buffer import Buffer

MOST_BYTES = 16 << 20
"""What one queue keeps."""

_LEAST = 1 << 12
"""For how many bytes a small one counts, so that there are not too many."""


class Temporaries:
    """One-dimensional Buffers of one queue whose contents nobody needs once the call, or the list,
    that took them is over: the queue's order lets a later one write to them again.

    Within one call or list no Buffer is given twice, so that it makes no dependences; calls and
    lists that take the same sizes in the same order get the same ones.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[int, np.dtype[Any]], list[Buffer]] = {}
        self._taken: dict[tuple[int, np.dtype[Any]], int] = {}
        """How many of these the present call or list has."""
        self._bytes = 0
        self._list: object = None

    def begin(self, pending: object) -> None:
        """A call begins, which joins the list ``pending``; None: it joins none."""
        if pending is None or pending is not self._list:
            self._taken.clear()
        self._list = pending

    def take(self, count: int, dtype: np.dtype[Any]) -> Buffer:
        """A Buffer of ``count`` elements that the present call or list does not have yet; its
        contents are whatever was there."""
        key = count, dtype
        kept, taken = self._kept.setdefault(key, []), self._taken.get(key, 0)
        self._taken[key] = taken + 1
        if taken < len(kept):
            return kept[taken]
        buffer = Buffer(count, dtype, internal=True)
        nbytes = max(buffer.nbytes, _LEAST)
        if self._bytes + nbytes > MOST_BYTES:
            self.clear()
        if nbytes <= MOST_BYTES:
            self._bytes += nbytes
            self._kept.setdefault(key, []).append(buffer)
            self._taken[key] = len(self._kept[key])
        return buffer

    def clear(self) -> None:
        """Keep none of them."""
        self._kept, self._taken, self._bytes = {}, {}, 0
