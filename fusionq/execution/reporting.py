"""The reports of lists that have run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fusionq.base.options import UNFUSED
from fusionq.memory.fusing_queues import LOCK
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun

REPORT_SECONDS = 5.0
"""Of processor time, for the analysis of a list that has run unfused."""

if TYPE_CHECKING:
    from fusionq.report.model import CacheOutcome
    from fusionq.report.report import Report


def report_for(ended: SubmissionList) -> Report:
    """What became of a list that has ended."""
    if ended.run is not None:
        report = report_of(ended.run, ended.cache, ended.timings)
    else:
        with LOCK:
            report = _report_of_unfused(ended)
    return replace(report, left_out=tuple(ended.left_out)) if ended.left_out else report


def report_of(run: PreparedRun, cache: CacheOutcome, timings: Mapping[str, float]) -> Report:
    """The report of one time that ``run`` was launched."""
    from fusionq.report.report import Report

    plan = run.built.plan.named_for(run.submissions)
    if run.adaptive is not None:
        plan = replace(plan, choice=run.adaptive.text(run))
    sources = tuple(program.source for program in run.built.programs)
    return Report(plan, run.submissions, sources, cache, dict(timings), tuple(run.schedules))


def _report_of_unfused(ended: SubmissionList) -> Report:
    """The report of a list whose submissions ran one by one; the analysis is made now."""
    from fusionq.planning import planner
    from fusionq.report.report import Report

    assert ended.owner is not None
    submissions = ended.submissions()
    plan = planner.make_plan(
        submissions, UNFUSED, ended.owner.target, seconds=REPORT_SECONDS
    )
    stages = tuple(
        stage if stage.boundary is None else replace(stage, boundary=ended.fallback)
        for stage in plan.stages
    )
    plan = replace(plan, stages=stages, fallback=ended.fallback, timings={})
    plan = plan.named_for(submissions)
    plain = [entry.plain for entry in ended.entries if entry.plain is not None]
    sources = tuple(program.source for run in plain for program in run.built.programs)
    return Report(plan, submissions, sources, "memory", {})
