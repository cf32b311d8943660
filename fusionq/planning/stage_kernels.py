"""The kernels of a list's stages; stages that are alike have one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from fusionq.analysis.item_space import largest
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.questions import Questions
from fusionq.base.options import FusionOptions
from fusionq.base.target import DeviceInfo
from fusionq.ir.nodes import SMALL, Barrier, ScalarParam
from fusionq.passes.fuse import FusedKernel
from fusionq.passes.pipeline import fused_kernel
from fusionq.passes.sources import ExtentSource, ParamSource, RangeSource
from fusionq.passes.symbol_sources import of_members
from fusionq.planning.plan import StagePlan
from fusionq.planning.promotion import Moved
from fusionq.planning.small_sizes import demand_small_sizes
from fusionq.planning.stages import Stage, barriers_of


class StageKernels:
    """Makes them for a list by ``options``, for ``device``, with the values ``fixed`` for some
    scalar arguments (submission and position); ``absent``: submissions whose work others do, each
    with the first of those."""

    def __init__(
        self,
        questions: Questions,
        options: FusionOptions,
        device: DeviceInfo,
        fixed: Mapping[tuple[int, int], int],
        absent: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self._small = device.narrow_indices and demand_small_sizes(
            questions.submissions, questions.validity
        )
        self._questions = questions
        self._device = device
        self._absent = absent
        self._every_barrier = options.barriers == "all"
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
        views = tuple(
            ((position[m.place[0]], m.place[1]), m, tuple(position[s] for s in m.users))
            for m in moved
        )
        question = (
            "kernel",
            stage.space,
            barriers,
            tuple(constants.items()),
            tuple((place, m.scope, id(m.footprint), users) for place, m, users in views),
        )

        def answer(analysis: ListAnalysis) -> FusedKernel:
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
            return of_small_sizes(made) if self._small else made

        fused = self._questions.ask(members, question, answer)
        sources = {name: of_members(source, members) for name, source in fused.sources.items()}
        return FusedKernel(fused.kernel, sources, fused.views)

    def absent_of(self, members: Sequence[int]) -> tuple[int, ...]:
        """The submissions whose work ``members`` are the first to do."""
        return tuple(s for s, first in self._absent.items() if first in members)

    def plan(self, stage: Stage, fused: FusedKernel) -> StagePlan:
        """The launch of a stage, whose kernel is ``fused``."""
        absent = self.absent_of(stage.members)
        return StagePlan(
            submissions=(*stage.members, *absent),
            kernel=fused.kernel,
            sources=tuple(fused.sources[p.name] for p in fused.kernel.params),
            geometry=largest(self._questions.submissions, stage.members),
            mode=stage.space.mode,
            local_range=stage.space.local_range,
            boundary=stage.boundary,
            absent=absent,
        )


def _source(symbols: Mapping[str, ParamSource], users: Sequence[int], symbol: str) -> ParamSource:
    return of_members(symbols[symbol], users)


def of_small_sizes(fused: FusedKernel) -> FusedKernel:
    """``fused``, which runs for small sizes only."""
    params = tuple(
        replace(param, bounds=(1, SMALL))
        if isinstance(param, ScalarParam)
        and isinstance(fused.sources[param.name], ExtentSource | RangeSource)
        else param
        for param in fused.kernel.params
    )
    kernel = replace(fused.kernel, params=params, small_sizes=True)
    return FusedKernel(kernel, fused.sources, fused.views)
