"""Shared memory that is given to a block when it is launched: all local arrays of a kernel, where
they are more than the compiler places itself.

Source: NVIDIA, CUDA C++ Programming Guide 13, Compute Capabilities: a block has at most 48 KiB of
static shared memory.
"""

from __future__ import annotations

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.target import Target
from fusionq.codegen.cuda.rings import CudaRings
from fusionq.codegen.local_places import worker_bytes
from fusionq.codegen.stage_tables import operands_of, table_words, words_before_waits
from fusionq.codegen.streamed_loops import streams_of
from fusionq.ir.nodes import Kernel, Persistent
from fusionq.ir.walk import local_memories, takes_work_groups

LARGEST_STATIC = CODE_LIMITS.static_bytes - (15 << 10)
"""Bytes; group functions may take the rest (``codegen.cuda.groups``)."""
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


def near_words(body: Persistent, most: int) -> int:
    """The int64 of shared memory that a worker has for tables, where a block may have ``most``
    bytes of it; 0 where none are left.

    Tables of many stages take so much that only some workers run at once: as many as loads of
    work-groups keep busy, but too few for stages of single work-items.
    """
    needed = operands_of(body).count + table_words(body)
    local = worker_bytes(body, CODE_LIMITS.worker_threads)
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


def words_beside_rings(body: Persistent) -> int:
    """The int64 that hold the tables of a worker with rings, in memory that launches give: all but
    what stages wait for, which lists of instructions have as well.  A slot more for each ring that
    fits so takes 12 µs off a decode step on an H100."""
    return operands_of(body).count + words_before_waits(body)


_FEWEST_SLOTS = 2
_GROUP_FUNCTIONS = 12 << 10
"""Bytes that a device's local memory is more than it says, for group functions, which have others
here (``codegen.cuda.worker_groups``)."""
_OTHER_STATIC = 512
"""Bytes of what a worker tells its lanes."""
_SLOT_BARRIERS = 16
"""Bytes of the barriers of a slot."""


def rings_of(body: Persistent, target: Target) -> CudaRings | None:
    """The rings of a worker of ``body``, which then is the only one of a multiprocessor; None where
    nothing is streamed.

    So few threads are too few for stages that read memory themselves, so there are rings only where
    the tables of many stages leave room for few workers anyway.
    """
    lanes, nbytes = target.streaming_lanes, target.slot_bytes
    most = target.device.local_memory_bytes
    if not target.device.streams_rows or 8 * near_words(body, most) <= LARGEST_STATIC:
        return None
    streams = streams_of(body, lanes, nbytes)
    if streams is None:
        return None
    static = worker_bytes(body, lanes) + 2 * 16 * lanes + _OTHER_STATIC
    if static > 48 << 10:
        return None
    tables = 8 * words_beside_rings(body) + CODE_LIMITS.ring_alignment
    left = most + _GROUP_FUNCTIONS - static - tables
    slots = left // (lanes // streams.size * (nbytes + _SLOT_BARRIERS))
    flight = target.streamed_bytes // (lanes // streams.size * nbytes)
    if slots < _FEWEST_SLOTS:
        return None
    return CudaRings(lanes, streams.size, slots, nbytes, min(max(flight, 1), slots))


def _layout(kernel: Kernel) -> tuple[dict[str, int], int]:
    found: dict[str, int] = {}
    end = 0
    for memory, arrays in local_memories(kernel).items():
        found[memory] = end
        size = max(array.nbytes for array in arrays)
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return found, end
