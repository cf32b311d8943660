"""Launches whose work-items do several neighbours of an outer dimension together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from fusionq.analysis.item_space import global_range, local_range
from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.submission import Submission
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.frozen import dataclass
from fusionq.base.identity_cache import cached_by_identity
from fusionq.base.target import Target
from fusionq.codegen.scalar_items import is_for_scalars
from fusionq.ir.conjunctions import conjunction
from fusionq.ir.nodes import Compare, Extent, For, ItemQuery, Kernel, Param
from fusionq.ir.types import INT64
from fusionq.ir.walk import is_persistent, subexpressions
from fusionq.language.ranges import Range
from fusionq.passes.guard import guarded
from fusionq.passes.jam_items import JammedItems, jammed_items
from fusionq.passes.propagate_ids import propagate_ids
from fusionq.passes.sources import ParamSource
from fusionq.planning.by_kernel import ByKernel
from fusionq.planning.cost import items_for_build, tile_seconds
from fusionq.planning.item_work import item_work
from fusionq.planning.known_values import KnownValues, Sizes, launch_sizes, sizes_of
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
        sizes = replace(launch_sizes(kernel, sources, self._submissions), items=tuple(items))
        for extent in lengths_of((loop for j in known for loop in j.loops), sizes):
            self._validity.are_at_least((extent,), CODE_LIMITS.jammed_iterations)
        best = _best(kernel, known, sizes, self._target)
        if best is None:
            return None
        is_large = self._validity.are_at_least(tuple(items), best.fewest)
        return best.jammed if is_large and best.fits(items) else None


def jammed_share(submission: Submission, target: Target) -> float:
    """What a launch of ``submission`` alone takes of what its work-items would take each by itself,
    where they do several neighbours together; 1 where they do not."""
    items, kernel = global_range(submission), submission.ir
    own_groups = local_range(submission) is not None or kernel.ndim != len(items)
    if not target.device.jams_items or own_groups or not items.size:
        return 1.0
    best = _best(kernel, _jammed_of(kernel), sizes_of(submission), target)
    if best is None or items.size < best.fewest or not best.fits(items):
        return 1.0
    return best.share


@dataclass(frozen=True)
class _Best:
    """The way of ``jammed`` items that takes least, a ``share`` of what they take each by itself;
    the ``fewest`` work-items for which that is worth its building."""

    jammed: JammedItems
    share: float
    fewest: int

    def fits(self, items: Sequence[int]) -> bool:
        """Whether a range has several of them."""
        return items[self.jammed.dim] >= 2 * self.jammed.items


def _best(
    kernel: Kernel, known: Sequence[JammedItems], sizes: Sizes, target: Target
) -> _Best | None:
    """Which of ``known`` is faster than ``kernel`` as it is; None if none is."""
    if not known or (not target.costs.chain_seconds and is_for_scalars(kernel, kernel.body)):
        return None  # without vectors, with which they take several times as long
    trips = KnownValues(kernel, sizes).trips
    fewest = CODE_LIMITS.jammed_iterations
    found = [jammed for jammed in known if max(map(trips, jammed.loops)) >= fewest]
    if not found:
        return None
    alone = tile_seconds(item_work(kernel, sizes, target), 0.0, target)

    def seconds(jammed: JammedItems) -> float:
        return tile_seconds(item_work(jammed.together, sizes, target), 0.0, target) / jammed.items

    least, best = min(((seconds(jammed), jammed) for jammed in found), key=itemgetter(0))
    earning = items_for_build(alone - least, target)
    if earning is None:
        return None
    enough = target.throughput_parts * target.preferred_work_group * best.items
    return _Best(best, least / alone, max(earning, enough))


def is_plain(stage: StagePlan) -> bool:
    """Whether its launch is that of a range, each of whose work-items does its own."""
    if stage.mode != "ids" or stage.local_range is not None or stage.tiling is not None:
        return False
    return not (stage.beside or is_persistent(stage.kernel))


def lengths_of(loops: Iterable[For], sizes: Sizes) -> set[int]:
    """The extents of arrays that decide how long ``loops`` are."""
    bounds = (e for loop in loops for end in (loop.start, loop.stop) for e in subexpressions(end))
    return {sizes.extents[e.array, e.dim] for e in bounds if isinstance(e, Extent)}


def launched_alone(kernel: Kernel) -> Kernel:
    """As the launch of ``kernel`` alone has it, over its range."""
    kernel = propagate_ids(kernel)
    limits = [
        Compare("lt", ItemQuery("global_id", d), Param(INT64, f"range_{d}"))
        for d in range(kernel.ndim)
    ]
    return replace(kernel, body=guarded(kernel.body, conjunction(limits)))


@cached_by_identity
def _jammed_of(kernel: Kernel) -> tuple[JammedItems, ...]:
    return _jammed(launched_alone(kernel))


def _jammed(kernel: Kernel) -> tuple[JammedItems, ...]:
    kernel = replace(kernel, row_lanes=None)
    found = (jammed_items(kernel, d, CODE_LIMITS.jammed_bytes) for d in range(kernel.ndim - 1))
    return tuple(jammed for jammed in found if jammed is not None)
