"""Host memory that the GPU copies to by itself, at several times the speed of other memory.

Asking the system for it takes longer than a copy to ordinary memory, so it is kept for reuse.
H100: 55 GB/s, to ordinary memory that is new 3.3; 256 MiB take 150 to 200 ms to make.
"""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from fusionq.backends.cuda.runtime import checked, load_driver

FEWEST = 16 << 10
"""Bytes; fewer are copied as fast to ordinary memory, and a new block takes 2 ms (H100), each time
where ``MOST_KEPT`` are kept: a persistent kernel's stalls, asked for behind each launch that is
waited for, took 1.9 ms beside a program of large arrays."""
LARGEST_BLOCK = 64 << 20
"""Bytes; larger copies go to ordinary memory."""
MOST_KEPT = 256 << 20
"""Bytes that are kept while nobody uses them."""
_SMALLEST_BLOCK = 64 << 10

_lock = threading.RLock()
_free: dict[int, list[int]] = {}
"""Addresses by size."""
_kept = 0


class _Block:
    """Memory for as long as an array uses it."""

    def __init__(self, address: int, size: int) -> None:
        self._address = address
        self._size = size
        self.__array_interface__ = {
            "data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3,
        }  # fmt: skip

    def __del__(self) -> None:
        global _kept
        try:
            with _lock:
                if _kept + self._size <= MOST_KEPT:
                    _kept += self._size
                    _free.setdefault(self._size, []).append(self._address)
                else:
                    load_driver().cuMemFreeHost(self._address)
        except Exception:  # at the end of the process the driver, or this module, may be gone
            return


def pinned_bytes(nbytes: int) -> npt.NDArray[np.uint8] | None:
    """``nbytes`` of pinned memory, contents undefined; None where they are too few or too many, or
    the system gives none.  The calling thread's context must be current."""
    global _kept
    if not FEWEST <= nbytes <= LARGEST_BLOCK:
        return None
    size = max(_SMALLEST_BLOCK, 1 << (nbytes - 1).bit_length())
    with _lock:
        waiting = _free.get(size)
        if waiting:
            _kept -= size
            address = waiting.pop()
        else:
            driver = load_driver()
            status, found = driver.cuMemHostAlloc(size, driver.CU_MEMHOSTALLOC_PORTABLE)
            if status == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
                return None
            address = int(checked("pinned memory", (status, found)))
    return np.asarray(_Block(address, size))[:nbytes]
