"""Submissions that wait for fusion, in the form that costs least to record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import CodeType, MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from fusionq.analysis.submission import (
    Argument,
    Operands,
    ScalarArgument,
    ScalarValue,
    Submission,
    parameter_of,
)
from fusionq.backends.base import DeviceEvent
from fusionq.base.call_site import labels_of_call, user_frame
from fusionq.base.options import DEFAULT, UNFUSED, FusionOptions
from fusionq.base.target import Target
from fusionq.memory.region import MemoryRegion
from fusionq.memory.storage import Storage
from fusionq.submission.call_arguments import CallArguments
from fusionq.submission.known import (
    KnownSubmission,
    array_arguments,
    region_of,
    submissions_of,
    use_numbers,
)
from fusionq.submission.run import PreparedRun

if TYPE_CHECKING:
    from fusionq.report.model import CacheOutcome

_T = TypeVar("_T")

Call: TypeAlias = tuple[CodeType, int]
"""A call in the user's program: the function and the instruction."""


class ListScalars:
    """The scalar arguments of a list: ``arguments``, each with its submission, in order; ``first``:
    the position of each submission's first one."""

    __slots__ = ("arguments", "first")

    def __init__(
        self, entries: Sequence[KnownSubmission], calls: Mapping[int, Call]
    ) -> None:
        self.arguments: list[tuple[int, ScalarArgument]] = []
        self.first: list[int] = []
        for s, entry in enumerate(entries):
            self.first.append(len(self.arguments))
            arguments: Sequence[Argument] = entry.deferred.like.arguments
            if s in calls:
                arguments = _called(arguments, calls[s])
            self.arguments += [(s, a) for a in arguments if isinstance(a, ScalarArgument)]


def _called(arguments: Sequence[Argument], call: Call) -> list[Argument]:
    """The arguments with the names that they have in ``call``; after their parameters where that
    cannot be told."""
    parameters = dict.fromkeys(parameter_of(a).partition(".")[0] for a in arguments)
    labels = labels_of_call(*call) or ()
    names = dict(zip(parameters, labels, strict=False))
    found: list[Argument] = []
    for argument in arguments:
        parameter, dot, part = parameter_of(argument).partition(".")
        found.append(replace(argument, label=names.get(parameter, parameter) + dot + part))
    return found


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

    def runs_after(self, pending: SubmissionList, other: object) -> bool:
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
        "_admission", "_operands", "_scalars", "alike", "asked", "began", "began_after", "cache",
        "calls_elsewhere", "depends", "ended", "entries", "error", "errors", "events", "fallback",
        "foreign", "is_kept", "kind", "launched", "left_out", "memory", "next_launch", "numbers",
        "options", "owner", "run", "stage_of", "timings", "values", "waits_for",
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
        """Whether the arguments' memory stays when the list has run, until ``release_memory``."""
        self.kind: object = None
        """What is known of it until it has run; see ``same_sizes.kind_of``."""
        self.alike: object = None
        """What lists of that kind have in common (``same_sizes.Alike``), where none has a plan."""
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
        self.asked: FusionOptions | None = None
        """The options that it will end with, where these are known while it grows."""
        self.launched: Sequence[DeviceEvent | None] = ()
        """The events of its first submissions that have been launched already."""
        self.next_launch = -1
        """The submission with which the next ones are launched, -1 where they wait for the end."""
        self.calls_elsewhere: dict[int, Call] = {}
        """Of submissions that another call of the user's had made before, which gave the arguments'
        names, the calls that made them here."""
        self.began: object = None
        """The change that fusion mode's beginning was (``base.changes``), where it has begun so."""
        self.began_after: object = None
        """The latest before."""
        self._admission: dict[str, float] | None = None
        self._operands: list[Operands] = []
        self._scalars: ListScalars | None = None

    @property
    def scalars(self) -> ListScalars:
        """The scalar arguments of a list that grows no longer."""
        if self._scalars is None:
            self._scalars = ListScalars(self.entries, self.calls_elsewhere)
        return self._scalars

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
                if self.values:
                    self.values += values  # type: ignore[operator]  # a list while it grows
                else:
                    self.values = values
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

    def is_called_elsewhere(self, entry: KnownSubmission) -> None:
        """The next submission is ``entry``, and perhaps not by the call that gave its arguments'
        names."""
        frame = user_frame()
        if frame is not None and not entry.is_called_in(frame):
            self.calls_elsewhere[len(self.entries)] = frame.f_code, frame.f_lasti

    def add_all(self, submitted: SubmissionList, call: CallArguments) -> None:
        """The submissions of a list that was made before, with the arguments of ``call``, all of
        them or none."""
        before, entries = len(self.entries), submitted.entries
        elsewhere = {before + s: called for s, called in submitted.calls_elsewhere.items()}
        try:
            if call.depends:
                self.wait_for(call.depends)
            for entry, own in SubmissionList.of(list(entries), call).calls():
                own.foreign = list(own.foreign)
                number = entry.last_use = next(use_numbers)
                self.add(entry, list(own.memory), list(own.values), own, number)
            self.calls_elsewhere |= elsewhere
        except BaseException:
            self._cut(before)
            raise

    def wait_for(self, events: Sequence[DeviceEvent]) -> None:
        """The list runs after ``events`` too."""
        self.depends = self.waits_for = [*self.depends, *events]

    def take_back(self) -> None:
        """Leave all submissions but the last."""
        self._cut(len(self.entries) - 1)

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

    def runs_after(self, other: object) -> bool:
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
            self.release_memory()

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
        self.kind = self.alike = None
        if not self.is_kept:
            self.release_memory()

    def release_memory(self) -> None:
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
        """Those of the submissions, when they were submitted, with the present scalar values; of a
        list that grows no longer."""
        if not self._operands:
            self._operands = self._present_operands()
        return self._operands

    def _present_operands(self) -> list[Operands]:
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
        return partial(submissions_of, [entry.deferred for entry in self.entries], self.values)

    def submissions(self) -> tuple[Submission, ...]:
        """The submissions with the present scalar values, and the present addresses where the
        memory is still held."""
        return submissions_of([e.deferred for e in self.entries], self.values, self.memory)

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

    def accesses(self) -> Iterator[tuple[MemoryRegion, bool]]:
        """Each array argument: its memory, and whether it is stored to."""
        for _, region, stores in self.accesses_by_submission():
            yield region, stores

    def accesses_by_submission(self) -> Iterator[tuple[int, MemoryRegion, bool]]:
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
