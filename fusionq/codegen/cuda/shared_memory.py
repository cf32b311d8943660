"""Shared memory that is given to a block when it is launched: all local arrays of a kernel, where
they are more than the compiler places itself.

Source: NVIDIA, CUDA C++ Programming Guide 13, Compute Capabilities: a block has at most 48 KiB of
static shared memory.
"""

from __future__ import annotations

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.codegen.local_places import worker_bytes
from fusionq.codegen.ring_shape import LARGEST_STATIC, near_words
from fusionq.ir.nodes import Kernel, Persistent
from fusionq.ir.walk import local_memories

ALIGNMENT = 8


def offsets(kernel: Kernel) -> dict[str, int]:
    """Where each local memory lies in what a launch gives, in bytes; empty where the compiler
    places them."""
    found, end = _layout(kernel)
    return found if end > LARGEST_STATIC else {}


def pooled_bytes(kernel: Kernel, most: int) -> int:
    """What a launch has to give a block, where that may have ``most`` bytes; 0 where the compiler
    places all of its memory."""
    match kernel.body:
        case (Persistent() as body, *_):
            own = worker_bytes(body, CODE_LIMITS.worker_threads)
            end = own if own > LARGEST_STATIC else 8 * near_words(body, most)
        case _:
            _, end = _layout(kernel)
    return end if end > LARGEST_STATIC else 0


def _layout(kernel: Kernel) -> tuple[dict[str, int], int]:
    found: dict[str, int] = {}
    end = 0
    for memory, arrays in local_memories(kernel).items():
        found[memory] = end
        size = max(array.nbytes for array in arrays)
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return found, end
