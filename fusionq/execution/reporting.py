"""The reports of lists that have run."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fusionq.base.options import UNFUSED
from fusionq.memory.fusing_queues import LOCK
from fusionq.planning.plan import empty_plan
from fusionq.planning.structure import structure_key
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun

REPORT_SECONDS = 5.0
"""Of processor time, for the analysis of a list that has run unfused."""

ANALYSED = 64
"""Structures of lists whose analyses are kept: who asks each of a loop's lists for its report waits
for one of them."""

if TYPE_CHECKING:
    from fusionq.analysis.submission import Submission
    from fusionq.base.target import Target
    from fusionq.planning.plan import Plan
    from fusionq.report.model import CacheOutcome
    from fusionq.report.report import Report


def report_for(ended: SubmissionList) -> Report:
    """What became of a list that has ended."""
    if ended.run is not None:
        assert ended.owner is not None
        report = report_of(ended.run, ended.cache, ended.timings, ended.owner.target)
    else:
        with LOCK:
            report = _report_of_unfused(ended)
    return replace(report, left_out=tuple(ended.left_out)) if ended.left_out else report


def report_of(
    run: PreparedRun, cache: CacheOutcome, timings: Mapping[str, float], target: Target
) -> Report:
    """The report of one time that ``run`` was launched on ``target``."""
    from fusionq.report.report import Report

    plan = run.built.plan
    if plan.strategy == "unfused" and not plan.dependences and len(run.submissions) > 1:
        with LOCK:  # launches one by one are planned without
            found = _analysed(run.submissions, target)
        plan = replace(plan, dependences=found.dependences)
    plan = plan.named_for(run.submissions)
    if run.adaptive is not None:
        plan = replace(plan, choice=run.adaptive.text(run))
    sources = tuple(program.source for program in run.built.programs)
    return Report(plan, run.submissions, sources, cache, dict(timings), tuple(run.schedules))


def _report_of_unfused(ended: SubmissionList) -> Report:
    """The report of a list whose submissions ran one by one; the analysis is made now, for the
    first of its structure."""
    from fusionq.report.report import Report

    assert ended.owner is not None
    submissions = ended.submissions()
    plan = _analysed(submissions, ended.owner.target) if submissions else empty_plan()
    stages = tuple(
        stage if stage.boundary is None else replace(stage, boundary=ended.fallback)
        for stage in plan.stages
    )
    plan = replace(plan, stages=stages, fallback=ended.fallback, timings={})
    plan = plan.named_for(submissions)
    plain = [entry.plain for entry in ended.entries if entry.plain is not None]
    sources = tuple(program.source for run in plain for program in run.built.programs)
    return Report(plan, submissions, sources, "miss", dict(ended.timings))


_analysed_before: OrderedDict[Hashable, list[Plan]] = OrderedDict()


def _analysed(submissions: tuple[Submission, ...], target: Target) -> Plan:
    """The plan of a list that runs unfused, for what its report tells of dependences."""
    from fusionq.cache.entries import functions_of
    from fusionq.planning import planner

    key = structure_key(submissions, UNFUSED), target, functions_of(submissions)
    plans = _analysed_before.setdefault(key, [])
    _analysed_before.move_to_end(key)
    if len(_analysed_before) > ANALYSED:
        _analysed_before.popitem(last=False)
    for plan in plans:
        if plan.validity.holds(submissions):
            return plan
    plan = planner.make_plan(submissions, UNFUSED, target, tuple(plans), seconds=REPORT_SECONDS)
    plans.insert(0, plan)
    del plans[ANALYSED:]
    return plan
