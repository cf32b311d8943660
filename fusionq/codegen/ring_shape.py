"""How many slots of how many bytes the rings of a persistent kernel's workers have.

A kernel says of how many bytes its slots are (``Persistent.slot_bytes``), or leaves that to the
target; what else there is follows from the memory of a work-group.
"""

from __future__ import annotations

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.frozen import dataclass
from fusionq.base.target import Target
from fusionq.codegen.local_places import worker_bytes
from fusionq.codegen.stage_tables import operands_of, table_words, words_before_waits
from fusionq.codegen.streamed_loops import Streams, streams_of
from fusionq.ir.nodes import Persistent
from fusionq.ir.walk import takes_work_groups

LARGEST_STATIC = CODE_LIMITS.static_bytes - (15 << 10)
"""Bytes of local memory that the compiler places itself; group functions may take the rest."""

_FEWEST_SLOTS = 2
_GROUP_FUNCTIONS = 12 << 10
"""Bytes that a device's local memory is more than it says, for group functions, which have others
here (``codegen.cuda.worker_groups``)."""
_OTHER_STATIC = 512
"""Bytes of what a worker tells its lanes."""
_SLOT_BARRIERS = 16
"""Bytes of the barriers of a slot."""


@dataclass(frozen=True)
class RingShape:
    """The rings of a worker of ``lanes``, one for each work-group of ``size`` that it does side by
    side: ``slots`` of ``slot_bytes`` each, of which ``in_flight`` are filled at once, at most."""

    lanes: int
    size: int
    slots: int
    slot_bytes: int
    in_flight: int

    @property
    def count(self) -> int:
        """Of rings: work-groups that a worker does side by side."""
        return self.lanes // self.size

    @property
    def nbytes(self) -> int:
        """Of all slots together."""
        return self.count * self.slots * self.slot_bytes

    @property
    def bytes_in_flight(self) -> int:
        """That are on their way to a worker at once, at most."""
        return self.count * self.in_flight * self.slot_bytes


def slot_bytes_of(body: Persistent, target: Target) -> int:
    """Of a slot of the rings of ``body``, if it has any."""
    return body.slot_bytes or target.slot_bytes


def streams_to(body: Persistent, target: Target) -> Streams | None:
    """What may be streamed to a worker of ``body`` on ``target``, if it has rings; None where
    nothing can be."""
    return streams_of(body, target.streaming_lanes, slot_bytes_of(body, target))


def ring_shape(body: Persistent, target: Target) -> RingShape | None:
    """The rings of a worker of ``body``, which then is the only one of a compute unit; None where
    nothing is streamed.

    So few threads are too few for stages that read memory themselves, so there are rings only where
    the tables of many stages leave room for few workers anyway.
    """
    lanes, nbytes = target.streaming_lanes, slot_bytes_of(body, target)
    most = target.device.local_memory_bytes
    if not target.device.streams_rows or 8 * near_words(body, most) <= LARGEST_STATIC:
        return None
    streams = streams_to(body, target)
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
    return RingShape(lanes, streams.size, slots, nbytes, min(max(flight, 1), slots))


def near_words(body: Persistent, most: int) -> int:
    """The int64 of local memory that a worker has for tables, where a block may have ``most``
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
