"""What the launches of a plan take, by the cost model."""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.analysis.questions import Questions
from fusionq.analysis.submission import Submission
from fusionq.base.target import Target
from fusionq.planning.cost import estimate, launches_seconds
from fusionq.planning.list_work import launches_work, list_work
from fusionq.planning.plan import Plan


def predicted_seconds(submissions: Sequence[Submission], plan: Plan, target: Target) -> float:
    """The seconds that ``plan``, which serves ``submissions``, takes on ``target``."""
    questions = Questions(submissions, ())
    launches = [stage for stage in plan.stages if not stage.inner]
    seconds = 0.0
    if launches:
        seconds = launches_seconds(*launches_work(questions, launches, target), target)
    for stage in plan.stages:
        if stage.inner:
            work = list_work(questions, stage, [stage.submissions], target)
            seconds += estimate(work, target).persistent
    return seconds
