"""The run of a candidate, prepared for one list, serves those that differ from it in memory and
scalars alone: temporaries are made anew each time while candidates are tried, too.

What the host does for each such list, which differs from candidate to candidate, counts in the
trials: to copy and move the launches, or, where they serve no other memory, to bind them.
"""

from __future__ import annotations

from collections.abc import Hashable

from fusionq.backends.base import Backend
from fusionq.base.errors import DeviceError
from fusionq.execution import run_times
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
        if all([entry.is_kept for entry in pending.entries]):
            return
        kind = kind_of(self._backend, pending)
        if run.pointers and kind is not None:
            self._runs[name] = kind.of_list, run
        else:  # the next list needs one of its own again
            run.prepared_in = run.timings.get("prepare", 0.0)

    def run_for(self, name: Candidate, pending: SubmissionList) -> PreparedRun | None:
        """The candidate's launches for ``pending``; None where they have to be prepared."""
        kept, run = self._runs.get(name, (None, None))
        kind = None if run is None else kind_of(self._backend, pending)
        if run is None or kind is None or kind.of_list != kept:
            return None
        begun = run_times.clock()
        try:
            moved = elsewhere(run, self._backend, pending, kind.places, kind.addresses)
        except DeviceError:  # of which preparing says more
            return None
        if moved is None or (pending.values and not moved.rebind(pending.values, pending.operands)):
            return None
        moved.prepared_in = run_times.clock() - begun
        return moved
