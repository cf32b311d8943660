"""Where the local arrays of a work-group function lie in the one memory that a worker has."""

from __future__ import annotations

from math import prod

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.ir.nodes import Kernel, Persistent, StageCode
from fusionq.ir.walk import is_work_group_function, local_memories, takes_work_groups


def local_places(kernel: Kernel) -> tuple[dict[str, int], int]:
    """The first byte of each local memory of ``kernel`` in one memory of all, and its size."""
    places: dict[str, int] = {}
    size, line = 0, CODE_LIMITS.local_alignment
    for name, arrays in local_memories(kernel).items():
        places[name] = size
        size += -(-max(array.nbytes for array in arrays) // line) * line
    return places, size


def groups_at_once(code: StageCode, lanes: int) -> int:
    """How many work-groups of a tile a worker of so many lanes does at once: those whose work-items
    its lanes are, or one by its work-group function."""
    if is_work_group_function(code.kernel) or not takes_work_groups(code.kernel):
        return 1
    assert code.local_range is not None
    return lanes // prod(code.local_range)


def worker_bytes(body: Persistent, lanes: int) -> int:
    """What the local arrays of a stage take at most, in a worker of so many lanes."""
    return max(groups_at_once(code, lanes) * local_places(code.kernel)[1] for code in body.codes)
