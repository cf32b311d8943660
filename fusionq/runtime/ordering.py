"""Lists of several fusing queues that share memory: what must run before what.

Two fusing queues that share a buffer both go on.  When one of them ends its fusion, what the
others' lists hold of earlier submissions that conflict with it must run first; if they in turn
need later submissions of each other, the lists run unfused, in the order of submission.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fusionq.memory.region import Region
from fusionq.memory.storage import Storage
from fusionq.submission.pending import KnownSubmission, SubmissionList
from fusionq.submission.run import CallArguments

Access = tuple[int, Region, bool]
"""When a submission was made, memory it uses, whether it stores to it."""


def _accesses(pending: SubmissionList) -> list[Access]:
    found = zip(pending.entry_of_access(), pending.accesses(), strict=True)
    return [(pending.numbers[e], region, stores) for e, (region, stores) in found]


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
    """Run all submissions of ``lists`` one by one, in the order in which they were made, each on
    its queue; the reasons go into the reports.  An error ends its list, and is kept there."""
    steps = sorted(
        (
            (number, n, piece)
            for n, pending in enumerate(lists)
            for number, piece in _steps(pending)
        ),
        key=lambda step: step[0],
    )
    ordered = list(lists)
    depends = {pending: pending.depends for pending in ordered}
    for _, n, (entry, call) in steps:
        pending = ordered[n]
        if pending.error is not None:
            continue
        assert pending.owner is not None
        try:
            call.depends = depends[pending]
            event = pending.owner.run_single(entry, call)
        except Exception as error:
            pending.error = error
        else:
            pending.events = [*pending.events, event]
            depends[pending] = ()
    for pending, reason in lists.items():
        failed = "" if pending.error is None else f"; and then an error: {pending.error}"
        pending.end_unfused(reason + failed)


def _steps(pending: SubmissionList) -> Iterator[tuple[int, tuple[KnownSubmission, CallArguments]]]:
    """Each submission of a list: its number, and what it was called with."""
    at = value = 0
    for number, entry in zip(pending.numbers, pending.entries, strict=True):
        memory: Sequence[object] = pending.memory[at : at + len(entry.stores)]
        at += len(memory)
        foreign = [held for held in memory if not isinstance(held, Storage)]
        values = pending.values[value : value + entry.scalars]
        value += entry.scalars
        yield number, (entry, CallArguments.of(memory, foreign, values))
