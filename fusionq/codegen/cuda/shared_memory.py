"""Shared memory that is given to a block when it is launched: all local arrays of a kernel, where
they are more than the compiler places itself.

Source: NVIDIA, CUDA C++ Programming Guide 13, Compute Capabilities: a block has at most 48 KiB of
static shared memory.
"""

from __future__ import annotations

from fusionq.base.target import CODE_LIMITS
from fusionq.codegen.local_places import worker_bytes
from fusionq.codegen.stage_tables import operands_of, table_words
from fusionq.ir.nodes import Kernel, Persistent
from fusionq.ir.walk import local_memories, takes_work_groups

WORKER_THREADS = 256
"""Of a block that is a worker of a persistent kernel."""
LARGEST_STATIC = (48 - 15) << 10
"""Bytes; group functions may take the rest of the 48 KiB (``codegen.cuda.groups``)."""
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
            own = worker_bytes(body, WORKER_THREADS)
            end = own if own > LARGEST_STATIC else 8 * near_words(body, most)
        case _:
            _, end = _layout(kernel)
    return end if end > LARGEST_STATIC else 0


def near_words(body: Persistent, most: int) -> int:
    """The int64 of shared memory that a worker has for tables, where a block may have ``most``
    bytes of it; 0 where none are left.

    Tables of many stages take so much that only some workers run at once: as many as loads of
    work-groups keep busy, but too few for stages of single work-items.
    """
    needed = operands_of(body).count + table_words(body)
    local = worker_bytes(body, WORKER_THREADS)
    by_groups = any(takes_work_groups(code.kernel) for code in body.codes)
    near, most_near = CODE_LIMITS.near_words, CODE_LIMITS.most_near_words
    if near < needed <= most_near and by_groups and local <= LARGEST_STATIC:
        if local + 8 * needed > LARGEST_STATIC:
            needed = max(needed, LARGEST_STATIC // 8 + 1)  # which launches give
        if local + 8 * needed <= most:
            return needed
    needed = min(needed, near)
    fits = local + 8 * needed <= LARGEST_STATIC
    return needed if fits and needed > operands_of(body).count else 0


def _layout(kernel: Kernel) -> tuple[dict[str, int], int]:
    found: dict[str, int] = {}
    end = 0
    for memory, arrays in local_memories(kernel).items():
        found[memory] = end
        size = max(array.nbytes for array in arrays)
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return found, end
