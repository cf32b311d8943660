"""The run of a candidate, prepared for one list, serves those that differ from it in memory and
scalars alone: temporaries are made anew each time while candidates are tried, too."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from fusionq.analysis.submission import ArrayPlace
from fusionq.backends.base import Backend
from fusionq.base.errors import DeviceError
from fusionq.execution.contender import Candidate
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun
from fusionq.submission.same_sizes import sharing


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
            found = self._kind(pending)
            if found is not None:
                self._runs[name] = found[0], run

    def run_for(self, name: Candidate, pending: SubmissionList) -> PreparedRun | None:
        """The candidate's launches for ``pending``; None where they have to be prepared."""
        kept, run = self._runs.get(name, (None, None))
        found = None if run is None else self._kind(pending)
        if run is None or found is None or found[0] != kept:
            return None
        _, places, addresses = found
        submitted, admission = pending.submitted(), dict(pending.admission)
        memory = pending.memory
        try:
            moved = run.elsewhere(self._backend, memory, places, addresses, submitted, admission)
        except DeviceError:  # of which preparing says more
            return None
        if moved is None or (pending.values and not moved.rebind(pending.values, pending.operands)):
            return None
        return moved

    def _kind(
        self, pending: SubmissionList
    ) -> tuple[Hashable, Sequence[ArrayPlace], list[int | None]] | None:
        places = [place for entry in pending.entries for place in entry.deferred.operands.places]
        found = sharing(self._backend, places, pending.memory)
        if found is None:
            return None
        shared, addresses = found
        return (shared, *[entry.sized or entry for entry in pending.entries]), places, addresses
