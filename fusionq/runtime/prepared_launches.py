"""Submissions of a list that run each by itself, launched one right behind the other.

Until a list has a plan, ``auto`` launches its submissions as outside fusion mode.  Where all of
them have been launched before, or such a list in other memory has, and nobody else has to be asked
or waited for between them, that is no more than the launches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from fusionq.analysis.submission import Operands
from fusionq.backends.base import Backend, DeviceEvent
from fusionq.base.changes import CHANGES
from fusionq.base.options import FusionOptions
from fusionq.memory.fusing_queues import QUEUES
from fusionq.memory.storage import Storage
from fusionq.submission.call_arguments import CallArguments
from fusionq.submission.known import KnownSubmission
from fusionq.submission.overwritten_memory import OverwrittenMemory
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun, RunChooser
from fusionq.submission.same_sizes import Alike, ListKind
from fusionq.submission.separate_launches import SeparateLaunches


class QueueLauncher(Protocol):
    """What is asked and told of a queue's launches."""

    @property
    def backend(self) -> Backend:
        """Of the launches."""

    @property
    def after(self) -> Sequence[DeviceEvent]:
        """What the next launch waits for."""

    @property
    def profiler(self) -> object:
        """Where runs come from while a profile is taken, else None."""

    def has_launched(
        self, last: DeviceEvent, storages: Sequence[Storage], foreign: Sequence[object]
    ) -> None:
        """What was launched last uses these storages and foreign arrays."""


def _operands_of(pending: SubmissionList, s: int) -> list[Operands]:
    return [pending.operands()[s]]


def launch_prepared(launcher: QueueLauncher, pending: SubmissionList) -> list[DeviceEvent | None]:
    """Launch the submissions of ``pending``, from the first on, as far as their launches are
    prepared; their events.  The others are for the caller, with whatever an error says: the
    submission where it happened is among them."""
    events: list[DeviceEvent | None] = []
    storages = [held for held in pending.memory if isinstance(held, Storage)]
    if (
        launcher.profiler is not None
        or launcher.after
        or pending.depends
        or not all([held.last_backend is launcher.backend for held in storages])
    ):
        return events
    last, moves, values, first = None, Storage.moves, pending.values, 0
    try:
        for s, entry in enumerate(pending.entries):
            run = entry.plain
            if run is None or run.single is None or run.moves != moves or not run.can_be_one:
                break
            if entry.scalars:
                first, start = first + entry.scalars, first
                if not run.rebind(values[start:first], partial(_operands_of, pending, s)):
                    break
            last = run.single.launch()
            events.append(last)
    except Exception:  # it is launched again with the rest, and the error is the list's
        pass
    finally:
        if last is not None:
            launcher.has_launched(last, storages, pending.foreign)
    return events


def has_run_unfused(
    launcher: QueueLauncher, pending: SubmissionList, chooser: RunChooser, options: FusionOptions
) -> bool:
    """Launch ``pending``, which is to run each submission by itself once more if its ``chooser``
    need not be asked, as far as the launches are prepared; whether that is all of it.  If not,
    nothing else has happened."""
    if not chooser.untimed or QUEUES:
        return False
    pending.launched = launched = launch_prepared(launcher, pending)
    if len(launched) < len(pending.entries):
        return False
    chooser.untimed -= 1
    pending.events = launched
    pending.end_unfused(chooser.reason)
    pending.options = options  # by which it is planned on when it runs again
    return True


def has_separate_launches(
    launcher: QueueLauncher,
    pending: SubmissionList,
    run_of: Callable[[KnownSubmission, CallArguments], PreparedRun],
) -> bool:
    """Whether lists like ``pending`` in other memory have launches for each of their submissions;
    they get them from one that comes again, whose submissions run by themselves as ``run_of``
    says."""
    alike = pending.alike
    if not isinstance(alike, Alike):
        return False
    if alike.separate is None and alike.comes_again and alike.is_separable:
        if launcher.profiler is not None:
            return False
        runs = (run_of(entry, call) for entry, call in pending.calls())
        try:
            alike.separate = SeparateLaunches.of(launcher.backend, pending, runs)
        except Exception:  # which says more when the submission runs
            return False
        alike.is_separable = alike.separate is not None
    return alike.separate is not None


def launch_separate(launcher: QueueLauncher, pending: SubmissionList) -> list[DeviceEvent | None]:
    """As ``launch_prepared``, by the launches that lists like ``pending`` have."""
    events: list[DeviceEvent | None] = []
    alike, kind, backend = pending.alike, pending.kind, launcher.backend
    if (
        not isinstance(alike, Alike)
        or alike.separate is None
        or not isinstance(kind, ListKind)
        or launcher.profiler is not None
        or launcher.after
        or pending.depends
    ):
        return events
    separate = alike.separate
    storages = [held for held in pending.memory if isinstance(held, Storage)]
    others = [held for held in storages if held.last_backend is not backend]
    if any([held.last_event is not None for held in others]):
        return events
    try:
        if pending.values and not separate.rebind(pending.values, pending.operands()):
            return events
        with OverwrittenMemory(pending.entries, pending.operands, pending.memory):
            separate.move(backend, pending.memory, kind.places, kind.addresses)
        for held in others:
            held.last_backend = backend
            CHANGES.latest = object()
        separate.launch(events)
    except Exception:  # it is launched again with the rest, and the error is the list's
        pass
    finally:
        last = next((event for event in reversed(events) if event is not None), None)
        if last is not None:
            launcher.has_launched(last, storages, pending.foreign)
    return events
