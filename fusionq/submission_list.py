"""Submissions that wait for fusion, in the form that costs least to record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from fusionq.analysis.submission import Argument, ArrayArgument, ScalarArgument, Submission
from fusionq.backends.base import DeviceEvent
from fusionq.call_site import user_span
from fusionq.errors import ArgumentError
from fusionq.foreign import byte_bounds
from fusionq.options import DEFAULT, OptionValues
from fusionq.storage import Region, Storage

if TYPE_CHECKING:
    from fusionq.execution import PreparedRun
    from fusionq.queue import FusionQueue
    from fusionq.report import CacheOutcome, Report

ScalarValue = bool | int | float | np.generic

submission_numbers = count()
"""Orders the submissions of all queues."""


@dataclass(slots=True, eq=False)
class KnownSubmission:
    """A submission that has been checked: what stays the same each time that the same kernel is
    submitted with the same range, the same memory and scalars of the same types.

    It keeps no memory alive.  ``stores``: for each array argument, whether the kernel stores to
    it.  ``bounds``: (position among the scalars, least, greatest) for Python ints that the
    kernel holds in an integer type.  ``plain``: how it runs outside fusion mode.
    """

    submission: Submission
    stores: tuple[bool, ...]
    bounds: tuple[tuple[int, int, int], ...]
    plain: PreparedRun | None = None
    last_use: int = field(default=0)


class SubmissionList:
    """The submissions of one fusion, in order.

    ``memory`` keeps the arguments' memory alive until the list has been launched; ``values``
    are the scalar arguments of all submissions, one after the other.  After the launch
    ``event_of`` gives each submission's event.
    """

    ended = False
    error: BaseException | None = None
    """What kept the list from running."""
    events: Sequence[DeviceEvent | None] = ()
    run: PreparedRun | None = None
    """What the list became."""
    options: OptionValues = DEFAULT
    cache: CacheOutcome = "memory"
    fallback: str | None = None
    frontend_seconds = 0.0

    def __init__(self, queue: FusionQueue) -> None:
        self.queue = queue
        self.entries: list[KnownSubmission] = []
        self.memory: list[object] = []
        """For each array argument its Storage, or the foreign array itself."""
        self.foreign: list[object] = []
        """The foreign arrays among them."""
        self.values: list[ScalarValue] = []
        self.numbers: list[int] = []
        self.depends: list[DeviceEvent] = []

    def end(
        self,
        run: PreparedRun,
        options: OptionValues,
        cache: CacheOutcome,
        fallback: str | None,
        events: Sequence[DeviceEvent | None],
    ) -> None:
        """The list has been launched, as ``run``; ``events`` are its stages'."""
        self.run, self.options, self.cache, self.fallback = run, options, cache, fallback
        self.events = events
        self.ended = True
        self._release()

    def fail(self, error: BaseException) -> None:
        """The list could not be run."""
        self.error = error
        self.ended = True
        self._release()

    def _release(self) -> None:
        """Keep no memory alive any longer."""
        self.memory, self.foreign, self.depends = [], [], []

    def event_of(self, index: int) -> DeviceEvent | None:
        """The device's event for submission ``index``; None where there was nothing to run."""
        return None if self.run is None else self.events[self.run.stage_of[index]]

    def report(self) -> Report:
        """What became of the list."""
        from fusionq.execution import report_of

        assert self.run is not None
        return report_of(self.run, self.cache, self.fallback)

    def submissions(self) -> tuple[Submission, ...]:
        """The submissions with the present addresses and scalar values."""
        memory, values = iter(self.memory), iter(self.values)
        return tuple(
            replace(
                entry.submission,
                index=i,
                arguments=tuple(
                    _present(argument, memory, values) for argument in entry.submission.arguments
                ),
            )
            for i, entry in enumerate(self.entries)
        )

    def accesses(self) -> Iterator[tuple[int, Region, bool]]:
        """Each array argument: its submission's number, its memory, whether it is stored to."""
        memory = iter(self.memory)
        for number, entry in zip(self.numbers, self.entries, strict=True):
            for (argument, stores), held in zip(array_arguments(entry), memory, strict=False):
                if held is not None:
                    yield number, region_of(argument, held), stores


def check_bounds(entry: KnownSubmission, values: Sequence[ScalarValue]) -> None:
    """ArgumentError if a Python int does not fit the type that the kernel gives it."""
    for position, least, greatest in entry.bounds:
        value = values[position]
        if not least <= int(value) <= greatest:
            scalars = [a for a in entry.submission.arguments if isinstance(a, ScalarArgument)]
            raise ArgumentError(
                f"{user_span()}: argument {scalars[position].name!r} of kernel "
                f"{entry.submission.ir.name!r} is {value}, outside {least} … {greatest}, what the "
                "type that the kernel gives it can hold; pass a NumPy scalar of a wider type"
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


def _present(
    argument: Argument, memory: Iterator[object], values: Iterator[ScalarValue]
) -> Argument:
    if isinstance(argument, ScalarArgument):
        return replace(argument, value=next(values))
    held = next(memory)
    if isinstance(held, Storage) and held.address is not None:
        return replace(argument, address=held.address + argument.offset)
    return argument
