"""Launches of a list while it is recorded.

A list that is known to run each submission by itself need not wait for the end of its block, nor
the device for the host.  It is known by its first submission: where that began such a list, with
the same options, each submission is launched as outside fusion mode for as long as the list goes
on like that one.  However a list ends, by an exception in its block too, what is not launched yet
then is launched one by one.  A list that goes on in another way runs unfused this time, and no list
that begins with that submission is launched early any more.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.analysis.submission import ScalarValue
from fusionq.base.options import FusionOptions
from fusionq.execution.planning_time import PlanningStopped
from fusionq.memory.fusing_queues import QUEUES
from fusionq.memory.storage import Storage
from fusionq.runtime.launcher import Launcher, NotPrepared
from fusionq.submission.known import KnownSubmission, UnfusedList, use_numbers
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import CallArguments, PreparedRun

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
    """Launch the submissions of ``pending`` as they come, from ``first`` on, which has been
    recorded, if such lists are known to run unfused."""
    known = first.begins
    if (
        known is not None
        and known.options == pending.asked
        and known.is_next()
        and launcher.profiler is None
    ):
        pending.expected, pending.launched = known, []


def launch(
    launcher: Launcher,
    pending: SubmissionList,
    entry: KnownSubmission,
    memory: Sequence[object],
    values: Sequence[ScalarValue],
    call: CallArguments | None,
) -> None:
    """Launch ``entry``, which has just been recorded, if the list is as expected and no other
    queue's list may have to run before it."""
    known, launched = pending.expected, pending.launched
    assert known is not None and isinstance(launched, list)
    place = len(launched)
    if place >= len(known.entries) or known.entries[place] is not entry:
        _differ(pending)
        return
    if len(QUEUES) != 1 or (call is not None and call.foreign):
        pending.expected = None  # what the host may look at without an abort waits for the end
        return
    try:
        run, depends = known.run, () if call is None else call.depends
        if run is None or depends or not _is_ready(launcher, run, memory):
            if call is None:
                call = CallArguments()
            call.memory, call.values = memory, values
            launched.append(launcher.run_single(entry, call))
            return
        if values:
            run.rebind_from(len(pending.values) - len(values), values)
        stage = run.launches[place]
        event = None if stage is None else stage.launch()
        launched.append(event)
        if event is not None:
            launcher.last_event = event
            for storage in memory:
                storage.last_event = event  # type: ignore[attr-defined]  # as _is_ready saw
    except Exception:  # it is launched again with the rest, and the error is the list's
        pending.expected = None
    except BaseException:  # an interrupt: it may run or not, as outside fusion mode
        pending.expected = None
        pending.take_back()
        raise


def _is_ready(launcher: Launcher, run: PreparedRun, memory: Sequence[object]) -> bool:
    """Whether a launch of ``run`` that uses ``memory`` has to wait for nothing but the queue's
    order."""
    if launcher.after or run.moves != Storage.moves:
        return False
    backend = launcher.backend
    for held in memory:
        if type(held) is not Storage or held.last_backend is not backend:
            return False
    return True


def _differ(pending: SubmissionList) -> None:
    """Lists that begin like ``pending`` go on in different ways."""
    first = pending.entries[0]
    if first.begins is not None:
        first.begins = UnfusedList(first.begins.options)
    pending.expected = None


def end(launcher: Launcher, pending: SubmissionList, options: FusionOptions) -> None:
    """End a list whose first submissions have been launched already; NotPrepared where the others
    are to be launched one by one."""
    first, cache = pending.entries[0], launcher.cache
    key = options, *pending.entries
    known = first.begins
    if known is None or known.entries != key[1:]:
        _differ(pending)
        raise NotPrepared(PlanningStopped(OTHER_LIST))
    if known.run is not None and cache.runs.get(key) is known.run:
        if known.run.adaptive is not None:
            known.run.adaptive.untimed -= 1
        known.run.last_use = next(use_numbers)
        if len(pending.launched) == len(pending.entries):
            pending.end(known.run, options, pending.launched)
            return
    elif known.chooser is not None and cache.unfused.get(key) is known.chooser:
        known.chooser.untimed -= 1
        raise NotPrepared(PlanningStopped(known.chooser.reason))
    else:  # it is to be chosen anew
        first.begins = None
    raise NotPrepared(PlanningStopped(AS_BEFORE))


def note_unfused(launcher: Launcher, pending: SubmissionList, options: FusionOptions) -> None:
    """Lists like ``pending``, which has run each submission by itself, do so the next time, as far
    as known."""
    entries = tuple(pending.entries)
    if options != pending.asked or options.fp != "strict" or launcher.profiler is not None:
        return
    first = entries[0]
    known, cache = first.begins, launcher.cache
    if known is not None and known.options == options and known.entries != entries:
        return  # a list that begins like another one
    run = pending.run
    chooser = None if run is not None else cache.unfused.get((options, *entries))
    if (run is not None or chooser is not None) and all([entry.is_kept for entry in entries]):
        first.begins = UnfusedList(options, entries, run, chooser)
