"""Launches whose work-groups go along rows, several vectors of one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.submission import Submission
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.target import Target
from fusionq.codegen.along_rows import Rows, jammed_rows, rows_of
from fusionq.codegen.jammed_loops import JammedLoops
from fusionq.ir.nodes import For, Kernel
from fusionq.ir.walk import statements
from fusionq.planning.by_kernel import ByKernel
from fusionq.planning.cost import items_for_build, tile_seconds
from fusionq.planning.item_work import item_work
from fusionq.planning.jammed_launches import is_plain, lengths_of
from fusionq.planning.known_values import KnownValues, launch_sizes
from fusionq.planning.plan import StagePlan
from fusionq.planning.split_launches import guards_of

FEWEST_STEPS = 2
"""Of several vectors in a row: what is left of it is done by one vector at a time."""


class RowVectorLaunches:
    """The launches of a list of ``submissions`` on ``target``; sizes on which it depends what they
    are ``validity`` remembers."""

    def __init__(
        self, submissions: Sequence[Submission], target: Target, validity: ListValidity
    ) -> None:
        self._submissions = submissions
        self._target = target
        self._validity = validity
        self._several = ByKernel(partial(_several, lanes=target.sub_group_size))
        """How several vectors of a row are done, and what one does."""

    def plan(self, stage: StagePlan) -> StagePlan:
        """``stage``, whose work-groups do several vectors of a row where that is faster."""
        target, kernel = self._target, stage.kernel
        if not target.device.jams_rows or not is_plain(stage) or stage.items_at_once:
            return stage
        items = stage.range_of(self._submissions)
        if kernel.ndim != len(items) or not items.size:
            return stage
        known = self._several[kernel]
        if known is None:
            return stage
        several, rows = known
        if kernel.row_lanes is not None:
            return replace(stage, vectors_at_once=several.items)
        sources = dict(zip((p.name for p in kernel.params), stage.sources, strict=True))
        sizes = replace(launch_sizes(kernel, sources, self._submissions), items=tuple(items))
        loops = [s for s in statements(rows.inside) if isinstance(s, For)]
        fewest = CODE_LIMITS.jammed_row_iterations
        for extent in lengths_of(loops, sizes):
            self._validity.are_at_least((extent,), fewest)
        if max(map(KnownValues(kernel, sizes).trips, loops)) < fewest:
            return stage
        length = several.items * target.sub_group_size
        if not self._validity.are_at_least((items[-1],), FEWEST_STEPS * length):
            return stage
        seconds = tile_seconds(item_work(kernel, sizes, target), 0.0, target)
        earning = items_for_build(seconds, target)
        if earning is None or not self._validity.are_at_least(tuple(items), earning):
            return stage
        guards = None if rows.interior is None else guards_of(rows.interior)
        along = replace(kernel, row_lanes=target.sub_group_size)
        return replace(stage, kernel=along, vectors_at_once=several.items, guards=guards)


def _several(kernel: Kernel, lanes: int) -> tuple[JammedLoops, Rows] | None:
    rows = rows_of(kernel) if any(isinstance(s, For) for s in statements(kernel.body)) else None
    several = None if rows is None else jammed_rows(kernel, rows, lanes)
    return None if rows is None or several is None else (several, rows)
