"""Launches whose work-groups compute the halo of their tile anew, in local memory.

A producer of such a launch is not among the submissions of which stages are made: its consumers
have its dependences, which lead to other work-groups, and their launch does what it would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod

from fusionq.analysis.aliasing import overlaps_itself
from fusionq.analysis.dependence import PairScope
from fusionq.analysis.footprint import Footprint
from fusionq.analysis.isl_operations import in_steps
from fusionq.analysis.item_space import global_range, largest, local_range
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.live_accesses import accessed
from fusionq.analysis.overlapped_tiles import Boxes, advance_of, overlapped_boxes, tile_box
from fusionq.analysis.questions import Questions
from fusionq.analysis.submission import ArrayArgument, ScalarArgument
from fusionq.base.frozen import dataclass
from fusionq.base.steps import Steps
from fusionq.base.target import Target
from fusionq.ir.nodes import Block, Stmt
from fusionq.ir.types import INT64, ScalarType
from fusionq.ir.walk import rewrite_body
from fusionq.passes.fuse import FusedKernel
from fusionq.passes.labels import label, number_in
from fusionq.passes.overlapped_tiles import TilePart, overlapped_tiles
from fusionq.passes.sources import ArgumentSource, ParamSource, RangeSource
from fusionq.passes.symbol_sources import of_members, sources_of_symbols
from fusionq.planning.cost import tile_seconds, waiting_seconds
from fusionq.planning.list_work import Identity, tiled_part
from fusionq.planning.plan import OverlappedTiling, PromotionDecision, StagePlan, TiledPart
from fusionq.planning.promotion import Moved
from fusionq.planning.recomputing import impure
from fusionq.planning.stage_kernels import StageKernels, of_small_sizes
from fusionq.planning.stages import Stage, space_of
from fusionq.planning.tile_shape import Growth, TileCosts, TileShape, best_tile

Producers = Mapping[int, tuple[int, ...]]
"""Submissions whose work is done by tiles, with the arguments that are their temporaries."""

_BY_ITSELF = "a work-group computes the elements that it reads itself"

SPLIT_ITEMS = 8
"""Work-items of a launch for each thread that runs at once, from which on code of their own gains
more for tiles than it takes to be fetched: on an H100 eight launches with four for each took 97 in
place of 93 µs, with sixteen 111 in place of 149."""

_COMPUTED_ANEW = "work-groups compute elements for their neighbours' tiles too"


@dataclass(frozen=True)
class _Boxes:
    """``Boxes`` by the numbers of the list, with sources of the values of their symbols."""

    items: Mapping[int, Footprint]
    elements: Mapping[tuple[int, int], Footprint]
    symbols: Mapping[str, ParamSource]

    @property
    def slide(self) -> bool:
        """Whether those of tiles side by side in the first dimension differ in that only."""
        boxes = (*self.items.values(), *self.elements.values())
        return all(advance_of(box) is not None for box in boxes)


class TiledStages:
    """The stages of a list of which ``producers`` are part of their consumers' launches."""

    def __init__(self, questions: Questions, producers: Producers, target: Target) -> None:
        self._questions = questions
        self._producers = producers
        self._target = target
        self._writer = {
            questions.place[p, k].group: p for p, own in producers.items() for k in own
        }
        self._needs = [
            {
                self._writer[a.group]
                for a in accessed(questions, s)
                if a.kind == "read" and self._writer.get(a.group, s) != s
            }
            for s in range(len(questions.submissions))
        ]
        """For each submission the producers whose elements it reads."""
        whose: dict[int, set[int]] = {p: set() for p in producers}
        for s in reversed(range(len(self._needs))):
            for p in self._needs[s]:
                whose[p] |= whose[s] if s in producers else {s}
        self._whose = {p: tuple(sorted(consumers)) for p, consumers in whose.items()}
        """For each producer the submissions that are none and in whose launches it is."""

    def dependences(self, found: Sequence[Sequence[PairScope]]) -> list[tuple[PairScope, ...]]:
        """The dependences of the list, of which ``found`` are those of all submissions, without the
        producers."""
        moved: list[list[PairScope]] = [[] for _ in found]
        for s, needed in enumerate(found):
            for d in needed:
                first, second = self._whose.get(d.producer), self._whose.get(s)
                if first is None and second is None:
                    moved[s].append(d)
                elif d.scope != "NONE" and not self._computed(d):
                    crossing = replace(d, scope="GLOBAL", items=None, reason=_COMPUTED_ANEW)
                    for a in first or (d.producer,):
                        for b in second or (s,):
                            if a < b:
                                moved[b].append(crossing.between(a, b))
        return [tuple(each) for each in moved]

    @property
    def consumers(self) -> frozenset[int]:
        """The submissions in whose launches producers are."""
        return frozenset().union(*self._whose.values())

    def explained(self, d: PairScope) -> PairScope:
        """A dependence with what becomes of it where producers are computed by tiles."""
        if d.scope == "NONE" or not self._computed(d):
            return d
        return replace(d, reason=f"{d.reason}; {_BY_ITSELF}")

    def kept(self) -> dict[int, PromotionDecision]:
        """The memory, by alias group, that producers touch and do not compute: it stays where it
        is, since they are in no stage whose work-items could have it."""
        questions = self._questions
        return {
            a.group: PromotionDecision(
                questions.buffer_name(p, a.argument), p, a.argument, "global",
                "work-groups that compute halos anew read it",
            )
            for p in self._producers
            for a in accessed(questions, p)
            if a.group not in self._writer
        }  # fmt: skip

    def _computed(self, d: PairScope) -> bool:
        """Whether a dependence is on elements that the consumer's work-group computes."""
        group = self._questions.place[d.consumer, d.consumer_argument].group
        return self._writer.get(group) == d.producer

    def of_stage(self, stage: Stage) -> tuple[int, ...]:
        """The producers that are part of a stage's launch, in order."""
        members = set(stage.members)
        return tuple(p for p in sorted(self._whose) if not members.isdisjoint(self._whose[p]))

    def unfit(self, stages: Sequence[Stage], moved: Sequence[Sequence[Moved]]) -> str | None:
        """Why some stage's launch cannot be by tiles; None if all can that have producers."""
        for p, consumers in self._whose.items():
            used = [n for n, s in enumerate(stages) if not set(s.members).isdisjoint(consumers)]
            if len(used) > 1:
                return (
                    f"launches {used[0]} and {used[1]} read what submission "
                    f"{self._questions.numbers[p]} writes, and each would compute it"
                )
        for stage, views in zip(stages, moved, strict=True):
            if producers := self.of_stage(stage):
                reason = self._unfit(stage, producers, views)
                if reason is not None:
                    return reason
        return None

    def _unfit(
        self, stage: Stage, producers: Sequence[int], moved: Sequence[Moved]
    ) -> str | None:
        submissions = self._questions.submissions
        if stage.space.mode != "ids":
            return "the work-items of its consumers meet by linear ids"
        if stage.crossing or any(view.scope == "local" for view in moved):
            return "its consumers exchange elements inside work-groups"
        if 0 in global_range(submissions[largest(submissions, stage.members)]):
            return "the range of its consumers is empty"
        for s in (*producers, *stage.members):
            if local_range(submissions[s]) is not None:
                return f"submission {self._questions.numbers[s]} has work-groups of its own"
        reasons = (impure(submissions[s].ir, atomics=True) for s in stage.members)
        return next((reason for reason in reasons if reason is not None), None)

    # ------------------------------------------------------------------------------ launches
    def launch(
        self, stage: Stage, moved: Sequence[Moved], kernels: StageKernels
    ) -> Steps[StagePlan | str]:
        """The launch of a stage with its producers; or why it is none."""
        submissions = self._questions.submissions
        producers = self.of_stage(stage)
        alone = [Stage((p,), space_of([submissions[p]]), None) for p in producers]
        fused = [*(kernels.fused(each, ()) for each in alone), kernels.fused(stage, moved)]
        yield "passes"
        members = (*producers, *stage.members)
        items = global_range(submissions[largest(submissions, stage.members)])
        streams = kernels.leaves_caches(self._bytes_per_item(members, len(items)), items)
        made = yield from in_steps(
            partial(
                self._questions.ask,
                members,
                (
                    "tiles of", len(producers), tuple(id(each.kernel) for each in fused),
                    self._headings(members), streams,
                ),
                lambda _: self._tiled(stage, producers, fused, streams),
            )
        )
        if isinstance(made, str):
            return made
        kernel, parts, group = made
        sources = {name: of_members(source, members) for name, source in kernel.sources.items()}
        absent = kernels.absent_of(members)
        return replace(
            kernels.plan(stage, FusedKernel(kernel.kernel, sources, {})),
            submissions=(*members, *absent),
            local_range=group,
            absent=absent,
            tiling=OverlappedTiling(
                parts[-1].items,
                tuple(
                    replace(part, submissions=tuple(members[s] for s in part.submissions))
                    for part in parts
                ),
            ),
        )

    def _bytes_per_item(self, members: Sequence[int], ndim: int) -> int:
        """Of elements in memory that a work-item of ``members`` has for itself, in ``ndim``
        dimensions."""
        arrays = {
            (group, view): self._array(s, k).dtype.nbytes
            for s in members
            for k, group, view, _ in self._questions.memory(s)
            if group not in self._writer and len(self._array(s, k).shape) >= ndim
        }
        return sum(arrays.values())

    def _tiled(
        self,
        stage: Stage,
        producers: Sequence[int],
        fused: Sequence[FusedKernel],
        streams: bool,
    ) -> tuple[FusedKernel, tuple[TiledPart, ...], tuple[int, ...]] | str:
        """The kernel of the launch, its parts, with the numbers of submissions among its members,
        and its work-groups."""
        questions, target = self._questions, self._target
        submissions = questions.submissions
        number = {s: n for n, s in enumerate((*producers, *stage.members))}
        members = [*((p,) for p in producers), stage.members]
        extents = tuple(global_range(submissions[largest(submissions, stage.members)]))
        split = is_split(extents, target)
        speedup: float | None = target.costs.interior_speedup
        if not _in_vectors(target):
            speedup = target.costs.whole_tile_speedup if split else None
        parts = [
            tiled_part(questions, each, own, extents, target, speedup, split)
            for each, own in zip(fused, members, strict=True)
        ]
        found = self._tile(stage, producers, parts, extents, _in_vectors(target))
        if isinstance(found, str):
            return found
        boxes = self._boxes(stage, producers, found.at_once)
        if found.window is not None and not (isinstance(boxes, _Boxes) and boxes.slide):
            found = self._tile(stage, producers, parts, extents, False)
            if isinstance(found, str):
                return found
            boxes = self._boxes(stage, producers, found.at_once)
        whole = self._boxes(stage, producers, found.tile)
        if isinstance(boxes, str) or isinstance(whole, str):
            return boxes if isinstance(boxes, str) else str(whole)
        many = split and found.window is None
        kernel = self._kernel(stage, producers, fused, boxes, found, streams, many)
        if kernel.kernel.small_sizes:
            kernel = of_small_sizes(kernel)
        taken = sum(a.nbytes for a in kernel.kernel.arrays if a.space == "local")
        if taken > target.device.local_memory_bytes:
            return _too_large(target)
        items = [*(whole.items[p].extents for p in producers), found.tile]
        sources = {name: of_members(source, number) for name, source in kernel.sources.items()}
        done = tuple(
            replace(p, items=n, submissions=tuple(number[s] for s in p.submissions))
            for p, n in zip(parts, items, strict=True)
        )
        return FusedKernel(kernel.kernel, sources, {}), done, found.group

    def _tile(
        self,
        stage: Stage,
        producers: Sequence[int],
        parts: Sequence[TiledPart],
        extents: tuple[int, ...],
        may_slide: bool,
    ) -> TileShape | str:
        """The tiles of a stage's work-items, and the work-groups that do them; or why there are
        none.  ``may_slide``: in sliding windows, too."""
        target = self._target
        groups = _work_groups(len(extents), target)
        found = []
        for scale in (1, 2):
            tile = (*(4 * scale for _ in extents[1:]), 4 * scale * groups[0][-1])
            boxes = self._boxes(stage, producers, tile)
            if isinstance(boxes, str):
                return boxes
            found.append((tile, boxes))
        (a, small), (b, large) = found
        items = [
            Growth((a, small.items[p].extents), (b, large.items[p].extents)) for p in producers
        ]
        costs = TileCosts(
            [
                (box, tile_seconds(part.work, part.operations, target))
                for box, part in zip([*items, None], parts, strict=True)
            ],
            [
                (
                    Growth((a, box.extents), (b, large.elements[at].extents)),
                    self._array(*at).dtype.nbytes,
                )
                for at, box in small.elements.items()
            ],
            [waiting_seconds(part.work, part.operations, target) for part in parts]
            if target.costs.chain_seconds
            else (),
            may_slide and len(extents) > 1 and small.slide and large.slide,
        )
        return best_tile(extents, costs, groups, target) or _too_large(target)

    def _boxes(
        self, stage: Stage, producers: Sequence[int], tile: tuple[int, ...]
    ) -> _Boxes | str:
        members = (*producers, *stage.members)
        own = {n: self._producers[p] for n, p in enumerate(producers)}
        consumers = range(len(producers), len(members))

        def answer(analysis: ListAnalysis) -> tuple[Boxes, Mapping[str, ParamSource]] | str:
            found = overlapped_boxes(analysis, tile, consumers, own)
            return found if isinstance(found, str) else (found, sources_of_symbols(analysis))

        question = ("overlapped tiles", tile, tuple(own.items()))
        found = self._questions.ask(members, question, answer)
        if isinstance(found, str):
            return found
        boxes, symbols = found
        return _Boxes(
            {producers[n]: box for n, box in boxes.items.items()},
            {(producers[n], k): box for (n, k), box in boxes.elements.items()},
            {name: of_members(source, members) for name, source in symbols.items()},
        )

    def _kernel(
        self,
        stage: Stage,
        producers: Sequence[int],
        fused: Sequence[FusedKernel],
        boxes: _Boxes,
        shape: TileShape,
        streams: bool,
        many: bool,
    ) -> FusedKernel:
        """The kernel of the launch; ``fused``: of each producer, and of the consumers together;
        ``streams``: it stores around the caches; ``many``: of its tiles, those inside of all bounds
        have code of their own."""
        questions = self._questions
        place = questions.place
        elements = {place[at].group: box for at, box in boxes.elements.items()}
        views: dict[int, set[int]] = {}
        parts: list[TilePart] = []
        since: set[int] = set()
        groups = [(p,) for p in producers] + [stage.members]
        members = (*producers, *stage.members)
        position = dict(zip(members, self._headings(members), strict=True))
        for own, kernel in zip(groups, fused, strict=True):
            local = {}
            for name, source in kernel.sources.items():
                if isinstance(source, ArgumentSource):
                    lies = place.get((source.submission, source.argument))
                    if lies is not None and lies.group in elements:
                        local[name] = lies.group, elements[lies.group]
                    elif lies is not None:
                        views.setdefault(lies.group, set()).add(lies.view)
            whole = largest(questions.submissions, own)
            extents = tuple(global_range(questions.submissions[whole]))
            needed = {p for s in own for p in self._needs[s]}
            waits = not needed.isdisjoint(since)
            since = set(own) if waits else since | set(own)
            items = boxes.items.get(own[0]) or tile_box(shape.at_once)
            headed = _headed(kernel, [position[s] for s in own], own, questions)
            parts.append(
                TilePart(
                    headed,
                    tuple(RangeSource(whole, d) for d in range(len(extents))),
                    items,
                    local,
                    boxes.symbols,
                    waits,
                    None if shape.window is None else advance_of(items),
                )
            )

        def is_alone(source: ParamSource) -> bool:
            assert isinstance(source, ArgumentSource)
            argument = self._array(source.submission, source.argument)
            lies = place[source.submission, source.argument]
            return len(views.get(lies.group, ())) == 1 and not overlaps_itself(argument)

        def type_of(source: ParamSource) -> ScalarType:
            if not isinstance(source, ArgumentSource):
                return INT64
            argument = questions.submissions[source.submission].arguments[source.argument]
            assert isinstance(argument, ScalarArgument)
            return INT64 if argument.type.weak else argument.type

        names = [questions.submissions[s].ir.name for s in position]
        name = f"tiles{len(names)}_{'_'.join(dict.fromkeys(names))[:48].rstrip('_')}"
        return overlapped_tiles(
            parts,
            name,
            shape.group,
            Identity(questions),
            is_alone,
            type_of,
            _in_vectors(self._target),
            self._target.cache_line_bytes,
            1 if shape.window is None else shape.tile[0] // shape.window,
            streams,
            many,
        )

    def _headings(self, members: Sequence[int]) -> tuple[int, ...]:
        """The number among those of a launch that each of its ``members`` has."""
        numbers = [self._questions.numbers[s] for s in members]
        position = {number: n for n, number in enumerate(dict.fromkeys(numbers))}
        return tuple(position[number] for number in numbers)

    def _array(self, s: int, k: int) -> ArrayArgument:
        argument = self._questions.submissions[s].arguments[k]
        assert isinstance(argument, ArrayArgument)
        return argument


def _headed(
    fused: FusedKernel, numbers: Sequence[int], members: Sequence[int], questions: Questions
) -> FusedKernel:
    """``fused`` with the ``numbers`` of its ``members`` in the launch in its headings."""

    def stmt(s: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(s, Block):
            return (s,)
        own = number_in(s.label) if len(members) > 1 else 0
        if own is None:
            return (s,)
        name = questions.submissions[members[own]].ir.name
        return (replace(s, label=label(numbers[own], name)),)

    body = rewrite_body(fused.kernel.body, stmt=stmt)
    return FusedKernel(replace(fused.kernel, body=body), fused.sources, fused.views)


def is_split(extents: tuple[int, ...], target: Target) -> bool:
    """Whether tiles of ``extents`` that are inside of all bounds have code of their own: where
    work-items are threads, and each of those that run at once does ``SPLIT_ITEMS`` or more."""
    if _in_vectors(target):
        return False
    return prod(extents) >= SPLIT_ITEMS * target.resident_workers * target.worker_size


def _in_vectors(target: Target) -> bool:
    """Whether a work-group's work-items are lanes of a vector."""
    return target.worker_size == target.sub_group_size


def _work_groups(ndim: int, target: Target) -> list[tuple[int, ...]]:
    """Work-groups for overlapped tiles, whose work-items stride over a tile's: a worker in a line;
    where that has several sub-groups, these beside each other along the dimension before the last,
    and larger groups, whose work-items wait at once."""
    sizes = [target.worker_size]
    if not _in_vectors(target):
        most = min(target.largest_tile_group, target.device.max_work_group_size)
        sizes += [size for k in (1, 2) if (size := target.worker_size << k) <= most]
    found = []
    for size in sizes:
        lanes = size if ndim == 1 else target.sub_group_size
        lines = () if ndim == 1 else (*(1 for _ in range(ndim - 2)), size // lanes)
        found.append((*lines, lanes))
    return found


def _too_large(target: Target) -> str:
    return (
        "the elements of no tile fit into the "
        f"{target.device.local_memory_bytes:,} bytes of local memory"
    )
