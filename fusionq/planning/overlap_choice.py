"""Whether halos are worth computing anew: before they are looked for, and by what was found."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fusionq.analysis.item_space import global_range
from fusionq.analysis.questions import Questions
from fusionq.base.target import Target
from fusionq.planning.cost import (
    Estimate,
    OverlapEstimate,
    launches_seconds,
    with_persistent,
)
from fusionq.planning.list_work import launch_operations, launches_work
from fusionq.planning.plan import StagePlan
from fusionq.planning.versions import Versions
from fusionq.planning.work import work_of

MOST_LONGER = 2.0
"""How many times as long as launches without that halos computed anew may take by the model, where
they are asked for."""

MORE_LAUNCHES = 0
"""Launches that halos computed anew may add, where they are asked for."""

INLINED_TAKES_LONGER = (
    f"what would be computed anew takes more than {MOST_LONGER:g} times as long as launches "
    "without that"
)

Taken = tuple[float, float]
"""The seconds that launches take by the model, and their operations, by which launches are compared
that take no longer than a launch itself."""


def taken(questions: Questions, launches: Sequence[StagePlan], target: Target) -> Taken:
    """What launches of a list take on ``target``."""
    operations = sum(launch_operations(questions.submissions, plan) for plan in launches)
    return launches_seconds(*launches_work(questions, launches, target), target), operations


def most_taken(
    questions: Questions, launches: Sequence[StagePlan], asked: bool, target: Target
) -> Taken:
    """What halos computed anew may take at most, beside ``launches`` without that; more where they
    are ``asked`` for."""
    seconds, operations = taken(questions, launches, target)
    return (MOST_LONGER if asked else 1.0) * seconds, operations


def inlined_takes_longer(
    questions: Questions, found: Versions, bounds: Sequence[Taken], target: Target
) -> bool:
    """Whether what work-items that compute the versions ``found`` by themselves compute beyond the
    operations of one of ``bounds`` certainly takes longer than all of that, or, where that takes
    no longer than a launch itself, whether it is more."""
    items, readers = found.items_by_producer(), found.last_readers()
    sizes = [max(prod(global_range(s)), 1) for s in questions.submissions]
    work = 0.0
    for s, submission in enumerate(questions.submissions):
        times = 1.0
        if s in items:  # those of a smaller range read a part of what the producer writes
            times = items[s] * min(1.0, max(sizes[r] for r in readers[s]) / sizes[s])
        work += times * work_of(submission)
    rate = target.machine_balance * target.costs.memory_bandwidth
    return any(
        (max((work - operations) / rate, target.costs.launch_seconds), work)
        >= (seconds, operations)
        for seconds, operations in bounds
    )


def compared_work(
    questions: Questions,
    launches: Sequence[StagePlan],
    overlapped: Sequence[StagePlan],
    target: Target,
) -> OverlapEstimate:
    """What two ways to run a list take on ``target``, by the model."""
    first, second = (
        launches_seconds(*launches_work(questions, plans, target), target)
        for plans in (launches, overlapped)
    )
    return OverlapEstimate(first, second)


def saves_launches(overlapped: int, launches: int, stored: bool) -> bool:
    """Whether ``overlapped`` launches in place of so many ``launches`` are worth asking for: they
    are fewer, or as many and not all that is computed anew is ``stored`` as well."""
    most = launches + MORE_LAUNCHES
    return overlapped < most or (overlapped == most and not stored)


def takes_longer(
    questions: Questions,
    launches: Sequence[StagePlan],
    overlapped: Sequence[StagePlan],
    target: Target,
) -> str | None:
    """Why ``overlapped`` launches, which were asked for, are not taken: what is computed more than
    once takes much longer than all that ``launches`` without that take.  None if it does not."""
    compared = compared_work(questions, launches, overlapped, target)
    if compared.overlapped <= MOST_LONGER * compared.launches:
        return None
    ratio = compared.overlapped / compared.launches
    return f"what would be computed anew takes {ratio:.2g} times as long as launches without that"


def saves_little(
    questions: Questions,
    launches: Sequence[StagePlan],
    keeps_all: bool,
    estimates: Sequence[Estimate],
    target: Target,
) -> str | None:
    """Why computing halos anew cannot be faster than ``launches`` by enough, whatever there is to
    compute; None if it may be.  ``keeps_all``: all memory is written as without that;
    ``estimates``: of persistent kernels that take the place of some launches, if that was
    chosen."""
    work, nbytes = launches_work(questions, launches, target)
    seconds = launches_seconds(work, nbytes, target)
    least = target.costs.launch_seconds
    if keeps_all and nbytes > target.kept_bytes:
        touched = min(nbytes, sum(launch.whole.accessed for launch in work))
        least = max(least, touched / target.costs.memory_bandwidth)
    best = OverlapEstimate(seconds, least)
    before = with_persistent(estimates, best) if estimates else seconds
    saved = min(seconds, before) - least
    # Who flags a buffer has asked to save its memory.
    needed = target.costs.saved_seconds if keeps_all else 0.0
    if best.prefers_overlap and least < before and saved >= needed:
        return None
    if saved < 0.5e-6:
        return "halos computed anew would save no time"
    return (
        f"halos computed anew would save less than {saved * 1e6:.0f} µs a run: ask for "
        "strategy='overlap' or tune=True to have them"
    )
