"""Launches on GPUs whose neighbouring work-items go along rows of their own.

Of each load a warp asks for as many lines as it has rows: the level 1 cache gives one of them after
the other, and is all that such a loop waits for.  By 16 bytes at a time there are a quarter as many
loads of 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusionq.analysis.submission import Submission
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.target import Target
from fusionq.codegen.loads_together import row_loops
from fusionq.planning.by_kernel import ByKernel
from fusionq.planning.jammed_launches import is_plain
from fusionq.planning.known_values import KnownValues, launch_sizes
from fusionq.planning.plan import StagePlan


class RowTurns:
    """The launches of a list of ``submissions`` on ``target``."""

    def __init__(self, submissions: Sequence[Submission], target: Target) -> None:
        self._submissions = submissions
        self._target = target
        self._loops = ByKernel(row_loops)

    def plan(self, stage: StagePlan) -> StagePlan:
        """``stage``, which loads for several iterations at once along rows, as many as there are
        today; it is right for any number."""
        kernel = stage.kernel
        if not self._target.device.loads_together or not is_plain(stage):
            return stage
        loops = [] if kernel.few_items else self._loops[kernel]
        if not loops:
            return stage
        sources = dict(zip((p.name for p in kernel.params), stage.sources, strict=True))
        known = KnownValues(kernel, launch_sizes(kernel, sources, self._submissions))
        most = min(CODE_LIMITS.row_turns, *(int(known.trips(loop)) for loop in loops))
        turns = 1 << max(most, 1).bit_length() - 1
        if turns < CODE_LIMITS.fewest_ahead:
            return stage
        return replace(stage, kernel=replace(kernel, row_turns=turns))
