"""The layout of a list: its stages, and what is promoted in each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.isl_operations import in_steps
from fusionq.analysis.questions import Questions
from fusionq.base.options import FusionOptions
from fusionq.base.steps import Steps
from fusionq.base.target import Target
from fusionq.planning.build_bound import BuildBound, Builds
from fusionq.planning.plan import UNFUSED_ASKED, PromotionDecision, StagePlan
from fusionq.planning.profitability import wanted_by
from fusionq.planning.promotion import Promotions, promotions
from fusionq.planning.side_by_side import (
    in_parts,
    in_wave_parts,
    launches_of_stages,
    put_side_by_side,
)
from fusionq.planning.stage_kernels import StageKernels
from fusionq.planning.stages import SplitOptions, Stage, apart, group_scopes, split

NOTHING_DECIDED: Mapping[int, PromotionDecision] = MappingProxyType({})


def layout_of(
    questions: Questions,
    dependences: Sequence[Sequence[PairScope]],
    options: FusionOptions,
    target: Target,
    barrierless: str | None,
    measured: Callable[[], Target],
    beside: bool = False,
    in_waves: bool = False,
    own_groups: bool = False,
) -> Steps[tuple[tuple[PairScope, ...], Promotions]]:
    """The list cut into stages, with what is promoted in each; the dependences with the scopes that
    this gives them.  ``measured`` gives ``target`` with measured costs.  ``beside``: whether stages
    may run side by side; ``in_waves``: whether they are those of persistent kernels;
    ``own_groups``: as of ``SplitOptions``."""
    if options.strategy == "unfused":
        stages = apart(questions, UNFUSED_ASKED)
    else:
        wanted = wanted_by(options)
        split_options = SplitOptions(
            barrierless, wanted, target, measured, own_groups=own_groups, hulls=not in_waves
        )
        stages = yield from split(questions, dependences, split_options)
    beside &= options.strategy != "unfused"
    if beside:
        stages = in_parts(questions, dependences, stages, options, target)
    if in_waves:
        stages = in_wave_parts(questions, dependences, stages, options, target)
    found, layout = yield from promoted(questions, dependences, stages, options, target)
    if beside and len(layout.stages) > 1:
        wanted = wanted_by(options)
        layout = put_side_by_side(questions, dependences, layout, target, measured, wanted)
    return found, layout


def promoted(
    questions: Questions,
    dependences: Sequence[Sequence[PairScope]],
    stages: Sequence[Stage],
    options: FusionOptions,
    target: Target,
    decided: Mapping[int, PromotionDecision] = NOTHING_DECIDED,
) -> Steps[tuple[tuple[PairScope, ...], Promotions]]:
    """The scopes of the dependences between ``stages``, and what is promoted in each; what is
    ``decided``, by alias group, stays so."""
    in_order = sorted(chain.from_iterable(dependences), key=lambda d: (d.producer, d.consumer))
    found = group_scopes(in_order, stages)
    layout = yield from promotions(questions, stages, options, target, decided)
    return found, layout


def launches_of(
    kernels: StageKernels, layout: Promotions, bound: BuildBound | None
) -> Steps[tuple[StagePlan, ...] | str]:
    """The launches, of a stage each or of several side by side; where some join submissions, and
    their kernels would take longer to build than the ``bound``, why there are none, as soon as that
    is known."""
    joined = any(len(stage.members) > 1 or stage.beside for stage in layout.stages)
    builds = Builds(bound) if bound is not None and joined else None
    plans = []
    for numbers in launches_of_stages(layout.stages):
        made = []
        for number in numbers:
            stage = layout.stages[number]
            fused = yield from in_steps(partial(kernels.fused, stage, layout.moved[number]))
            made.append((stage, fused))
        plans.append(kernels.plan(*made[0]) if len(made) == 1 else kernels.side_by_side(made))
        slow = None if builds is None else builds.exceeded_with(plans[-1].kernel)
        if slow is not None:
            return slow
        yield "passes"
    return tuple(plans)


def all_launches(kernels: StageKernels, layout: Promotions) -> Steps[tuple[StagePlan, ...]]:
    """A launch for each stage, whatever they take to build."""
    plans = yield from launches_of(kernels, layout, None)
    assert not isinstance(plans, str)
    return plans
