"""Submissions of a list that run each by itself, launched one right behind the other.

Until a list has a plan, ``auto`` launches its submissions as outside fusion mode.  Where all of
them have been launched before, and nobody else has to be asked or waited for between them, that is
no more than the launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from fusionq.analysis.submission import Operands
from fusionq.backends.base import Backend, DeviceEvent
from fusionq.memory.storage import Storage
from fusionq.submission.pending import SubmissionList


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


def _alone(operands: Operands) -> list[Operands]:
    return [operands]


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
    last, moves = None, Storage.moves
    operands = iter(pending.operands() if pending.values else ())
    try:
        for entry in pending.entries:
            run = entry.plain
            if run is None or run.single is None or run.moves != moves or not run.can_be_one:
                break
            if pending.values:
                own = next(operands)
                if not run.rebind(own.values, partial(_alone, own)):
                    break
            last = run.single.launch()
            events.append(last)
    except Exception:  # it is launched again with the rest, and the error is the list's
        pass
    finally:
        if last is not None:
            launcher.has_launched(last, storages, pending.foreign)
    return events
