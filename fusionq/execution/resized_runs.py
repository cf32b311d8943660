"""The launches of one list serve others of its structure, of sizes that were never seen.

What depends on sizes is set anew in launches that are there: the range, extents and strides,
addresses, scalars.  The plan has to hold for them (``Validity``).  While it is open which candidate
is the fastest, what chooses among them for one such list is asked for the next ones.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import cast

from fusionq.analysis.validity import largest_extent
from fusionq.backends.base import Backend, Binding, ResizableLaunch
from fusionq.base.errors import DeviceError
from fusionq.base.options import FusionOptions
from fusionq.execution.binding import ListArguments, parameters_of
from fusionq.execution.split_launch import is_split
from fusionq.memory.storage import Storage
from fusionq.planning.launching import launch_shape_of
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun, RunChooser
from fusionq.submission.same_sizes import ListKind, is_alone


@dataclass(slots=True)
class _Resizable:
    """What lists of one structure and size class have in common."""

    run: PreparedRun
    """The last that was bound to one of them; it keeps its sizes."""
    chooser: RunChooser | None
    """What chose its plan, if something did."""
    given: PreparedRun | None = None
    """A copy, which has the sizes of the last list that it served."""


class ResizedRuns:
    """Prepared runs of one queue by the structure of lists and the class of their sizes.  Beyond
    ``capacity`` all are forgotten."""

    def __init__(self, capacity: int = 256) -> None:
        self._capacity = capacity
        self._known: dict[Hashable, _Resizable] = {}

    def run_for(
        self, backend: Backend, pending: SubmissionList, key: Hashable
    ) -> PreparedRun | None:
        """Launches for ``pending``, a list like others by its ``key``; None where there are none,
        or what chooses among candidates is to be asked first."""
        known = self._known.get(key)
        if known is None or (known.chooser is not None and not known.chooser.untimed):
            return None
        kind = pending.kind
        if not isinstance(kind, ListKind) or not known.run.built.plan.validity.holds(
            pending.operands()
        ):
            return None
        run, memory, addresses = known.run, pending.memory, kind.addresses
        submitted, timings = pending.submitted(), dict(pending.admission)
        try:
            if known.given is not None and is_alone(known):
                known.given.serve(
                    run, backend, memory, kind.places, addresses, submitted, timings
                )
            else:
                known.given = run.elsewhere(
                    backend, memory, kind.places, addresses, submitted, timings
                )
            given = known.given
            if given is not None and _resize(backend, given, pending, addresses):
                given.adaptive = known.chooser
                return given
        except DeviceError:  # of which binding says more
            pass
        known.given = None
        return None

    def chooser(self, key: Hashable) -> RunChooser | None:
        """What chooses among the candidates of such lists, where it is known."""
        known = self._known.get(key)
        return None if known is None else known.chooser

    def keep(self, key: Hashable, run: PreparedRun, chooser: RunChooser | None = None) -> None:
        """``run`` has been bound to a list with this ``key``, by a plan that ``chooser`` chose."""
        if (
            run.is_trial
            or not run.pointers
            or run.is_persistent
            or None in run.launches
        ):
            self._known.pop(key, None)
            return
        if len(self._known) >= self._capacity:
            self._known.clear()
        self._known[key] = _Resizable(run, chooser)

    def forget(self, is_old: Callable[[PreparedRun], bool]) -> None:
        """Forget the runs that are old."""
        for key, known in tuple(self._known.items()):
            if is_old(known.run):
                del self._known[key]


def size_key(of_plans: Hashable, pending: SubmissionList, options: FusionOptions) -> Hashable:
    """What lists have in common whose launches serve each other: the ``plans_key``, the options,
    which of the arrays are in Buffers, and the size class, by which candidates are chosen."""
    in_buffers = tuple([type(held) is Storage for held in pending.memory])
    return of_plans, options, in_buffers, largest_extent(pending.operands()).bit_length()


def _resize(
    backend: Backend,
    run: PreparedRun,
    pending: SubmissionList,
    addresses: Sequence[int | None],
) -> bool:
    """Have the launches of ``run`` be over the ranges and arguments of ``pending``, whose arrays
    are at ``addresses``; False, and they serve nobody any longer, where one of them cannot be."""
    plan = run.built.plan
    arguments = ListArguments(backend, run, pending, addresses)
    stages = zip(plan.stages, run.launches, parameters_of(plan, pending), strict=True)
    for stage, launch, of_stage in stages:
        shape = launch_shape_of(stage, arguments.operands, backend.target)
        if shape is None or is_split(backend, shape):
            return False
        bindings: list[Binding] = [
            p.value(arguments) for p in of_stage.parameters if p is not None
        ]
        if not cast(ResizableLaunch, launch).resize(bindings, shape):
            return False
    run.bound_values[:] = pending.values
    run.packed = None
    return True
