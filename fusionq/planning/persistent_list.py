"""A list whose stages are persistent kernels, as far as they can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.isl_operations import in_steps
from fusionq.analysis.item_space import global_range
from fusionq.analysis.questions import Questions
from fusionq.base.options import FusionOptions
from fusionq.base.steps import Steps
from fusionq.base.target import Target
from fusionq.planning.build_bound import BuildBound
from fusionq.planning.layout import layout_of
from fusionq.planning.persistent import Unproved, fitting, persistent_stage, segments
from fusionq.planning.plan import StagePlan
from fusionq.planning.promotion import Promotions
from fusionq.planning.stage_kernels import StageKernels

NOT_WANTED = "launches are faster, or sooner built"
"""Why there is no persistent kernel that nobody wanted to be proved."""

_TILES_WAIT = "a persistent kernel has no work-groups, its tiles wait for each other"


def persistent_list(
    questions: Questions,
    dependences: Sequence[Sequence[PairScope]],
    options: FusionOptions,
    target: Target,
    kernels: StageKernels,
    bound: BuildBound | None,
    measured: Callable[[], Target],
    is_wanted: Callable[[Sequence[StagePlan]], bool],
) -> Steps[tuple[tuple[PairScope, ...], Promotions, tuple[StagePlan, ...]] | str]:
    """The list with persistent kernels where stages follow each other that can be part of one;
    or why there is none.  No work-group barriers between submissions but where they have explicit
    work-groups, which workers do as a whole: tiles wait instead.  Whether all tiles wait for what
    they depend on is proved of launches that are wanted only."""
    if not target.device.persistent_kernels:
        return f"the backend of {target.device.filter_string} compiles no persistent kernels"
    empty = [s for s, x in enumerate(questions.submissions) if global_range(x).size == 0]
    if empty:
        return f"the range of submission {empty[0]} is empty"
    for own_groups in (options.barriers == "auto", False):
        found, layout = yield from layout_of(
            questions, dependences, options, target, _TILES_WAIT, measured,
            in_waves=True, own_groups=own_groups,
        )  # fmt: skip
        fits = yield from fitting(questions, layout, options, target, kernels)
        if not any(
            reason is not None and stage.crossing
            for reason, stage in zip(fits.reasons, layout.stages, strict=True)
        ):
            break
    reasons = fits.reasons
    why: str | None = None
    runs: list[tuple[range, Unproved | None]] = []
    for run in segments(reasons):
        made: Unproved | str | None = reasons[run[0]]
        if len(run) > 1:
            made = yield from persistent_stage(
                questions, dependences, layout, run, kernels, fits.functions, target, bound
            )
        if isinstance(made, Unproved):
            runs.append((run, made))
        else:
            runs.append((run, None))
            why = why or made
    if all(made is None for _, made in runs):
        return why or "no two stages follow each other that could be part of one persistent kernel"
    unproved = [(run, None if made is None else made.launch) for run, made in runs]
    plans = yield from _launches(kernels, layout, unproved)
    if not is_wanted(plans):
        return NOT_WANTED
    proved: list[tuple[range, StagePlan | None]] = []
    for run, candidate in runs:
        launch = None if candidate is None else (yield from candidate.prove())
        if isinstance(launch, str):
            why, launch = why or launch, None
        proved.append((run, launch))
    if all(launch is None for _, launch in proved):
        assert why is not None
        return why
    if any(a is not b for (_, a), (_, b) in zip(unproved, proved, strict=True)):
        plans = yield from _launches(kernels, layout, proved)
        if not is_wanted(plans):
            return NOT_WANTED
    return found, layout, plans


def _launches(
    kernels: StageKernels,
    layout: Promotions,
    runs: Sequence[tuple[range, StagePlan | None]],
) -> Steps[tuple[StagePlan, ...]]:
    """The launches of ``runs`` of the stages of ``layout``: one for each, or for each stage where
    there is none."""
    plans: list[StagePlan] = []
    for run, launch in runs:
        if launch is not None:
            plans.append(launch)
            continue
        for k in run:
            stage = layout.stages[k]
            fused = yield from in_steps(partial(kernels.fused, stage, layout.moved[k]))
            plans.append(kernels.plan(stage, fused))
            yield "passes"
    return tuple(plans)
