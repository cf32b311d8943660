"""The kernels of a list's stages; stages that are alike have one."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from fusionq.analysis.isl_operations import count_operations
from fusionq.analysis.item_space import Mode, global_range, largest, whole_range
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.questions import Questions
from fusionq.analysis.stored_by_one import is_stored_by_one
from fusionq.analysis.submission import ArrayArgument
from fusionq.base.options import FusionOptions
from fusionq.base.target import Target
from fusionq.codegen.early_loads import arrays_loaded_early, has_rows_of_groups
from fusionq.codegen.kept_loops import kept_loops
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.nodes import SMALL, ArrayParam, Barrier, Kernel, KernelParam, ScalarParam
from fusionq.ir.verifier import verify
from fusionq.ir.walk import written_arrays
from fusionq.language.ranges import Range
from fusionq.passes.fuse import FusedKernel, array_facts
from fusionq.passes.pipeline import fused_kernel
from fusionq.passes.side_by_side import SidePart, put_kernels_side_by_side
from fusionq.passes.sources import ArgumentSource, ExtentSource, ParamSource, RangeSource
from fusionq.passes.symbol_sources import of_members
from fusionq.planning.padded_launches import with_padding
from fusionq.planning.pinned_constants import PinnedConstants
from fusionq.planning.plan import SidePlan, StagePlan
from fusionq.planning.promotion import Moved
from fusionq.planning.segmented_launches import SegmentedLaunches
from fusionq.planning.small_sizes import demand_small_divisors, demand_small_sizes
from fusionq.planning.split_launches import SplitLaunches
from fusionq.planning.stages import Stage, barriers_of
from fusionq.planning.streamed_launches import StreamedLaunches

KERNEL_MADE = 2_500
"""Operations as which a submission counts that becomes a part of a kernel."""


class StageKernels:
    """Makes them for a list by ``options``, for ``target``, with the values ``fixed`` for some
    scalar arguments (submission and position); ``absent``: submissions whose work others do, each
    with the first of those."""

    def __init__(
        self,
        questions: Questions,
        options: FusionOptions,
        target: Target,
        fixed: Mapping[tuple[int, int], int],
        absent: Mapping[int, int] = MappingProxyType({}),
        pinned: PinnedConstants | None = None,
    ) -> None:
        device = target.device
        self._small = device.narrow_indices and demand_small_sizes(
            questions.submissions, questions.validity
        )
        self._divisors = (
            demand_small_divisors(questions.submissions, questions.validity)
            if self._small
            else frozenset()
        )
        self._questions = questions
        self._device = device
        self._target = target
        self._streamed = StreamedLaunches(questions.submissions, target, questions.validity)
        self._split = SplitLaunches(questions.submissions, target, questions.validity)
        self._segmented = SegmentedLaunches(questions.submissions, target, questions.validity)
        self._absent = absent
        self._pinned = pinned
        self._written: set[int] | None = None
        """The groups of memory that the list writes."""
        self._every_barrier = options.barriers == "all"
        self._beside: dict[Kernel, Kernel] = {}
        """The kernels of stages side by side, so that launches that are alike have one."""
        self._fixed: dict[int, dict[int, int]] = {}
        for (s, k), value in fixed.items():
            self._fixed.setdefault(s, {})[k] = value

    def fused(self, stage: Stage, moved: Sequence[Moved]) -> FusedKernel:
        """The submissions of a stage as one kernel, with the views ``moved`` out of global
        memory.  The same object for stages that are alike, but for its sources."""
        members = stage.members
        position = {s: k for k, s in enumerate(members)}
        before = members[1:] if self._every_barrier else barriers_of(stage)
        barriers = tuple(position[s] for s in before)
        constants = {
            (number, k): value
            for number, s in enumerate(members)
            for k, value in self._fixed.get(s, {}).items()
        }
        if self._pinned is not None:
            found = self._pinned.of(members)
            constants |= {(position[s], k): value for (s, k), value in found.items()}
        views = tuple(
            ((position[m.place[0]], m.place[1]), m, tuple(position[s] for s in m.users))
            for m in moved
        )
        unwritten = self._unwritten(members)
        submissions = self._questions.submissions
        arrays = tuple(
            array_facts(argument)
            for s in members
            for argument in submissions[s].arguments
            if isinstance(argument, ArrayArgument)
        )
        divisors = frozenset(
            (number, k)
            for number, s in enumerate(members)
            for k in range(len(submissions[s].arguments))
            if (s, k) in self._divisors
        )
        question = (
            "kernel",
            divisors,
            arrays,
            unwritten,
            stage.space,
            barriers,
            tuple(constants.items()),
            tuple((place, m.scope, id(m.footprint), users) for place, m, users in views),
        )

        def answer(analysis: ListAnalysis) -> FusedKernel:
            count_operations(KERNEL_MADE * len(members))
            promoted = {}
            for place, m, users in views:
                lies = analysis.place[place]
                source = partial(_source, m.symbols, users)
                promoted[lies.group, lies.view] = m.scope, m.footprint, source
            made = fused_kernel(
                analysis,
                range(len(members)),
                stage.space,
                dict.fromkeys(barriers, Barrier()),
                promoted,
                constants,
                self._device,
            )
            made = with_unwritten(made, unwritten)
            if self._device.loads_together and stage.space.local_range is not None:
                made = with_stored_by_one(made, analysis, stage.space.mode)
            return of_small_sizes(made, divisors) if self._small else made

        # Of one submission's sizes its kernel has which are equal, and what arrays it is given.
        of_sizes = len(members) > 1 or stage.space.local_range is not None or bool(views)
        fused = self._questions.ask(members, question, answer, other_sizes=not of_sizes)
        sources = {name: of_members(source, members) for name, source in fused.sources.items()}
        return FusedKernel(fused.kernel, sources, fused.views)

    def _unwritten(self, members: Sequence[int]) -> frozenset[tuple[int, int]]:
        """The arrays that no submission writes, where code generation may ask for them: the place
        among the members, and the argument's."""
        questions = self._questions
        kernels = [questions.submissions[s].ir for s in members]
        if self._device.kind != "gpu" or not any(map(has_rows_of_groups, kernels)):
            return frozenset()
        if self._written is None:
            self._written = {
                questions.place[s, k].group
                for s, submission in enumerate(questions.submissions)
                for stored in (written_arrays(submission.ir),)
                for k, argument in enumerate(submission.arguments)
                if isinstance(argument, ArrayArgument) and argument.name in stored
            }
        return frozenset(
            (number, k)
            for number, s in enumerate(members)
            for k, argument in enumerate(questions.submissions[s].arguments)
            if isinstance(argument, ArrayArgument)
            and questions.place[s, k].group not in self._written
        )

    def leaves_caches(self, bytes_per_item: int, items: Range) -> bool:
        """As ``StreamedLaunches.leaves_caches``."""
        return self._streamed.leaves_caches(bytes_per_item, items)

    def absent_of(self, members: Sequence[int]) -> tuple[int, ...]:
        """The submissions whose work ``members`` are the first to do."""
        return tuple(s for s, first in self._absent.items() if first in members)

    def plan(self, stage: Stage, fused: FusedKernel) -> StagePlan:
        """The launch of a stage, whose kernel is ``fused``."""
        absent = self.absent_of(stage.members)
        submissions = self._questions.submissions
        items = whole_range(submissions, stage.members, stage.space.mode)
        kernel, guards = fused.kernel, None
        if stage.space.local_range is None:
            cut = self._segmented.launched(kernel, fused.sources, items)
            if cut is not None:
                kernel, guards = cut.kernel, cut.guards
            else:
                kernel, guards = self._split.launched(kernel, fused.sources, items)
        if kernel.row_lanes is None:
            kernel = self._streamed.kernel(kernel, fused.sources, items)
        kernel = with_padding(kernel, stage.space.local_range, self._target)
        return StagePlan(
            submissions=(*stage.members, *absent),
            kernel=kernel,
            sources=tuple(fused.sources[p.name] for p in fused.kernel.params),
            geometry=largest(submissions, stage.members),
            mode=stage.space.mode,
            local_range=stage.space.local_range,
            boundary=stage.boundary,
            absent=absent,
            guards=guards,
        )

    def side_by_side(self, stages: Sequence[tuple[Stage, FusedKernel]]) -> StagePlan:
        """The launch of stages, each with its kernel, that run side by side."""
        questions, parts, beside = self._questions, [], []
        for stage, fused in stages:
            geometry = largest(questions.submissions, stage.members)
            extent = global_range(questions.submissions[geometry])[0]
            names = tuple(questions.submissions[s].ir.name for s in stage.members)
            parts.append(SidePart(fused, names, geometry, extent))
            beside.append(SidePlan(stage.members, geometry))
        first = stages[0][0]
        local = first.space.local_range
        fused = put_kernels_side_by_side(parts, local, self._view)
        fused = of_small_sizes(fused) if self._small else fused
        verify(fused.kernel)
        kernel = self._beside.setdefault(fused.kernel, fused.kernel)
        return StagePlan(
            submissions=tuple(s for stage, _ in stages for s in stage.members),
            kernel=kernel,
            sources=tuple(fused.sources[p.name] for p in kernel.params),
            geometry=max(parts, key=lambda part: part.extent).geometry,
            local_range=local,
            boundary=first.boundary,
            beside=tuple(beside),
        )

    def _view(self, source: ParamSource) -> Hashable:
        """What is equal of arguments that are one and the same view."""
        if not isinstance(source, ArgumentSource):
            return source
        lies = self._questions.place[source.submission, source.argument]
        return lies.group, lies.view


def _source(symbols: Mapping[str, ParamSource], users: Sequence[int], symbol: str) -> ParamSource:
    return of_members(symbols[symbol], users)


def with_unwritten(fused: FusedKernel, places: Collection[tuple[int, int]]) -> FusedKernel:
    """``fused``, of whose list no submission writes the arguments at ``places``."""
    early = arrays_loaded_early(fused.kernel) if places else ()
    if not early:
        return fused

    def marked(param: KernelParam) -> KernelParam:
        source = fused.sources[param.name]
        if not isinstance(source, ArgumentSource) or param.name not in early:
            return param
        assert isinstance(param, ArrayParam)
        return replace(param, unwritten=(source.submission, source.argument) in places)

    kernel = replace(fused.kernel, params=tuple(map(marked, fused.kernel.params)))
    return FusedKernel(kernel, fused.sources, fused.views)


def with_stored_by_one(fused: FusedKernel, analysis: ListAnalysis, mode: Mode) -> FusedKernel:
    """``fused`` with what is known of who stores to rows that several of its loops go through."""
    every = tuple(
        replace(p, stored_by_one=True) if isinstance(p, ArrayParam) else p
        for p in fused.kernel.params
    )
    found = kept_loops(replace(fused.kernel, params=every), flatten_blocks(fused.kernel.body))
    stored = set() if found is None else {row.array for row in found.rows if row.storing}

    def marked(param: KernelParam) -> KernelParam:
        source = fused.sources[param.name]
        if not isinstance(param, ArrayParam) or param.name not in stored:
            return param
        assert isinstance(source, ArgumentSource)
        group = analysis.place[source.submission, source.argument].group
        return replace(param, stored_by_one=is_stored_by_one(analysis, group, mode))

    if not stored:
        return fused
    kernel = replace(fused.kernel, params=tuple(map(marked, fused.kernel.params)))
    return FusedKernel(kernel, fused.sources, fused.views)


def of_small_sizes(
    fused: FusedKernel, divisors: Collection[tuple[int, int]] = ()
) -> FusedKernel:
    """``fused``, which runs for small sizes only, and with small positive values of its scalar
    arguments ``divisors`` (submission and position)."""

    def is_small(source: ParamSource) -> bool:
        if isinstance(source, ArgumentSource):
            return (source.submission, source.argument) in divisors
        return isinstance(source, ExtentSource | RangeSource)

    params = tuple(
        replace(param, bounds=(1, SMALL))
        if isinstance(param, ScalarParam) and is_small(fused.sources[param.name])
        else param
        for param in fused.kernel.params
    )
    kernel = replace(fused.kernel, params=params, small_sizes=True)
    return FusedKernel(kernel, fused.sources, fused.views)
