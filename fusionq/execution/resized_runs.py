"""The launches of one list serve others of its structure, of sizes that were never seen.

What depends on sizes is set anew in launches that are there: the range, extents and strides,
addresses, scalars.  The plan has to hold for them (``Validity``).  While it is open which candidate
is the fastest, what chooses among them for one such list is asked for the next ones.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import cast

from fusionq.analysis.aliasing import has_element_twice
from fusionq.analysis.submission import ArrayPlace, Operands, ScalarValue
from fusionq.analysis.validity import Validity
from fusionq.backends.base import Backend, ResizableLaunch
from fusionq.base.errors import DeviceError
from fusionq.base.options import UNFUSED, FusionOptions
from fusionq.base.size_order import size_order
from fusionq.execution.binding import Arguments, StageParameters, parameters_of
from fusionq.execution.split_launch import is_split
from fusionq.language.ranges import NdRange
from fusionq.planning.launching import launch_shape_of
from fusionq.planning.plan import StagePlan
from fusionq.submission.known import KnownSubmission
from fusionq.submission.moved_launches import find_addresses
from fusionq.submission.overwritten_memory import OverwrittenMemory
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun, RunChooser
from fusionq.submission.same_sizes import ListKind, Shared, is_alone, sharing


@dataclass(slots=True)
class _Resizable:
    """What lists of one structure and size class have in common."""

    run: PreparedRun
    """The last that was bound to one of them; it keeps its sizes."""
    chooser: RunChooser | None
    """What chose its plan, if something did."""
    validity: Validity
    """That of its plan."""
    stages: Sequence[tuple[StagePlan, StageParameters]]
    """Of its plan, with what their parameters are bound to."""
    one_view: Sequence[tuple[int, int]]
    """The arrays that share the memory of one before, with that one: they are one and the same
    view."""
    may_overlap: Sequence[tuple[int, int]]
    """The arrays, and the bytes of their elements, whose strides do not follow from their extents:
    no two elements may share memory."""
    given: PreparedRun | None = None
    """A copy, which has the sizes of the last list that it served."""
    sizes: object = None
    """What says which sizes ``given`` has."""

    @property
    def is_asked(self) -> bool:
        """Whether what chose the plan is to be asked before another list runs by it."""
        chooser = self.chooser
        return chooser is not None and (chooser.is_open or not chooser.untimed)

    def serves(self, operands: Sequence[Operands], places: Sequence[ArrayPlace]) -> bool:
        """Whether the plan holds for a list of this structure whose arrays are at ``places``."""
        for k, first in self.one_view:
            if places[k][0] != places[first][0] or places[k][1] != places[first][1]:
                return False
        for k, itemsize in self.may_overlap:
            if has_element_twice(places[k][0], places[k][1], itemsize):
                return False
        return self.validity.holds(operands)

    def resize(
        self,
        backend: Backend,
        operands: Sequence[Operands],
        places: Sequence[ArrayPlace],
        addresses: Sequence[int | None],
        values: Sequence[ScalarValue],
    ) -> bool:
        """Have the launches of ``given`` be over the ranges and arguments of a list; False, and
        they serve nobody any longer, where one of them cannot be."""
        run = self.given
        assert run is not None
        arguments = Arguments(operands, places, values, addresses)
        for (stage, of_stage), launch in zip(self.stages, run.launches, strict=True):
            shape = launch_shape_of(stage, operands, backend.target)
            if shape is None or is_split(backend, shape):
                return False
            if not cast(ResizableLaunch, launch).resize(of_stage.bindings(arguments), shape):
                return False
        run.bound_values[:] = values
        run.packed = None
        return True


class ResizedRuns:
    """Prepared runs of one queue by the structure of lists and the class of their sizes.  Beyond
    ``capacity`` all are forgotten."""

    def __init__(self, capacity: int = 256) -> None:
        self._capacity = capacity
        self._known: dict[Hashable, _Resizable] = {}
        self._of_one: dict[Hashable, _Resizable] = {}
        """Those that serve submissions that are recorded nowhere, by what these are like, the
        memory of their arrays and the class of their sizes."""

    def run_for(
        self, backend: Backend, pending: SubmissionList, options: FusionOptions
    ) -> PreparedRun | None:
        """Launches for ``pending``, whose ``kind`` is known; None where there are none, or what
        chooses among candidates is to be asked first."""
        kind = pending.kind
        if not self._known or not isinstance(kind, ListKind):
            return None
        memory, places, addresses = pending.memory, kind.places, kind.addresses
        operands, values = pending.operands(), pending.values
        known = self._known.get(_key_of(pending, options))
        if known is None or known.is_asked:
            return None
        is_ours = known.given is not None and is_alone(known)
        is_sized = is_ours and known.sizes == kind.entries  # then rebind asks about scalars
        if not is_sized and not known.serves(operands, places):
            return None
        run = known.run
        submitted, timings = pending.submitted(), dict(pending.admission)
        try:
            if is_ours:
                assert known.given is not None
                known.given.serve(run, backend, memory, places, addresses, submitted, timings)
            else:
                known.given = run.elsewhere(
                    backend, memory, places, addresses, submitted, timings
                )
            given = known.given
            if given is None:
                return None
            given.adaptive = known.chooser
            if is_sized:
                return given if not values or given.rebind(values, pending.operands) else None
            if known.resize(backend, operands, places, addresses, values):
                known.sizes = kind.entries
                return given
        except DeviceError:  # of which binding says more
            pass
        known.given = None
        return None

    def run_of_one(
        self,
        backend: Backend,
        like: KnownSubmission,
        sizes: object,
        operands: Operands,
        memory: Sequence[object],
    ) -> PreparedRun | None:
        """The same for a submission by itself, which is recorded nowhere: ``like`` another one but
        for its ``operands``; ``sizes`` is equal for those of its sizes.  The run is the
        submission's until the next is asked for."""
        if not self._known:
            return None
        places, values = operands.places, operands.values
        of_one = (operands,)
        try:
            found = sharing(backend, places, memory)
            if found is None:
                return None
            shared, addresses = found
            space = operands.range
            extents = space.global_range if isinstance(space, NdRange) else space
            how = like, shared, tuple(map(type, memory)), max(extents).bit_length()
            known = self._of_one.get(how)
            if known is None:
                known = self._known.get(size_key(of_one, memory, shared, UNFUSED))
                if known is None or known.chooser is not None:
                    return None
                if len(self._of_one) >= self._capacity:
                    self._of_one.clear()
                self._of_one[how] = known
            if not is_alone(known):
                known.given = None
            with OverwrittenMemory((like,), lambda: of_one, memory):
                given = known.given
                if given is None:
                    given = known.given = known.run.elsewhere(
                        backend, memory, places, addresses, known.run.submissions_of, {}
                    )
                    known.sizes = None
                    if given is None:
                        return None
                find_addresses(given.movable, given.pointers, backend, memory, places, addresses)
            if known.sizes == sizes:
                given.move(backend, memory, places, addresses)
                return given if not values or given.rebind(values, lambda: of_one) else None
            if known.serves(of_one, places):
                if known.resize(backend, of_one, places, addresses, values):
                    known.sizes = sizes
                    return given
                known.given = None
        except DeviceError:  # of which preparing says more
            pass
        return None

    def chooser(
        self, pending: SubmissionList, options: FusionOptions
    ) -> RunChooser | None:
        """What chooses among the candidates of lists like ``pending``, where it is known."""
        known = self._known.get(_key_of(pending, options))
        return None if known is None else known.chooser

    def keep(
        self,
        pending: SubmissionList,
        options: FusionOptions,
        run: PreparedRun,
        chooser: RunChooser | None = None,
    ) -> None:
        """``run`` has been bound to ``pending``, of whose arrays none share memory that are not one
        and the same view, by a plan that ``chooser`` chose."""
        key = _key_of(pending, options)
        if key is None:
            return
        self._of_one.clear()
        if run.is_trial or not run.pointers or run.is_persistent or None in run.launches:
            self._known.pop(key, None)
            return
        if len(self._known) >= self._capacity:
            self._known.clear()
        kind, plan = pending.kind, run.built.plan
        assert isinstance(kind, ListKind)
        forms = [operands.form for operands in pending.operands()]
        loose = [(f.contiguous, dtype.nbytes) for f in forms for dtype in f.dtypes]
        memories = kind.memories
        self._known[key] = _Resizable(
            run,
            chooser,
            plan.validity,
            list(zip(plan.stages, parameters_of(plan, pending), strict=True)),
            [(k, memories.index(m)) for k, m in enumerate(memories) if memories.index(m) != k],
            [(k, size) for k, (contiguous, size) in enumerate(loose) if not contiguous],
        )

    def forget(self, is_old: Callable[[PreparedRun], bool]) -> None:
        """Forget the runs that are old."""
        self._of_one.clear()
        for key, known in tuple(self._known.items()):
            if is_old(known.run):
                del self._known[key]


def _key_of(pending: SubmissionList, options: FusionOptions) -> Hashable | None:
    kind = pending.kind
    if not isinstance(kind, ListKind):
        return None
    if kind.of_structure is None:
        kind.of_structure = size_key(pending.operands(), pending.memory, kind.shared, options)
    return kind.of_structure


def size_key(
    submissions: Sequence[Operands],
    memory: Sequence[object],
    shared: Shared,
    options: FusionOptions,
) -> Hashable | None:
    """What lists have in common whose launches serve each other: the forms, the order of all sizes,
    and which arrays share memory, as plans have it (``planning.structure``); the options, what
    keeps each array, and the size class, by which candidates are chosen.  None for those that are
    not served: with several views of one memory, and with sizes of 0."""
    memories, distances = shared
    if any(distances):
        return None
    sizes: list[int] = []
    largest = 1
    forms = []
    for submission in submissions:
        forms.append(submission.form)
        space = submission.range
        extents = space.global_range if isinstance(space, NdRange) else space
        largest = max(largest, *extents)
        sizes += extents
        for place in submission.places:
            sizes += place[0]
    order = size_order(sizes)
    if order is None:
        return None
    return options, memories, largest.bit_length(), order, tuple(map(type, memory)), *forms
