"""Launches whose work-items go along rows of their own, several together and without vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusionq.analysis.item_space import global_range, local_range
from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.submission import Submission
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.identity_cache import cached_by_identity
from fusionq.base.target import Target
from fusionq.ir.nodes import Const, For, Kernel
from fusionq.passes.jam_items import JammedItems, items_of_own_rows
from fusionq.planning.by_kernel import ByKernel
from fusionq.planning.jammed_launches import is_plain, launched_alone, lengths_of
from fusionq.planning.known_values import KnownValues, Sizes, launch_sizes, sizes_of
from fusionq.planning.plan import StagePlan


class OwnRowLaunches:
    """The launches of a list of ``submissions`` on ``target``; sizes on which it depends what they
    are ``validity`` remembers."""

    def __init__(
        self, submissions: Sequence[Submission], target: Target, validity: ListValidity
    ) -> None:
        self._submissions = submissions
        self._target = target
        self._validity = validity
        self._rows = ByKernel(items_of_own_rows)

    def plan(self, stage: StagePlan) -> StagePlan:
        """``stage``, whose work-items are done without vectors where rows are long enough."""
        if not self._target.device.jams_rows or not is_plain(stage) or stage.items_at_once:
            return stage
        items, kernel = stage.range_of(self._submissions), stage.kernel
        if kernel.ndim != len(items) or kernel.row_lanes is not None or not items.size:
            return stage
        rows = self._rows[kernel]
        if rows is None:
            return stage
        sources = dict(zip((p.name for p in kernel.params), stage.sources, strict=True))
        sizes = replace(launch_sizes(kernel, sources, self._submissions), items=tuple(items))
        fewest = CODE_LIMITS.own_row_iterations
        for extent in lengths_of(rows.loops, sizes):
            self._validity.are_at_least((extent,), fewest)
        if not _are_long(rows, kernel, sizes):
            return stage
        if rows.items == 1:
            return replace(stage, kernel=rows.kernel, guards=None)
        if not self._validity.are_at_least((items[-1],), _enough(rows, self._target)):
            return stage
        at_once = (*(1 for _ in items[:-1]), rows.items)
        return replace(stage, kernel=rows.kernel, items_at_once=at_once, guards=None)


def may_have_own_rows(submission: Submission, target: Target) -> bool:
    """Whether work-items of a launch of ``submission`` alone go along rows of their own without
    vectors, for some sizes."""
    own_groups = local_range(submission) is not None
    if not target.device.jams_rows or own_groups:
        return False
    kernel = submission.ir
    return kernel.ndim == len(global_range(submission)) and _rows_of(kernel) is not None


def own_row_share(submission: Submission, target: Target) -> float:
    """What a launch of ``submission`` alone takes of what its work-items take beside others, where
    they go along rows of their own without vectors; 1 where they do not."""
    items, kernel = global_range(submission), submission.ir
    rows = _rows_of(kernel) if may_have_own_rows(submission, target) else None
    if rows is None or not items.size or not _are_long(rows, kernel, sizes_of(submission)):
        return 1.0
    if rows.items > 1 and items[-1] < _enough(rows, target):
        return 1.0
    return target.costs.own_rows_share


@cached_by_identity
def _rows_of(kernel: Kernel) -> JammedItems | None:
    return items_of_own_rows(launched_alone(kernel))


def _are_long(rows: JammedItems, kernel: Kernel, sizes: Sizes) -> bool:
    trips = KnownValues(kernel, sizes).trips
    longest = max(trips(loop) * _elements(loop) for loop in rows.loops)
    return longest >= CODE_LIMITS.own_row_iterations


def _enough(rows: JammedItems, target: Target) -> int:
    """Work-items in a row of the range, at least."""
    return target.throughput_parts * _SHARES * rows.items


def _elements(loop: For) -> int:
    """From one iteration to the next."""
    return abs(int(loop.step.value)) if isinstance(loop.step, Const) else 1


_SHARES = 4
"""Launched work-items for each part of the device, at least."""
