"""Submissions that wait for fusion, in the form that costs least to record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count, repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from fusionq.analysis.aliasing import places
from fusionq.analysis.submission import (
    Argument,
    ArrayArgument,
    ArrayPlace,
    DeclaredArgument,
    Form,
    Operands,
    ScalarArgument,
    ScalarValue,
    Submission,
)
from fusionq.backends.base import DeviceEvent
from fusionq.base.call_site import user_span
from fusionq.base.errors import ArgumentError
from fusionq.base.options import DEFAULT, UNFUSED, FusionOptions
from fusionq.base.target import Target
from fusionq.memory.foreign_array import byte_bounds
from fusionq.memory.region import Region
from fusionq.memory.storage import Storage
from fusionq.submission.run import CallArguments, PreparedRun

if TYPE_CHECKING:
    from fusionq.analysis.validity import Validity
    from fusionq.report.model import CacheOutcome

_T = TypeVar("_T")

use_numbers = count()
"""Counts uses, so that caches can tell what was used least recently."""


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
            (self._made,) = _submitted([self], self.operands.values)
        return self._made


@dataclass(slots=True, eq=False)
class KnownSubmission:
    """A submission that has been checked: what stays the same each time that the same kernel is
    submitted with the same range, the same memory and scalars of the same types.

    It keeps no memory alive.  ``stores``: for each array argument, whether the kernel stores to
    it.  ``scalars``: how many scalar arguments there are.  ``bounds``: (position among them,
    least, greatest) for Python ints that the kernel holds in an integer type.  ``plain``: how
    it runs outside fusion mode.

    ``check_again`` checks integers that it has not been seen with; raises as ``admit`` does.
    ``checks``: for which integers no access is known to leave its array.  ``rests_on``: the
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
    rests_on: tuple[int, ...] = ()
    passed: set[tuple[ScalarValue, ...]] = field(default_factory=set)
    is_kept: bool = False
    """Whether the same submission will be found again; if not, neither will a list of it."""
    apart: tuple[tuple[str, str, bool], ...] = ()
    """``Kernel.apart``, which ``check_apart`` checks of arrays in other memory."""
    sized: KnownSubmission | None = None
    """Another of the same kernel, flags and sizes, which stands for all of these; None where that
    is this one."""

    @property
    def submission(self) -> Submission:
        """What was checked."""
        return self.deferred.made

    def elsewhere(
        self, places: Sequence[ArrayPlace], values: Sequence[ScalarValue]
    ) -> KnownSubmission | None:
        """The same with arrays of the same sizes at other ``places`` and other scalars; None where
        these have not been checked."""
        if self.rests_on:
            integers = self.integers(values)
            if integers not in self.passed:
                return None
            passed = {integers}
        else:
            passed = set()
        deferred = self.deferred
        same = deferred.operands
        operands = Operands(same.form, same.range, places, values)
        return KnownSubmission(
            DeferredSubmission(deferred.like, operands),
            self.stores, self.scalars, self.bounds, self.check_again, None, 0, self.checks,
            self.rests_on, passed, False, self.apart, self,
        )  # fmt: skip

    def resized(self, operands: Operands) -> KnownSubmission | None:
        """The same of other sizes; None where these have not been checked."""
        entry = KnownSubmission(
            DeferredSubmission(self.deferred.like, operands),
            self.stores, self.scalars, self.bounds, self.check_again, None, 0, self.checks,
        )  # fmt: skip
        return entry if entry.passes(operands) else None

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

    def _rest_on(self, validity: Validity, form: Form) -> None:
        rests_on = {form.positions[k] for k in validity.scalars}
        if not rests_on <= set(self.rests_on):
            self.rests_on = tuple(sorted(rests_on | set(self.rests_on)))
            self.passed.clear()

    def integers(self, values: Sequence[ScalarValue]) -> tuple[ScalarValue, ...]:
        """Those of the scalar ``values`` that the check of indices rests on."""
        return tuple([values[position] for position in self.rests_on])


class ListOwner(Protocol):
    """What a list needs of the queue that it belongs to."""

    @property
    def target(self) -> Target:
        """The device as the compiler sees it."""

    def abort_list(self, pending: SubmissionList, cause: str) -> None:
        """End the list's fusion mode, if it still waits, and run it unfused."""

    def leave_fusion_mode(self, pending: SubmissionList, *, by_itself: bool) -> None:
        """The list ends; ``by_itself``: nobody has asked for that."""

    def run_single(self, entry: KnownSubmission, call: CallArguments) -> DeviceEvent | None:
        """Run one submission by itself; its event, None if there was nothing to run."""

    def runs_after(self, pending: SubmissionList, other: SubmissionList) -> bool:
        """Whether ``pending``, a list of its own, runs after ``other`` anyway."""


_NONE: Mapping[Any, Any] = MappingProxyType({})


class SubmissionList:
    """The submissions of one fusion, in order.

    ``memory`` keeps the arguments' memory alive until the list has been launched: for each
    array argument its Storage, or the foreign array itself; ``foreign`` are the latter.
    ``values`` are the scalar arguments of all submissions, one after the other.  ``depends``:
    what must run before.  After the launch ``event_of`` gives each submission's event.
    """

    __slots__ = (
        "_admission", "cache", "depends", "ended", "entries", "error", "errors", "events",
        "fallback", "foreign", "is_kept", "left_out", "memory", "numbers", "options", "owner",
        "run", "stage_of", "timings", "values", "waits_for",
    )  # fmt: skip

    def __init__(self, owner: ListOwner | None) -> None:
        self.owner = owner
        self.entries: list[KnownSubmission] = []
        self.numbers: list[int] = []
        """When each submission was made, among those of all queues."""
        self.memory: Sequence[object] = ()
        self.foreign: Sequence[object] = ()
        self.values: Sequence[ScalarValue] = ()
        self.depends: Sequence[DeviceEvent] = ()
        self.waits_for: Sequence[DeviceEvent] = ()
        """The same, still known when the list has run."""
        self.ended = False
        self.error: BaseException | None = None
        """What kept the list, or a part of it, from running."""
        self.errors: Mapping[int, BaseException] = _NONE
        """The same by submission, where others have run."""
        self.is_kept = False
        """Whether the arguments' memory stays when the list has run, until ``let_go``."""
        self.run: PreparedRun | None = None
        """What the list became; None where each submission ran by itself."""
        self.options = DEFAULT
        self.cache: CacheOutcome = "memory"
        self.timings: Mapping[str, float] = _NONE
        """Seconds by phase that this time took."""
        self.fallback: str | None = None
        self.left_out: Sequence[str] = ()
        """Commands that were called while it grew and did not join it, and why."""
        self.events: Sequence[DeviceEvent | None] = ()
        """One for each stage of the first run, or for each submission."""
        self.stage_of: Sequence[int] | None = None
        """The stage of each submission in the first run, whatever ``run`` is by now; None where
        each submission ran by itself."""
        self._admission: dict[str, float] | None = None

    @property
    def admission(self) -> dict[str, float]:
        """Seconds spent on checking new submissions, by phase; for more to be added."""
        if self._admission is None:
            self._admission = {}
        return self._admission

    @classmethod
    def of(cls, entries: list[KnownSubmission], call: CallArguments) -> SubmissionList:
        """A list that does not wait for fusion; ``call`` has the arguments of all ``entries``."""
        submissions = cls(None)
        submissions.entries, submissions.memory = entries, call.memory
        submissions.foreign, submissions.values = call.foreign, call.values
        return submissions

    def add(
        self,
        entry: KnownSubmission,
        memory: Sequence[object],
        values: Sequence[ScalarValue],
        call: CallArguments | None,
        number: int,
    ) -> int:
        """Another submission, the ``number``-th of all queues; its place in the list.  ``call`` has
        its foreign arrays and dependences, if it has any.  The arguments' lists are given away."""
        entries = self.entries
        place = len(entries)
        try:
            if place:
                self.memory += memory  # type: ignore[operator]  # a list while it grows
            else:
                self.memory = memory
            if values:
                self.values = _joined(self.values, values)
            if call is not None:
                self.foreign = _joined(self.foreign, call.foreign)
                if call.depends:
                    self.wait_for(call.depends)
            self.numbers.append(number)
            entries.append(entry)
        except BaseException:  # an interrupt; the submission is in the list whole or not at all
            self._cut(place)
            raise
        return place

    def add_all(self, entries: Sequence[KnownSubmission], call: CallArguments) -> None:
        """The submissions of a list that was made before, with the arguments of ``call``, all of
        them or none."""
        before = len(self.entries)
        try:
            if call.depends:
                self.wait_for(call.depends)
            for entry, own in SubmissionList.of(list(entries), call).calls():
                own.foreign = list(own.foreign)
                number = entry.last_use = next(use_numbers)
                self.add(entry, list(own.memory), list(own.values), own, number)
        except BaseException:
            self._cut(before)
            raise

    def wait_for(self, events: Sequence[DeviceEvent]) -> None:
        """The list runs after ``events`` too."""
        self.depends = self.waits_for = [*self.depends, *events]

    def _cut(self, length: int) -> None:
        """Leave the first ``length`` submissions."""
        del self.entries[length:], self.numbers[length:]
        self.memory = self.memory[: sum(len(entry.stores) for entry in self.entries)]
        self.values = self.values[: sum(entry.scalars for entry in self.entries)]
        self.foreign = [held for held in self.memory if not isinstance(held, Storage)]

    def abort(self, cause: str) -> None:
        """End the fusion mode of the queue, where this list still waits."""
        if self.owner is not None:
            self.owner.abort_list(self, cause)

    def runs_after(self, other: SubmissionList) -> bool:
        """Whether what is submitted now runs after ``other``'s submissions anyway."""
        return other is self or (self.owner is not None and self.owner.runs_after(self, other))

    def end(
        self, run: PreparedRun, options: FusionOptions, events: Sequence[DeviceEvent | None]
    ) -> None:
        """The list has been launched, as ``run``; ``events`` are its stages'."""
        self.run = run
        self.options = options
        self.events, self.stage_of = events, run.stage_of
        self.ended = True
        if not self.is_kept:
            self.let_go()

    def end_unfused(self, reason: str) -> None:
        """Each submission has been launched by itself, for ``reason``."""
        self.options, self.fallback = UNFUSED, reason
        self.release()

    def fail(self, error: BaseException) -> None:
        """The list could not be run."""
        self.error, self.fallback = error, f"the list could not be run: {error}"
        self.release()

    def release(self) -> None:
        """Nothing waits any longer; keep no memory alive, unless somebody will take it over."""
        self.ended = True
        if not self.is_kept:
            self.let_go()

    def let_go(self) -> None:
        """Keep no memory alive."""
        self.memory = self.foreign = self.depends = ()

    def event_of(self, index: int) -> DeviceEvent | None:
        """The device's event for submission ``index``, -1 being the last; None where there was
        nothing to run."""
        if not self.entries:
            return None
        if self.stage_of is not None:
            index = self.stage_of[index]
        return self.events[index] if index < len(self.events) else None

    def error_of(self, index: int) -> BaseException | None:
        """What kept submission ``index``, or for -1 anything, from running."""
        return self.errors.get(index) if self.errors and index >= 0 else self.error

    def operands(self) -> list[Operands]:
        """Those of the submissions, when they were submitted, with the present scalar values."""
        values = self.values
        if not values:
            return [entry.deferred.operands for entry in self.entries]
        found: list[Operands] = []
        start = 0
        for entry in self.entries:
            own, stop = entry.deferred.operands, start + entry.scalars
            found.append(Operands(own.form, own.range, own.places, values[start:stop]))
            start = stop
        return found

    def submitted(self) -> Callable[[], tuple[Submission, ...]]:
        """Gives the submissions with the present scalar values; keeps no memory alive."""
        return partial(_submitted, [entry.deferred for entry in self.entries], self.values)

    def submissions(self) -> tuple[Submission, ...]:
        """The submissions with the present scalar values, and the present addresses where the
        memory is still held."""
        return _submitted([e.deferred for e in self.entries], self.values, self.memory)

    def calls(self) -> Iterator[tuple[KnownSubmission, CallArguments]]:
        """Each submission with its own part of the arguments; of ``depends`` none has any."""
        at = value = 0
        for entry in self.entries:
            memory = self.memory[at : at + len(entry.stores)]
            at += len(memory)
            foreign = [held for held in memory if not isinstance(held, Storage)]
            values = self.values[value : value + entry.scalars]
            value += entry.scalars
            yield entry, CallArguments.of(memory, foreign, values)

    def accesses(self) -> Iterator[tuple[Region, bool]]:
        """Each array argument: its memory, and whether it is stored to."""
        for _, region, stores in self.accesses_by_submission():
            yield region, stores

    def accesses_by_submission(self) -> Iterator[tuple[int, Region, bool]]:
        """The same, with the position of the submission."""
        memory = iter(self.memory)
        for position, entry in enumerate(self.entries):
            for argument, stores in array_arguments(entry):
                yield position, region_of(argument, next(memory)), stores


def _joined(all_so_far: Sequence[_T], more: Sequence[_T]) -> Sequence[_T]:
    """Both, in the first one's place where that is a list already."""
    if not all_so_far:
        return more
    all_so_far += more  # type: ignore[operator]
    return all_so_far


def check_values(entry: KnownSubmission, values: Sequence[ScalarValue]) -> None:
    """ArgumentError if scalars of a known submission do not fit: see ``check_bounds``, and those
    with which an index certainly leaves its array."""
    if entry.bounds:
        check_bounds(entry, values)
    if entry.rests_on and entry.integers(values) not in entry.passed:
        entry.check_again(entry, values)


def check_bounds(entry: KnownSubmission, values: Sequence[ScalarValue]) -> None:
    """ArgumentError if a Python int does not fit the type that the kernel gives it."""
    for position, least, greatest in entry.bounds:
        value = values[position]
        if not least <= int(value) <= greatest:
            scalars = [a for a in entry.submission.arguments if isinstance(a, ScalarArgument)]
            raise ArgumentError(
                f"{user_span()}: argument {scalars[position].name!r} of kernel "
                f"{entry.submission.name!r} is {value}, outside {least} … {greatest}, what the "
                f"type that the kernel gives it can hold; {_instead(int(value), least, greatest)}"
            )


def _instead(value: int, least: int, greatest: int) -> str:
    """What to pass in place of an integer that does not fit: the first wider type that it fits."""
    for name in ("int16", "int32", "int64", "uint64"):
        limits = np.iinfo(name)
        if limits.min <= value <= limits.max and limits.max > greatest:
            return f"pass np.{name}({value})"
    return "no integer type can; pass a float, or a smaller number"


def check_apart(
    kernel: str, apart: Sequence[tuple[str, str, bool]], arguments: Sequence[Argument]
) -> None:
    """ArgumentError for arrays that overlap where a statement of the ``kernel`` writes to one
    while it reads the other."""
    if not apart:
        return
    arrays = [a for a in arguments if isinstance(a, ArrayArgument)]
    place = dict(zip([a.name for a in arrays], places(arrays), strict=True))
    for written, read, may_be_one in apart:
        a, b = place[written], place[read]
        one = a == b and a.by_address is None
        if a.group == b.group and not (one and may_be_one):
            raise ArgumentError(
                f"kernel {kernel!r} assigns to a row or slice of {written!r} what it computes "
                f"from one of {read!r}, element by element, and the two arguments share memory"
                f"{'' if one else ' but are not the same view'}: NumPy would read all before it "
                "writes. Pass arrays that do not overlap, or write the loop"
            )


def array_arguments(entry: KnownSubmission) -> list[tuple[ArrayArgument, bool]]:
    """The array arguments, and whether the kernel stores to them."""
    arrays = [a for a in entry.submission.arguments if isinstance(a, ArrayArgument)]
    return list(zip(arrays, entry.stores, strict=True))


def region_of(argument: ArrayArgument, held: object) -> Region:
    """An array argument's memory, for dependence tests: of a Buffer all of it."""
    if isinstance(held, Storage):
        return held.region
    assert argument.address is not None
    below, above = byte_bounds(argument.shape, argument.strides, argument.dtype.nbytes)
    return Region(None, argument.address + below, argument.address + above)


def _submitted(
    deferred: Sequence[DeferredSubmission],
    values: Sequence[ScalarValue],
    memory: Sequence[object] = (),
) -> tuple[Submission, ...]:
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
        return ScalarArgument(argument.name, argument.label, argument.type, next(values))
    if isinstance(argument, DeclaredArgument):
        return argument
    shape, strides, storage, offset, address = next(places)
    held = next(memory)
    if isinstance(held, Storage) and held.address is not None:
        address = held.address + offset
    return argument.elsewhere(shape, strides, storage, offset, address)
