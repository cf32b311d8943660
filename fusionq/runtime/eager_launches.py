"""Launches of a list while it is recorded.

A list that ``auto`` runs as each submission by itself, by its times, need not wait for the end of
its block, nor the device for the host, where launches take longer than the host takes to make them
and the device is not the host's processors.  That is so where the device has nothing to do when the
list begins; else it is launched at its end, as one: on an H100 lists of 4 to 16 launches take 0.98
to 0.995 of the time of launches one behind the other so.
The list is known by its first submission: where that began such a list, with
the same options, a few submissions at a time are launched for as long as the list goes on like that
one.  However a list ends, by an exception in its block too, what is not launched yet then is
launched one by one.  A list that goes on in another way runs unfused this time, and no list that
begins with that submission is launched early any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from fusionq.backends.base import Backend
from fusionq.base.options import FusionOptions
from fusionq.execution.planning_time import PlanningStopped
from fusionq.memory.fusing_queues import QUEUES
from fusionq.memory.storage import Storage
from fusionq.runtime.launcher import Launcher, NotPrepared
from fusionq.submission.known import KnownSubmission, UnfusedList, use_numbers
from fusionq.submission.pending import SubmissionList

FIRST, NEXT = 4, 8
"""So many submissions are launched together, the first time and later: launches one behind the
other cost the host less than each between two submissions."""

OTHER_LIST = (
    "it began like a list that runs each submission by itself, and so its first ones were launched "
    "while it was recorded, but it went on in another way; no list that begins like that is "
    "launched before its end from now on"
)

AS_BEFORE = (
    "such lists have run each submission by itself, and its first ones were launched while it was "
    "recorded"
)


def begin(launcher: Launcher, pending: SubmissionList, first: KnownSubmission) -> None:
    """Launch submissions of ``pending`` while it is recorded, if lists with these options that
    begin with ``first`` are known to run unfused, and the device has nothing to do."""
    known = first.begins
    if (
        known is not None
        and known.options == pending.asked
        and launcher.profiler is None
        and known.gains()
        and is_idle(launcher)
    ):
        pending.launched, pending.next_launch = [], FIRST - 1


def is_idle(launcher: Launcher) -> bool:
    """Whether the device has run all that was launched."""
    return launcher.last_event is None or launcher.last_event.complete


def go_on(launcher: Launcher, pending: SubmissionList) -> None:
    """Launch what has been recorded since the last time, if the list is as expected and has to wait
    for nobody else."""
    pending.next_launch = -1
    known, launched = pending.entries[0].begins, pending.launched
    if known is None or known.run is None:
        return
    first, stop = len(launched), len(pending.entries)
    if tuple(pending.entries[first:]) != known.entries[first:stop]:
        _differ(pending.entries[0])
        return
    run, (arrays, scalars) = known.run, known.first_arguments[first]
    used = pending.memory[arrays:]
    if (
        len(QUEUES) > 1  # whose list may have to run before
        or pending.depends
        or launcher.after
        or pending.foreign  # the host may look at it without an abort
        or run.moves != Storage.moves
        or not all([held.last_backend is launcher.backend for held in _storages(used)])
    ):
        return
    run.rebind_from(scalars, pending.values[scalars:])
    assert isinstance(launched, list)
    event = None
    try:
        for launch in run.launches[first:stop]:
            if launch is not None:
                event = launch.launch()
            launched.append(None if launch is None else event)
    except Exception:  # it is launched again with the rest, and the error is the list's
        return
    except BaseException:  # an interrupt: it may run or not, as outside fusion mode
        if len(launched) < stop - 1:
            launched.append(None)
        pending.take_back()
        raise
    finally:
        if event is not None:
            launcher.last_event = event
            for storage in _storages(used):
                storage.last_event = event
    pending.next_launch = stop - 1 + NEXT


def _storages(memory: Sequence[object]) -> Iterable[Storage]:
    """The storages of a list that uses no other memory."""
    return cast(Iterable[Storage], memory)


def _differ(first: KnownSubmission) -> None:
    """Lists that begin with ``first`` go on in different ways."""
    if first.begins is not None:
        first.begins = UnfusedList(first.begins.options)


def end(launcher: Launcher, pending: SubmissionList, options: FusionOptions) -> None:
    """End a list whose first submissions have been launched already; NotPrepared where the others
    are to be launched one by one."""
    first, key = pending.entries[0], (options, *pending.entries)
    known = first.begins
    if known is None or known.entries != key[1:]:
        _differ(first)
        raise NotPrepared(PlanningStopped(OTHER_LIST))
    run = known.run
    if run is None or launcher.cache.runs.get(key) is not run:
        first.begins = None  # it is to be chosen anew
        raise NotPrepared(PlanningStopped(AS_BEFORE))
    if run.adaptive is not None:
        run.adaptive.untimed -= 1
    run.last_use = next(use_numbers)
    if len(pending.launched) < len(pending.entries):
        if pending.next_launch >= 0:
            go_on(launcher, pending)
        if len(pending.launched) < len(pending.entries):
            raise NotPrepared(PlanningStopped(AS_BEFORE))
    pending.end(run, options, pending.launched)


def is_told_early(backend: Backend) -> bool:
    """Whether to launch early may gain: on the host's own processors kernels that run meanwhile
    take the host's time, more than an early begin gains."""
    return backend.target.device.kind != "cpu"


def note_unfused(launcher: Launcher, pending: SubmissionList, options: FusionOptions) -> None:
    """Lists like ``pending``, which has run each submission by itself, do so the next time, as far
    as known."""
    if options != pending.asked or options.fp != "strict" or launcher.profiler is not None:
        return
    first = pending.entries[0]
    known = first.begins
    if known is not None and known.run is pending.run:
        return
    entries = tuple(pending.entries)
    if known is not None and known.options == options and known.entries != entries:
        return
    if all([entry.is_kept for entry in entries]):
        from fusionq.execution.device_costs import known_costs

        costs = known_costs(launcher.backend)
        launch_seconds = max(costs.launch_seconds, costs.host_launch_seconds)
        first.begins = UnfusedList(options, entries, pending.run, launch_seconds)
