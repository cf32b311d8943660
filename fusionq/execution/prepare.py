"""From a list of submissions to launches: plan, build, bind."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fusionq.backends.base import Backend
from fusionq.base.config import adapts, always_checked, debug_level
from fusionq.base.options import FusionOptions
from fusionq.base.phases import timed
from fusionq.base.recursion import room_for_recursion
from fusionq.cache.plan_cache import BuiltPlan
from fusionq.execution.binding import bind
from fusionq.execution.compile import built_plan
from fusionq.execution.reporting import report_of
from fusionq.planning.plan import Plan
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun

if TYPE_CHECKING:
    from fusionq.report.report import Report


@room_for_recursion("a kernel of the list")
def prepare(backend: Backend, pending: SubmissionList, options: FusionOptions) -> PreparedRun:
    """Plan, build and prepare a list, as far as the caches do not have it.

    Raises FusionRefused, PromotionConflict and ArgumentError from planning, PlanningStopped where
    that takes longer than the list may wait for it, DeviceError where a kernel cannot be built or
    memory not be had or reached.
    """
    if options.check or always_checked():
        from fusionq.execution.checked import CheckedRun

        return CheckedRun(backend, pending, options)
    submissions = pending.submissions()
    timings = dict(pending.admission)
    wanted = adapts() if options.adapt is None else options.adapt
    if wanted and options.strategy == "auto" and not options.tune and len(submissions) > 1:
        from fusionq.execution.adaptive import adaptive_list

        adaptive = adaptive_list(backend, submissions, options)
        if adaptive is not None:
            return _shown(adaptive.next_run(pending, timings))
    if options.tune:
        from fusionq.execution.autotune import tuned_plan

        built, cache = tuned_plan(backend, pending, options, timings)
    else:
        built, cache = built_plan(backend, submissions, options, timings)
    run = PreparedRun(built, submissions, cache, timings)
    with timed(timings, "prepare"):
        bind(backend, run, pending)
    return _shown(run)


def _shown(run: PreparedRun) -> PreparedRun:
    """``run``, with what ``FUSIONQ_DEBUG`` asks for of a new plan: the report of a list; device
    sources."""
    if run.cache != "memory" and debug_level() >= 1:
        _show(report_of(run, run.cache, run.timings))
    return run


def _show(report: Report) -> None:
    if len(report.submissions) > 1:
        print(report, file=sys.stderr)
    if debug_level() >= 4:
        print(f"--- device source\n{report.device_source}", file=sys.stderr)


def empty_run() -> PreparedRun:
    """What a fusion without submissions becomes."""
    from fusionq.analysis.validity import Validity

    plan = Plan("unfused", (), (), (), "nothing was submitted", Validity((), (), ()), {})
    return PreparedRun(BuiltPlan(plan, ()), (), "memory", {})
