"""Launches of so few work-items that a warp's own loads are all that is under way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.submission import Submission
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.target import Target
from fusionq.codegen.carried_values import with_carried_values
from fusionq.codegen.loads_together import has_loads_together
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.nodes import Kernel
from fusionq.planning.by_kernel import ByKernel
from fusionq.planning.jammed_launches import is_plain
from fusionq.planning.plan import StagePlan


class FewItems:
    """The launches of a list of ``submissions`` on ``target``; the number of work-items on which it
    depends what they are ``validity`` remembers."""

    def __init__(
        self, submissions: Sequence[Submission], target: Target, validity: ListValidity
    ) -> None:
        self._submissions = submissions
        self._target = target
        self._validity = validity
        self._has_loops = ByKernel(_has_loops)

    def plan(self, stage: StagePlan) -> StagePlan:
        """``stage``, whose loops load for many iterations at once, and keep in variables what goes
        from one to the next, where it has few work-items."""
        device = self._target.device
        if not device.loads_together or not is_plain(stage):
            return stage
        if not self._has_loops[stage.kernel]:
            return stage
        many = CODE_LIMITS.few_items * device.compute_units + 1
        if self._validity.are_at_least(tuple(stage.range_of(self._submissions)), many):
            return stage
        return replace(stage, kernel=replace(stage.kernel, few_items=True))


def _has_loops(kernel: Kernel) -> bool:
    carried = with_carried_values(kernel, flatten_blocks(kernel.body))
    return carried is not None or has_loads_together(kernel)
