"""Kernels of a list that runs one submission by one are built at once, where several are new."""

from __future__ import annotations

from contextlib import suppress
from weakref import WeakSet

from fusionq.analysis.submission import SubmissionForm
from fusionq.backends.base import Backend
from fusionq.base.errors import DeviceError
from fusionq.submission.known import KnownSubmission
from fusionq.submission.pending import SubmissionList

MOST_SIZES = 4096
"""Beyond so many of them all are forgotten."""


class BuiltTogether:
    """What a queue has built so; it keeps nothing alive."""

    def __init__(self) -> None:
        self._met: WeakSet[SubmissionForm] = WeakSet()
        """Of submissions that were here before."""
        self._met_sizes: set[int] = set()
        """The same with their sizes, by what stands for all such submissions."""

    def build(self, backend: Backend, pending: SubmissionList) -> None:
        """Build what the submissions of ``pending`` still need, as far as that can be built; what
        cannot says so when it runs.  Those in other memory than the last of their form, which
        nobody keeps, need nothing any more."""
        if not any([self._is_new(entry) for entry in pending.entries]):
            return
        new = {
            (entry, tuple(call.values)): SubmissionList.of([entry], call)
            for entry, call in pending.calls()
            if self._is_new(entry)
        }
        self._met.update([entry.deferred.operands.form for entry, _ in new])
        if len(self._met_sizes) >= MOST_SIZES:
            self._met_sizes.clear()
        self._met_sizes.update([(entry.sized or entry).numbered() for entry, _ in new])
        if len(new) > 1:
            from fusionq.execution.compile import build_alone

            with suppress(DeviceError):
                build_alone(backend, [one.submissions() for one in new.values()], pending.admission)

    def _is_new(self, entry: KnownSubmission) -> bool:
        if entry.plain is not None:
            return False
        if entry.is_kept:  # also where temporaries occur several times in a list
            return (entry.sized or entry).numbered() not in self._met_sizes
        return entry.deferred.operands.form not in self._met
