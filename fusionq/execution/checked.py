"""Checked runs: every access is tested on the device, and the first that leaves its array raises.

Each submission is a launch of its own with bounds checks (``passes.check_accesses``); a launch is
waited for before the next one begins, so that nothing runs on what a faulty one has left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.backends.base import Allocation, ArrayBinding, Backend, Binding, DeviceEvent
from fusionq.base.errors import ArgumentError
from fusionq.base.options import UNFUSED, FusionOptions
from fusionq.base.target import LaunchShape
from fusionq.cache.plan_cache import BuiltPlan
from fusionq.execution.binding import bind
from fusionq.execution.compile import programs_of
from fusionq.passes.check_accesses import (
    DIMS,
    EXTENTS_AT,
    IDS_AT,
    INDICES_AT,
    WORDS,
    CheckedKernel,
    check_accesses,
)
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun

_REASON = "check=True tests every access, of each submission in a launch of its own"


class CheckedRun(PreparedRun):
    """A run of a list whose kernels test their accesses; raises what preparing one does."""

    __slots__ = ("_checked", "_reports")

    can_be_one = False

    def __init__(
        self, backend: Backend, pending: SubmissionList, options: FusionOptions
    ) -> None:
        from fusionq.planning.planner import make_plan

        submissions = pending.submissions()
        timings = dict(pending.admission)
        plan = make_plan(submissions, UNFUSED, backend.target)
        self._checked = tuple(check_accesses(stage.kernel) for stage in plan.stages)
        stages = tuple(
            replace(stage, kernel=checked.kernel)
            for stage, checked in zip(plan.stages, self._checked, strict=True)
        )
        fallback = _REASON if len(submissions) > 1 else plan.fallback
        plan = replace(plan, stages=stages, fallback=fallback)
        programs = programs_of(backend, plan, options, timings)
        super().__init__(BuiltPlan(plan, programs), submissions, "miss", timings)
        self._reports: list[Allocation] = [backend.allocate(8 * WORDS) for _ in stages]
        bind(backend, self, pending)

    def extra_bindings(self, stage: int, shape: LaunchShape) -> Sequence[Binding]:
        """Memory for the reports of ``stage``."""
        return (ArrayBinding(self._reports[stage].address, (WORDS,), (1,)),)

    def launch(
        self, depends: Sequence[DeviceEvent]
    ) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
        """Run all stages, one after the other; ArgumentError for the first access outside its
        array, which did not happen."""
        events: list[DeviceEvent | None] = []
        last = None
        for stage, launch in enumerate(self.launches):
            event = None
            if launch is not None:
                self._reports[stage].zero()
                last = event = launch.launch(depends)
                depends = ()
                event.wait()
                words = np.empty(WORDS, np.int64)
                self._reports[stage].read(words.view(np.uint8), 0)
                if words[0]:
                    raise ArgumentError(
                        _message(self.submissions[stage], self._checked[stage], words)
                    )
            events.append(event)
        for event in depends:
            event.wait()
        return events, last


def _message(
    submission: Submission, checked: CheckedKernel, words: npt.NDArray[np.int64]
) -> str:
    access = checked.accesses[words[1]]
    argument = next((a for a in submission.arguments if a.name == access.array), None)
    ndim = submission.range.ndim
    item = ", ".join(str(n) for n in words[IDS_AT : IDS_AT + min(ndim, DIMS)])
    element = ", ".join(str(n) for n in words[INDICES_AT : INDICES_AT + access.ndim])
    shape = ", ".join(str(n) for n in words[EXTENTS_AT : EXTENTS_AT + access.ndim])
    label = f" (argument `{argument.label}`)" if isinstance(argument, ArrayArgument) else ""
    others = f"; {words[0] - 1:,} more accesses did so in this launch" if words[0] > 1 else ""
    return (
        f"{submission.ir.name}: {access.kind} outside array {access.array!r}{label}: work-item "
        f"({item}) {access.kind}s element [{element}] of an array of shape ({shape}){others}\n"
        f"  in the kernel at {access.span}: {access.span.text}\n"
        f"  submitted at {submission.span}: {submission.span.text}\n"
        "  The access did not happen, and nothing after it was run. Guard it with an `if`, or pass "
        "a larger array."
    )
