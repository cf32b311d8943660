"""The run of a candidate, prepared for one list, serves those that differ from it in memory and
scalars alone: temporaries are made anew each time while candidates are tried, too."""

from __future__ import annotations

from collections.abc import Hashable

from fusionq.backends.base import Backend
from fusionq.base.errors import DeviceError
from fusionq.execution.contender import Candidate
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun
from fusionq.submission.same_sizes import elsewhere, kind_of


class MovedRuns:
    """One run of each candidate, with the kind of list that it was prepared for: submissions of
    these kernels, sizes and flags, whose arrays share memory in this way."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._runs: dict[Candidate, tuple[Hashable, PreparedRun]] = {}

    def keep(self, name: Candidate, run: PreparedRun, pending: SubmissionList) -> None:
        """``run`` was prepared for ``pending``; lists that come again have runs of their own."""
        self._runs.pop(name, None)
        if run.pointers and not all([entry.is_kept for entry in pending.entries]):
            kind = kind_of(self._backend, pending)
            if kind is not None:
                self._runs[name] = kind.of_list, run

    def run_for(self, name: Candidate, pending: SubmissionList) -> PreparedRun | None:
        """The candidate's launches for ``pending``; None where they have to be prepared."""
        kept, run = self._runs.get(name, (None, None))
        kind = None if run is None else kind_of(self._backend, pending)
        if run is None or kind is None or kind.of_list != kept:
            return None
        try:
            moved = elsewhere(run, self._backend, pending, kind.places, kind.addresses)
        except DeviceError:  # of which preparing says more
            return None
        if moved is None or (pending.values and not moved.rebind(pending.values, pending.operands)):
            return None
        return moved
