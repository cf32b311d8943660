"""Which worker does which of a persistent kernel's instructions, where each has its own list."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusionq.megakernel.evaluate import Integers
from fusionq.megakernel.tiling import Tiling


def assigned_lists(
    stage: Integers, tile: Integers, tiling: Tiling, workers: int, work: Sequence[int]
) -> tuple[Integers, Integers]:
    """Each worker's instructions, in order, one list after the other, of all that have ``stage``
    and ``tile``; ``work``: what each stage takes in terms of others.  A single worker has a list,
    whatever the tiling says."""
    if workers == 1:
        return np.array([0, len(stage)], np.int64), np.arange(len(stage))
    if tiling.assignment == "tickets":
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if tiling.assignment == "stages":
        worker = np.concatenate(
            [
                shares_of(work[start : start + tiling.block], workers)
                for start in range(0, len(work), tiling.block)
            ]
        )[stage]
    elif tiling.assignment == "shares":
        worker = tile * workers // np.bincount(stage)[stage]
    else:
        worker = np.arange(len(stage)) % workers
    assigned = np.argsort(worker, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(worker, minlength=workers))])
    return starts.astype(np.int64), assigned.astype(np.int64)


def shares_of(work: Sequence[int], workers: int) -> Integers:
    """The worker of each stage of a block: consecutive ones, of about as much ``work``."""
    done = np.cumsum(np.array(work, np.int64))
    middle = 2 * done - np.array(work, np.int64)
    shares: Integers = middle * workers // (2 * done[-1])
    return shares
