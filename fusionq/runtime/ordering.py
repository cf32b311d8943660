"""Lists of several fusing queues that share memory: what must run before what.

Two fusing queues that share a buffer both go on.  When one of them ends its fusion, what the
others' lists hold of earlier submissions that conflict with it must run first; if they in turn
need later submissions of each other, the lists run unfused, in the order of submission.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from fusionq.base.errors import DeviceError
from fusionq.memory.region import MemoryRegion
from fusionq.submission.call_arguments import CallArguments
from fusionq.submission.known import KnownSubmission, array_arguments, region_of
from fusionq.submission.pending import SubmissionList

Access = tuple[int, MemoryRegion, bool]
"""When a submission was made, memory it uses, whether it stores to it."""


def _accesses(pending: SubmissionList) -> list[Access]:
    return [
        (pending.numbers[position], region, stores)
        for position, region, stores in pending.accesses_by_submission()
    ]


def precedes(first: SubmissionList, second: SubmissionList) -> bool:
    """Whether some submission of ``first`` must run before a later one of ``second``."""
    later = _accesses(second)
    return any(
        number < other and (stores or also_stores) and region.overlaps(also)
        for number, region, stores in _accesses(first)
        for other, also, also_stores in later
    )


def lists_before(
    pending: SubmissionList, waiting: Iterable[SubmissionList]
) -> list[SubmissionList]:
    """The ``waiting`` lists that must run before ``pending``, or before one that must."""
    rest = [other for other in waiting if other is not pending]
    found: list[SubmissionList] = []
    reached = [pending]
    while reached:
        target = reached.pop()
        for other in tuple(rest):
            if precedes(other, target):
                rest.remove(other)
                found.append(other)
                reached.append(other)
    return found


def run_unfused(lists: Mapping[SubmissionList, str]) -> None:
    """Run all submissions of ``lists`` one by one, unless they have been launched already, in the
    order in which they were made, each on its queue; the reasons go into the reports.  An error is
    kept with its list; what uses memory that a submission with an error would have written does
    not run, all else does."""
    ordered = list(lists)
    steps = sorted((step for n, pending in enumerate(ordered) for step in _steps(n, pending)))
    depends = {pending: pending.depends for pending in ordered}
    events = {pending: list(pending.launched) for pending in ordered}
    lost: list[tuple[MemoryRegion, str]] = []
    """What was not written, and by which kernel."""
    for step in steps:
        pending = ordered[step.list]
        event = None
        try:
            _check_not_lost(step, lost)
            step.call.depends = depends[pending]
            assert pending.owner is not None
            event = pending.owner.run_single(step.entry, step.call)
            depends[pending] = ()
        except Exception as error:
            pending.error = pending.error or error
            pending.errors = {**pending.errors, len(events[pending]): error}
            name = step.entry.submission.name
            lost += [(region, name) for region, stores in step.uses() if stores]
        events[pending].append(event)
    for pending, reason in lists.items():
        pending.events = events[pending]
        failed = "" if pending.error is None else f"; and then an error: {pending.error}"
        pending.end_unfused(reason + failed)


def _check_not_lost(step: _Step, lost: Sequence[tuple[MemoryRegion, str]]) -> None:
    for region, _ in step.uses() if lost else ():
        for gone, kernel in lost:
            if region.overlaps(gone):
                submission = step.entry.submission
                raise DeviceError(
                    f"{submission.span}: kernel {submission.name!r} was not run, since it uses "
                    f"memory that kernel {kernel!r} would have written, which could not be run"
                )


@dataclass(frozen=True, order=True, slots=True)
class _Step:
    """A submission of a list: its number among those of all queues, and what it was called with."""

    number: int
    list: int
    entry: KnownSubmission = field(compare=False)
    call: CallArguments = field(compare=False)

    def uses(self) -> Iterator[tuple[MemoryRegion, bool]]:
        """The memory that it uses, with whether it stores to it."""
        for (argument, stores), held in zip(
            array_arguments(self.entry), self.call.memory, strict=True
        ):
            yield region_of(argument, held), stores


def _steps(place: int, pending: SubmissionList) -> Iterator[_Step]:
    """Those of the submissions that have not been launched yet."""
    if len(pending.launched) == len(pending.entries):
        return
    steps = zip(pending.numbers, pending.calls(), strict=True)
    for number, (entry, call) in islice(steps, len(pending.launched), None):
        yield _Step(number, place, entry, call)
