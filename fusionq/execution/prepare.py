"""From a list of submissions to launches: plan, build, bind."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fusionq.backends.base import Backend
from fusionq.base.config import adapts, always_checked, debug_level
from fusionq.base.options import FusionOptions
from fusionq.base.phases import timed
from fusionq.base.recursion import room_for_recursion
from fusionq.base.target import FloatMode, Target
from fusionq.cache.plan_cache import BuiltPlan
from fusionq.execution.binding import bind
from fusionq.execution.compile import (
    built_plan,
    known_plan,
    plans_key,
    plans_key_by_memory,
)
from fusionq.execution.reporting import report_of
from fusionq.execution.resized_runs import ResizedRuns
from fusionq.planning.plan import empty_plan
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun

if TYPE_CHECKING:
    from fusionq.report.model import CacheOutcome
    from fusionq.report.report import Report


def prepare(
    backend: Backend,
    pending: SubmissionList,
    options: FusionOptions,
    memories: tuple[int, ...] | None = None,
    resized: ResizedRuns | None = None,
) -> PreparedRun:
    """Plan, build and prepare a list, as far as the caches do not have it; ``memories``: the
    numbers of the arrays' memories, where these do not overlap; ``resized``: those of the queue.

    Raises FusionRefused, PromotionConflict and ArgumentError from planning, PlanningStopped where
    that takes longer than the list may wait for it, DeviceError where a kernel cannot be built or
    memory not be allocated or reached.
    """
    key = None
    if memories is not None and not (options.check or options.tune):
        key = plans_key_by_memory(backend, pending.operands(), memories, options)
    if key is None or not backend.abilities.resizes:
        resized = None
    is_checked = bool(options.check or always_checked())
    is_adaptive = options.strategy == "auto" and not options.tune and len(pending.entries) > 1
    is_adaptive = is_adaptive and _learns(backend, options)
    if memories is not None and not (is_checked or options.tune):
        operands = pending.operands()
        built = None if key is None or is_adaptive else known_plan(key, operands)
        if built is not None:
            admission = dict(pending.admission)
            run = _bound(backend, pending, built, "memory", admission, options.fp)
            if resized is not None:
                resized.keep(pending, options, run)
            return run
    timings = dict(pending.admission)
    if is_adaptive and not is_checked:
        from fusionq.execution.adaptive import adaptive_list

        if key is None:
            key = plans_key(backend, pending.submissions(), options)
        before = None if resized is None else resized.chooser(pending, options)
        adaptive = adaptive_list(backend, pending, key, options, timings, before)
        if adaptive is not None:
            run = _shown(adaptive.next_run(pending, timings), backend.target)
            if resized is not None:
                resized.keep(pending, options, run, adaptive)
            return run
    return _planned(backend, pending, options, is_checked, timings)


def _learns(backend: Backend, options: FusionOptions) -> bool:
    """Whether lists choose by the times of their runs."""
    asked = adapts() if options.adapt is None else options.adapt
    if asked is None:
        return backend.target.device.kind == "cpu" or backend.abilities.builds_apart
    return asked


@room_for_recursion("a kernel of the list")
def _planned(
    backend: Backend,
    pending: SubmissionList,
    options: FusionOptions,
    is_checked: bool,
    timings: dict[str, float],
) -> PreparedRun:
    """As ``prepare``, where no plan is known."""
    if is_checked:
        from fusionq.execution.checked import CheckedRun

        return CheckedRun(backend, pending, options)
    submissions = pending.submissions()
    if options.tune:
        from fusionq.execution.autotune import tuned_plan

        built, cache = tuned_plan(backend, pending, options, timings)
    else:
        built, cache = built_plan(backend, submissions, options, timings)
    run = _bound(backend, pending, built, cache, timings, options.fp)
    return _shown(run, backend.target)


def _bound(
    backend: Backend,
    pending: SubmissionList,
    built: BuiltPlan,
    cache: CacheOutcome,
    timings: dict[str, float],
    fp: FloatMode,
) -> PreparedRun:
    run = PreparedRun(built, pending.submitted(), cache, timings)
    with timed(timings, "prepare"):
        bind(backend, run, pending, fp)
    return run


def _shown(run: PreparedRun, target: Target) -> PreparedRun:
    """``run``, with what ``FUSIONQ_DEBUG`` asks for of a new plan: the report of a list; device
    sources."""
    if run.cache != "memory" and debug_level() >= 1:
        _show(report_of(run, run.cache, run.timings, target))
    return run


def _show(report: Report) -> None:
    if len(report.submissions) > 1:
        print(report, file=sys.stderr)
    if debug_level() >= 4:
        print(f"--- device source\n{report.device_source}", file=sys.stderr)


def empty_run() -> PreparedRun:
    """What a fusion without submissions becomes."""
    return PreparedRun(BuiltPlan(empty_plan(), ()), tuple, "memory", {})
