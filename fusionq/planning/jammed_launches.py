"""Launches whose work-items do several neighbours of an outer dimension together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.submission import Submission
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.target import Target
from fusionq.codegen.scalar_items import is_for_scalars
from fusionq.ir.nodes import Extent, For, Kernel
from fusionq.ir.walk import is_persistent, subexpressions
from fusionq.language.ranges import Range
from fusionq.passes.jam_items import JammedItems, jammed_items
from fusionq.passes.sources import ParamSource
from fusionq.planning.by_kernel import ByKernel
from fusionq.planning.cost import items_for_build, tile_seconds
from fusionq.planning.item_work import item_work
from fusionq.planning.known_values import KnownValues, Sizes, launch_sizes
from fusionq.planning.plan import StagePlan


class JammedLaunches:
    """The launches of a list of ``submissions`` on ``target``; sizes on which it depends what they
    are ``validity`` remembers."""

    def __init__(
        self, submissions: Sequence[Submission], target: Target, validity: ListValidity
    ) -> None:
        self._submissions = submissions
        self._target = target
        self._validity = validity
        self._may_become = ByKernel(_jammed)

    def plan(self, stage: StagePlan) -> StagePlan:
        """``stage``, whose work-items do several neighbours where that is faster."""
        if not self._target.device.jams_items or not is_plain(stage):
            return stage
        items = stage.range_of(self._submissions)
        if stage.kernel.ndim != len(items):
            return stage
        sources = dict(zip((p.name for p in stage.kernel.params), stage.sources, strict=True))
        jammed = self._jammed(stage.kernel, sources, items)
        if jammed is None:
            return stage
        at_once = tuple(jammed.items if d == jammed.dim else 1 for d in range(len(items)))
        return replace(stage, kernel=jammed.kernel, items_at_once=at_once, guards=None)

    def _jammed(
        self, kernel: Kernel, sources: Mapping[str, ParamSource], items: Range
    ) -> JammedItems | None:
        """``kernel`` as a launch over ``items`` is faster; None where it is as it is."""
        known = self._may_become[kernel]
        if not known or not items.size:
            return None
        if not self._target.costs.chain_seconds and is_for_scalars(kernel, kernel.body):
            return None  # those have no vectors, with which they take several times as long
        sizes = replace(launch_sizes(kernel, sources, self._submissions), items=tuple(items))
        trips = KnownValues(kernel, sizes).trips
        fewest = CODE_LIMITS.jammed_iterations
        found = [jammed for jammed in known if max(map(trips, jammed.loops)) >= fewest]
        for extent in lengths_of((loop for j in known for loop in j.loops), sizes):
            self._validity.are_at_least((extent,), fewest)
        if not found:
            return None
        alone = tile_seconds(item_work(kernel, sizes, self._target), 0.0, self._target)

        def saved(jammed: JammedItems) -> float:
            work = item_work(jammed.together, sizes, self._target)
            return alone - tile_seconds(work, 0.0, self._target) / jammed.items

        seconds, best = max(((saved(jammed), jammed) for jammed in found), key=itemgetter(0))
        earning = items_for_build(seconds, self._target)
        if earning is None:
            return None
        enough = self._target.throughput_parts * self._target.preferred_work_group * best.items
        is_large = self._validity.are_at_least(tuple(items), max(earning, enough))
        return best if is_large and items[best.dim] >= 2 * best.items else None


def is_plain(stage: StagePlan) -> bool:
    """Whether its launch is that of a range, each of whose work-items does its own."""
    if stage.mode != "ids" or stage.local_range is not None or stage.tiling is not None:
        return False
    return not (stage.beside or is_persistent(stage.kernel))


def lengths_of(loops: Iterable[For], sizes: Sizes) -> set[int]:
    """The extents of arrays that decide how long ``loops`` are."""
    bounds = (e for loop in loops for end in (loop.start, loop.stop) for e in subexpressions(end))
    return {sizes.extents[e.array, e.dim] for e in bounds if isinstance(e, Extent)}


def _jammed(kernel: Kernel) -> tuple[JammedItems, ...]:
    kernel = replace(kernel, row_lanes=None)
    found = (jammed_items(kernel, d, CODE_LIMITS.jammed_bytes) for d in range(kernel.ndim - 1))
    return tuple(jammed for jammed in found if jammed is not None)
