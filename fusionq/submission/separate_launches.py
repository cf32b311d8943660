"""The launches of a list that runs each submission by itself, for all lists of its kind.

They are copies of those that its submissions have by themselves, with the pointers and the scalars
of another list set, as those of a plan are where lists differ in memory and scalars alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from fusionq.analysis.submission import ArrayPlace, ScalarValue, Sized
from fusionq.analysis.validity import Validity
from fusionq.backends.base import Backend, DeviceEvent, MovableLaunch
from fusionq.submission.moved_launches import changed_places, move_launches
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun


class SeparateLaunches:
    """One launch for each submission, which lists take one after the other."""

    __slots__ = ("_bound", "_launches", "_pointers", "_rests_on", "_setters")

    def __init__(self) -> None:
        self._launches: list[MovableLaunch | None] = []
        """None where there is nothing to launch."""
        self._pointers: list[dict[str, int]] = []
        """As ``PreparedRun.pointers``."""
        self._setters: list[list[tuple[MovableLaunch, str]]] = []
        """For each scalar argument of the list, the launches and their parameters that have it."""
        self._bound: list[ScalarValue] = []
        """The values that they have."""
        self._rests_on: list[tuple[int, Validity]] = []
        """The submissions whose launches serve some scalars only, with which."""

    @classmethod
    def of(
        cls, backend: Backend, pending: SubmissionList, runs: Iterator[PreparedRun]
    ) -> SeparateLaunches | None:
        """Those of lists like ``pending``, whose submissions run by themselves as ``runs``; None
        where these are more than launches, or serve no other memory."""
        made = cls()
        first = accumulate([len(entry.stores) for entry in pending.entries], initial=0)
        for s, (run, start) in enumerate(zip(runs, first, strict=False)):
            if not run.pointers or not run.can_be_one or run.is_persistent or run.profiled:
                return None
            (launch,), (pointers,) = run.launches, run.pointers
            places = {name: start + place for name, place in pointers.items()}
            copy = None if launch is None else backend.movable(launch, places)
            if copy is None and launch is not None:
                return None
            made._launches.append(copy)
            made._pointers.append(places)
            for of_one in run.setters:
                names = [name for _, name in of_one]
                made._setters.append([] if copy is None else [(copy, name) for name in names])
            made._bound += run.bound_values
            if run.plan_depends_on_scalars:
                made._rests_on.append((s, run.built.plan.validity))
        return made

    def rebind(self, values: Sequence[ScalarValue], operands: Sequence[Sized]) -> bool:
        """Give the launches the scalar ``values`` of a list with these ``operands``; False, and
        nothing done, where one does not serve them."""
        changed = changed_places(values, self._bound)
        if not changed:
            return True
        if not all([validity.holds((operands[s],)) for s, validity in self._rests_on]):
            return False
        for k in changed:
            for launch, name in self._setters[k]:
                launch.set_scalar(name, values[k])
            self._bound[k] = values[k]
        return True

    def move(
        self,
        backend: Backend,
        memory: Sequence[object],
        places: Sequence[ArrayPlace],
        addresses: list[int | None],
    ) -> None:
        """As ``PreparedRun.move``."""
        move_launches(self._launches, self._pointers, backend, memory, places, addresses)

    def launch(self, events: list[DeviceEvent | None]) -> None:
        """Enqueue all, and add the event of each."""
        for launch in self._launches:
            events.append(None if launch is None else launch.launch())
