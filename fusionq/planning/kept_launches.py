"""Launches whose work-items keep what they load and store of rows in registers between loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.submission import Submission
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.target import Target
from fusionq.codegen.kept_loops import KeptLoops, kept_loops
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.nodes import Extent, Kernel
from fusionq.ir.walk import is_persistent
from fusionq.planning.by_kernel import ByKernel
from fusionq.planning.known_values import launch_sizes
from fusionq.planning.plan import StagePlan

TURNS = (4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64)
"""Iterations that all work-items keep or none: rows of lengths between two have one kernel."""

LONGEST = 2
"""How many times as long as what is kept rows may be: the rest goes through memory."""
FEWEST_LANES = CODE_LIMITS.early_step
"""Work-items that do a row together."""
_REGISTERS = 65536
"""32-bit registers that the threads of a block share, on every GPU from sm_50 on."""
_BESIDE = 48
"""Those of a thread for what it does with rows.  sm_90: kernels of a softmax and of two norms take
32 to 64."""


class KeptLaunches:
    """The launches of a list of ``submissions`` on ``target``; lengths of rows on which it depends
    what they are ``validity`` remembers."""

    def __init__(
        self, submissions: Sequence[Submission], target: Target, validity: ListValidity
    ) -> None:
        self._submissions = submissions
        self._target = target
        self._validity = validity
        self._found = ByKernel(_kept_loops)

    def plan(self, stage: StagePlan) -> StagePlan:
        """``stage``, whose loops over rows have these in registers where they are long enough."""
        if not self._target.device.loads_together or stage.local_range is None:
            return stage
        if stage.tiling is not None or stage.beside or is_persistent(stage.kernel):
            return stage
        found = self._found[stage.kernel]
        if found is None or found.step < FEWEST_LANES:
            return stage
        most = _most_turns(found, prod(stage.local_range))
        sources = dict(zip((p.name for p in stage.kernel.params), stage.sources, strict=True))
        extents = launch_sizes(stage.kernel, sources, self._submissions).extents
        lengths = {extents[e.array, e.dim] for e in found.stops if isinstance(e, Extent)}
        there = min(lengths) // found.step
        full = max((turns for turns in TURNS if turns <= min(there, most)), default=0)
        behind = next((turns for turns in TURNS if turns > full), most + 1)
        masked = behind - full if full and behind <= most else 0
        beyond = behind if masked else LONGEST * full + 1
        for length in lengths:
            self._validity.are_at_least((length,), (full or TURNS[0]) * found.step)
            if full:
                self._validity.are_at_least((length,), beyond * found.step)
        if not full or there >= beyond:
            return stage
        return replace(stage, kernel=replace(stage.kernel, kept_turns=(full, masked)))


def _kept_loops(kernel: Kernel) -> KeptLoops | None:
    return kept_loops(kernel, flatten_blocks(kernel.body))


def _most_turns(found: KeptLoops, threads: int) -> int:
    """Iterations of which a work-item can keep what it has, in work-groups of so many."""
    room = _REGISTERS // threads - _BESIDE
    return max(min(CODE_LIMITS.kept_words, room), 0) // found.words
