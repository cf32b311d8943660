"""Checked runs: every access is tested on the device, and the first that leaves its array raises.

Each submission is a launch of its own with bounds checks (``passes.check_accesses``); a launch is
waited for before the next one begins, so that nothing runs on what a faulty one has left.  Where
initialization is checked too, a launch also has marks of what has been written: one memory for
each allocation whose contents the list may not rely on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fusionq.analysis.submission import Argument, ArrayArgument, Submission
from fusionq.backends.base import Allocation, ArrayBinding, Backend, Binding, DeviceEvent
from fusionq.base.config import always_checked
from fusionq.base.errors import ArgumentError
from fusionq.base.options import UNFUSED, FusionOptions
from fusionq.base.target import LaunchShape
from fusionq.cache.plan_cache import BuiltPlan
from fusionq.execution.binding import bind
from fusionq.execution.programs import programs_of
from fusionq.execution.written_memory import WrittenMemory
from fusionq.ir.nodes import Kernel
from fusionq.passes.check_accesses import (
    DIMS,
    EXTENTS_AT,
    IDS_AT,
    INDICES_AT,
    WORDS,
    CheckedAccess,
    CheckingKernel,
    check_accesses,
)
from fusionq.planning.plan import StagePlan
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun

_REASON = "check=True tests every access, of each submission in a launch of its own"


class CheckedRun(PreparedRun):
    """A run of a list whose kernels test their accesses; raises what preparing one does."""

    __slots__ = ("_checked", "_marks", "_reports")

    can_be_one = False

    def __init__(self, backend: Backend, pending: SubmissionList, options: FusionOptions) -> None:
        from fusionq.planning.planner import make_plan

        submissions = pending.submissions()
        timings = dict(pending.admission)
        plan = make_plan(submissions, UNFUSED, backend.target)
        plan = replace(plan, stages=tuple(stage.in_order for stage in plan.stages))
        initialized = "initialized" in (options.check, always_checked())
        self._marks = WrittenMemory(backend, pending, options) if initialized else None
        self._checked = tuple(self._with_checks(stage, submissions) for stage in plan.stages)
        for submission, checked in zip(submissions, self._checked, strict=True):
            _check_local_memory(backend, submission, checked.kernel)
        stages = tuple(
            replace(stage, kernel=replace(checked.kernel, row_lanes=None, padded_row=None))
            for stage, checked in zip(plan.stages, self._checked, strict=True)
        )
        fallback = _REASON if len(submissions) > 1 else plan.fallback
        plan = replace(plan, stages=stages, fallback=fallback)
        programs = programs_of(backend, plan, options, timings)
        super().__init__(BuiltPlan(plan, programs), lambda: submissions, "miss", timings)
        self._reports: list[Allocation] = [backend.allocate(8 * WORDS) for _ in stages]
        bind(backend, self, pending, options.fp)

    def _with_checks(self, stage: StagePlan, submissions: Sequence[Submission]) -> CheckingKernel:
        if self._marks is None:
            return check_accesses(stage.kernel)
        tracked = self._marks.parameters(stage, submissions)
        return check_accesses(stage.kernel, tracked)

    def extra_bindings(self, stage: int, shape: LaunchShape) -> Sequence[Binding]:
        """Memory for the reports of ``stage``, and for its marks."""
        reports = ArrayBinding(self._reports[stage].address, (WORDS,), (1,))
        if self._marks is None:
            return (reports,)
        tracked = self._marks.parameters(self.built.plan.stages[stage], self.submissions)
        return (reports, *map(self._marks.binding, tracked.values()))

    def launch(
        self, depends: Sequence[DeviceEvent]
    ) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
        """Run all stages, one after the other; ArgumentError for the first access outside its
        array, which did not happen."""
        events: list[DeviceEvent | None] = []
        last = None
        if self._marks is not None:
            self._marks.begin()
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


def _check_local_memory(backend: Backend, submission: Submission, kernel: Kernel) -> None:
    """ArgumentError where the marks of local arrays do not fit beside the arrays."""
    taken = sum(array.nbytes for array in kernel.arrays if array.space == "local")
    if taken > backend.info.local_memory_bytes:
        raise ArgumentError(
            f"{submission.span}: check='initialized' takes one more byte of local memory for each "
            f"element of a local array, {taken} bytes in all for kernel {submission.ir.name!r}; "
            f"{backend.info.name} has {backend.info.local_memory_bytes}. Write check=True, or pass "
            "smaller LocalAccessors"
        )


def _message(submission: Submission, checked: CheckingKernel, words: npt.NDArray[np.int64]) -> str:
    access = checked.accesses[words[1]]
    argument = next((a for a in submission.arguments if a.name == access.array), None)
    ndim = submission.range.ndim
    item = ", ".join(str(n) for n in words[IDS_AT : IDS_AT + min(ndim, DIMS)])
    indices = words[INDICES_AT : INDICES_AT + access.ndim].tolist()
    for dim, unsigned in enumerate(access.unsigned):
        if unsigned:
            indices[dim] %= 1 << 64
    element = ", ".join(map(str, indices))
    shape = ", ".join(str(n) for n in words[EXTENTS_AT : EXTENTS_AT + access.ndim])
    array, label = access.array, ""
    if isinstance(argument, ArrayArgument):
        array, label = argument.parameter_text, f" (argument `{argument.text}`)"
    more = int(words[0]) - 1
    others = f"; {more:,} more access{'es' * (more > 1)} did so in this launch" if more else ""
    if access.fault == "outside":
        what = f"{access.kind} outside array {array!r}{label}"
        then = (
            "The access did not happen, and nothing after it was run. Guard it with an `if`, or "
            "pass a larger array."
        )
    else:
        what = f"{access.kind} of an element of {array!r}{label} that nothing has written"
        then = "Nothing after this launch was run. " + _where_written(checked, access, argument)
    return (
        f"{submission.ir.name}: {what}: work-item ({item}) {access.kind}s element [{element}] of "
        f"an array of shape ({shape}){others}\n"
        f"  in the kernel at {access.span}: {access.span.text}\n"
        f"  submitted at {submission.span}: {submission.span.text}\n"
        f"  {then}"
    )


def _where_written(
    checked: CheckingKernel, access: CheckedAccess, argument: Argument | None
) -> str:
    """What to do about an element that nothing has written."""
    if isinstance(argument, ArrayArgument):
        if argument.buffer_flag or argument.access_flag or argument.internal:
            return "A promoted Buffer holds what its list has written: write the element there."
        return "Write the element first, or make the Buffer from contents: Buffer(array)."
    (array,) = [a for a in checked.kernel.arrays if a.name == access.array]
    if array.space == "private":
        return "Write the element first, or pass fill_zeros=True to PrivateArray."
    return "Write the element first, and pass a group_barrier before another work-item reads it."
