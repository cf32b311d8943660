"""Where the local arrays of a work-group function lie in the one memory that a worker has."""

from __future__ import annotations

from fusionq.ir.nodes import Kernel, Persistent
from fusionq.ir.walk import local_memories

ALIGNMENT = 64
"""Bytes that local memories of a work-group function are multiples of: those of a cache line."""


def local_places(kernel: Kernel) -> tuple[dict[str, int], int]:
    """The first byte of each local memory of ``kernel`` in one memory of all, and its size."""
    places: dict[str, int] = {}
    size = 0
    for name, arrays in local_memories(kernel).items():
        places[name] = size
        size += -(-max(array.nbytes for array in arrays) // ALIGNMENT) * ALIGNMENT
    return places, size


def worker_bytes(body: Persistent) -> int:
    """What the local arrays of a stage take at most."""
    return max(local_places(code.kernel)[1] for code in body.codes)
