"""A submission that has been checked, in the form that costs least to record again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, count, repeat
from types import CodeType, FrameType
from typing import TYPE_CHECKING

from fusionq.analysis.submission import (
    Argument,
    ArrayArgument,
    ArrayPlace,
    DeclaredArgument,
    Operands,
    ScalarArgument,
    ScalarValue,
    Submission,
    SubmissionForm,
)
from fusionq.base.options import FusionOptions
from fusionq.memory.foreign_array import byte_bounds
from fusionq.memory.region import MemoryRegion
from fusionq.memory.storage import Storage
from fusionq.submission.run import PreparedRun

if TYPE_CHECKING:
    from fusionq.analysis.stored_whole import WholeStores
    from fusionq.analysis.validity import Validity

use_numbers = count()
"""Counts uses, so that caches can tell what was used least recently."""

_serials = count(1)


class DeferredSubmission:
    """A submission that is made, ``like`` another one of its form, when it is first asked for;
    ``operands`` None: that one itself."""

    __slots__ = ("_made", "_operands", "like")

    def __init__(self, like: Submission, operands: Operands | None = None) -> None:
        self.like, self._operands = like, operands
        self._made = like if operands is None else None

    @property
    def operands(self) -> Operands:
        """What it has beside its form."""
        if self._operands is None:
            like = self.like
            arrays = [a for a in like.arguments if isinstance(a, ArrayArgument)]
            places = [(a.shape, a.strides, a.storage, a.offset, a.address) for a in arrays]
            values = [a.value for a in like.arguments if isinstance(a, ScalarArgument)]
            assert like.form is not None, "a submission that has been checked"
            self._operands = Operands(like.form, like.range, places, values)
        return self._operands

    @property
    def made(self) -> Submission:
        """The submission."""
        if self._made is None:
            (self._made,) = submissions_of([self], self.operands.values)
        return self._made


@dataclass(eq=False)
class KnownSubmission:
    """A submission that has been checked: what stays the same each time that the same kernel is
    submitted with the same range, the same memory and scalars of the same types.

    It keeps no memory alive.  ``stores``: for each array argument, whether the kernel stores to
    it.  ``scalars``: how many scalar arguments there are.  ``bounds``: (position among them,
    least, greatest) for Python ints that the kernel holds in an integer type.  ``plain``: how
    it runs outside fusion mode.

    ``check_again`` checks integers that it has not been seen with; raises as ``admit`` does.
    ``checks``: for which integers no access is known to leave its array.  ``whole_stores``: for
    which sizes and integers it stores whole arrays, as far as asked.  ``rests_on``: the
    positions among the scalars of those integers.  ``passed``: values of them that passed.
    """

    deferred: DeferredSubmission
    stores: tuple[bool, ...]
    scalars: int
    bounds: tuple[tuple[int, int, int], ...]
    check_again: Callable[[KnownSubmission, Sequence[ScalarValue]], None]
    plain: PreparedRun | None = None
    last_use: int = field(default=0)
    checks: list[Validity] = field(default_factory=list)
    whole_stores: list[WholeStores] = field(default_factory=list)
    rests_on: tuple[int, ...] = ()
    passed: set[tuple[ScalarValue, ...]] = field(default_factory=set)
    is_kept: bool = False
    """Whether the same submission will be found again; if not, neither will a list of it."""
    apart: tuple[tuple[str, str, bool], ...] = ()
    """``Kernel.apart``, which ``check_apart`` checks of arrays in other memory."""
    sized: KnownSubmission | None = None
    """Another of the same kernel, flags and sizes, which stands for all of these; None where that
    is this one."""
    begins: UnfusedList | None = None
    """What is known of lists that begin with it."""
    code: CodeType | None = None
    """The user's function with the call after which the arguments are called, and at which
    ``instruction`` that is."""
    instruction: int = -1
    fitting: set[tuple[ScalarValue, ...]] | None = None
    """Scalars that have been checked, where something has to be; of the types of this submission.
    Nobody need ask about them again."""
    serial: int = 0
    """Its number among those that have been asked for it, which no other has later."""

    def numbered(self) -> int:
        """The ``serial``."""
        if not self.serial:
            self.serial = next(_serials)
        return self.serial

    @property
    def submission(self) -> Submission:
        """What was checked."""
        return self.deferred.made

    def is_called_in(self, frame: FrameType | None) -> bool:
        """Whether the call that ``frame`` is at is the one after which arguments are called."""
        return frame is None or (
            frame.f_lasti == self.instruction and frame.f_code is self.code
        )

    def elsewhere(
        self, places: Sequence[ArrayPlace], values: Sequence[ScalarValue]
    ) -> KnownSubmission | None:
        """The same with arrays of the same sizes at other ``places`` and other scalars; None where
        these have not been checked."""
        passed: set[tuple[ScalarValue, ...]] = set()
        if self.rests_on:
            integers = self.integers(values)
            if integers not in self.passed:
                return None
            passed.add(integers)
        same = self.deferred.operands
        entry = self._with(Operands(same.form, same.range, places, values))
        entry.rests_on, entry.passed, entry.sized = self.rests_on, passed, self
        return entry

    def fits(self, values: Sequence[ScalarValue]) -> bool:
        """Whether scalar ``values`` are known to pass all checks of a submission like this."""
        for position, least, greatest in self.bounds:
            if not least <= int(values[position]) <= greatest:
                return False
        return not self.rests_on or self.integers(values) in self.passed

    def resized(self, operands: Operands) -> KnownSubmission | None:
        """The same of other sizes; None where these have not been checked."""
        entry = self._with(operands)
        entry.rests_on, entry.passed = (), set()
        return entry if entry.passes(operands) else None

    def _with(self, operands: Operands) -> KnownSubmission:
        """The same with other ``operands``, without what these have passed; no arrays of its kind
        have to be ``apart``.  The rest is as the class has it, which takes a fifth of setting it
        all."""
        entry: KnownSubmission = object.__new__(KnownSubmission)
        entry.deferred = DeferredSubmission(self.deferred.like, operands)
        entry.stores, entry.scalars, entry.bounds = self.stores, self.scalars, self.bounds
        entry.check_again, entry.checks = self.check_again, self.checks
        entry.whole_stores = self.whole_stores
        return entry

    def serves(self, operands: Operands) -> bool:
        """Whether a submission like this with other ``operands``, sizes and scalars, is known to
        pass all checks."""
        for position, least, greatest in self.bounds:
            if not least <= int(operands.values[position]) <= greatest:
                return False
        of_one = (operands,)
        return any([validity.holds(of_one) for validity in self.checks])

    def passes(self, operands: Operands) -> bool:
        """Whether one of the ``checks`` serves this submission with these ``operands``; their
        scalars are then remembered."""
        for validity in self.checks:
            if validity.holds((operands,)):
                if operands.values and validity.scalars:
                    self._rest_on(validity, operands.form)
                if len(self.passed) >= 4096:
                    self.passed.clear()
                self.passed.add(self.integers(operands.values))
                return True
        return False

    def _rest_on(self, validity: Validity, form: SubmissionForm) -> None:
        rests_on = {form.positions[k] for k in validity.scalars}
        if not rests_on <= set(self.rests_on):
            self.rests_on = tuple(sorted(rests_on | set(self.rests_on)))
            self.passed.clear()

    def integers(self, values: Sequence[ScalarValue]) -> tuple[ScalarValue, ...]:
        """Those of the scalar ``values`` that the check of indices rests on."""
        return tuple([values[position] for position in self.rests_on])


LONG = 1.5
"""So many times the host's time for a launch takes one that the host does not keep waiting: where
launches take less, the host is what takes the time, and is fastest at the end of the list, where
they may be one graph."""


class UnfusedList:
    """A list that runs each submission by itself, as ``run``.  Without ``entries``: lists that
    begin alike go on in different ways."""

    __slots__ = ("_least_seconds", "entries", "first_arguments", "options", "run")

    def __init__(
        self,
        options: FusionOptions,
        entries: tuple[KnownSubmission, ...] = (),
        run: PreparedRun | None = None,
        launch_seconds: float = 0.0,
    ) -> None:
        self.options, self.entries, self.run = options, entries, run
        self._least_seconds = LONG * launch_seconds * len(entries)
        arrays = accumulate([len(entry.stores) for entry in entries], initial=0)
        scalars = accumulate([entry.scalars for entry in entries], initial=0)
        self.first_arguments = list(zip(arrays, scalars, strict=True))
        """How many arrays and scalars the submissions before each have."""

    def gains(self) -> bool:
        """Whether to launch the next such list while it is recorded gains: a launch takes that much
        longer than ``launch_seconds``, by the times of the list.  One whose time is wanted is
        not."""
        run = self.run
        chooser = None if run is None or run.is_trial else run.adaptive
        if chooser is None or not chooser.untimed:
            return False
        return chooser.seconds > self._least_seconds


def array_arguments(entry: KnownSubmission) -> list[tuple[ArrayArgument, bool]]:
    """The array arguments, and whether the kernel stores to them."""
    arrays = [a for a in entry.submission.arguments if isinstance(a, ArrayArgument)]
    return list(zip(arrays, entry.stores, strict=True))


def region_of(argument: ArrayArgument, held: object) -> MemoryRegion:
    """An array argument's memory, for dependence tests: of a Buffer all of it."""
    if isinstance(held, Storage):
        return held.region
    assert argument.address is not None
    below, above = byte_bounds(argument.shape, argument.strides, argument.dtype.nbytes)
    return MemoryRegion(None, argument.address + below, argument.address + above)


def submissions_of(
    deferred: Sequence[DeferredSubmission],
    values: Sequence[ScalarValue],
    memory: Sequence[object] = (),
) -> tuple[Submission, ...]:
    """The submissions with scalar ``values``, and where ``memory`` is held its addresses."""
    memory_, values_ = chain(memory, repeat(None)), iter(values)
    submissions = []
    for i, one in enumerate(deferred):
        like, operands = one.like, one.operands
        places = iter(operands.places)
        arguments = tuple([_present(a, places, memory_, values_) for a in like.arguments])
        submissions.append(like.like(i, operands.range, arguments))
    return tuple(submissions)


def _present(
    argument: Argument,
    places: Iterator[ArrayPlace],
    memory: Iterator[object],
    values: Iterator[ScalarValue],
) -> Argument:
    if isinstance(argument, ScalarArgument):
        return ScalarArgument(
            argument.name, argument.label, argument.type, next(values), argument.part
        )
    if isinstance(argument, DeclaredArgument):
        return argument
    shape, strides, storage, offset, address = next(places)
    held = next(memory)
    if isinstance(held, Storage) and held.address is not None:
        address = held.address + offset
    return argument.elsewhere(shape, strides, storage, offset, address)
