"""A list's plan with persistent kernels, where they are asked for or faster by the model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.isl_operations import PlanTooHard
from fusionq.analysis.questions import Questions
from fusionq.base.steps import Steps
from fusionq.planning.fallbacks import unjoined
from fusionq.planning.list_work import has_inside
from fusionq.planning.persistent_choice import PersistentChoice
from fusionq.planning.persistent_list import NOT_WANTED, persistent_list
from fusionq.planning.plan_task import Draft, PlanTask
from fusionq.planning.promotion import Promotions
from fusionq.planning.stage_kernels import StageKernels


def with_persistent_kernels(
    task: PlanTask,
    questions: Questions,
    dependences: Sequence[Sequence[PairScope]],
    kernels: StageKernels,
    draft: Draft,
) -> Steps[None]:
    """Let ``draft``, of several launches, be one with persistent kernels; where there are none, it
    says why."""
    asked = task.asks_for("megakernel")
    choice = PersistentChoice(
        questions, draft.layout.stages, task.target, task.measured, task.bound, asked,
        partial(_are_along_rows, kernels, draft.layout),
    )  # fmt: skip
    try:
        made = yield from persistent_list(
            questions, dependences, task.options, task.target, kernels, task.bound, task.costs,
            choice.wants,
        )  # fmt: skip
    except PlanTooHard as error:
        made = str(error)
    if not isinstance(made, str):
        draft.found, draft.layout, draft.plans = made
        draft.strategy, draft.fallback = "megakernel", unjoined(draft.plans)
        draft.estimates = choice.estimates
    elif asked:
        draft.fallback = made
    if not isinstance(made, str) or made == NOT_WANTED:
        draft.choice = choice.text


def _are_along_rows(kernels: StageKernels, layout: Promotions, members: tuple[int, ...]) -> bool:
    """Whether ``members``, if that is one submission with a launch of its own, are launched with
    code for the inside of rows."""
    if len(members) > 1:
        return False
    for stage, moved in zip(layout.stages, layout.moved, strict=True):
        if stage.members == members:
            return has_inside(kernels.plan(stage, kernels.fused(stage, moved)).kernel)
    return False
