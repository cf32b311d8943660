"""Launches of more work-items than the device takes at once: several, of a part each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

import numpy as np

from fusionq.backends.base import Backend, Binding, DeviceEvent, PreparedLaunch
from fusionq.backends.wrapped_event import WrappedEvent
from fusionq.base.errors import DeviceError
from fusionq.base.span import Span
from fusionq.base.target import FloatMode, LaunchShape
from fusionq.codegen.padded_rows import with_padded_rows
from fusionq.execution.programs import program_of
from fusionq.ir.nodes import Kernel

MOST_PARTS = 1024
"""More would take hours, if each work-item takes a nanosecond."""


def is_split(backend: Backend, shape: LaunchShape) -> bool:
    """Whether the device does not take a launch of ``shape`` at once."""
    return prod(shape.global_range) > backend.target.largest_launch


def split_launch(
    backend: Backend,
    kernel: Kernel,
    bindings: Sequence[Binding],
    shape: LaunchShape,
    fp: FloatMode,
    timings: dict[str, float],
    submitted: Span,
) -> SplitLaunch:
    """A launch of ``kernel`` over ``shape``; DeviceError, which names where it was ``submitted``,
    where that takes more than MOST_PARTS."""
    from fusionq.passes.launch_part import launch_part

    most = backend.target.largest_launch
    items = prod(shape.global_range)
    if items > MOST_PARTS * most:
        raise DeviceError(
            f"{submitted}: kernel {kernel.name!r} over "
            f"{' x '.join(map(str, shape.global_range))} has {items:,} work-items; "
            f"the device takes {most:,} in one launch, and fusionq makes at most "
            f"{MOST_PARTS:,} of one. Let each work-item do more, in a loop"
        )
    part = launch_part(with_padded_rows(kernel))
    program = program_of(backend, part.kernel, fp, timings)
    return SplitLaunch(
        [
            backend.prepare(program, [*bindings, *part.values(shape, first)], of_part)
            for first, of_part in parts(shape, most)
        ]
    )


def parts(whole: LaunchShape, most: int) -> Iterator[tuple[tuple[int, ...], LaunchShape]]:
    """Boxes of work-groups, of at most ``most`` work-items or one work-group, that are ``whole``
    together: the first work-group of each, and its shape.  The slowest dimension is cut first."""
    room = max(most // prod(whole.local_range), 1)
    counts: list[int] = []
    sizes: list[int] = []
    for extent, local in zip(whole.global_range[::-1], whole.local_range[::-1], strict=True):
        counts.insert(0, count := extent // local)
        sizes.insert(0, min(count, room))
        room //= sizes[0]
    starts = (range(0, count, size) for count, size in zip(counts, sizes, strict=True))
    for first in product(*starts):
        groups = [
            min(size, count - at) for at, size, count in zip(first, sizes, counts, strict=True)
        ]
        extents = (n * local for n, local in zip(groups, whole.local_range, strict=True))
        yield first, LaunchShape(tuple(extents), whole.local_range)


class SplitLaunch:
    """Several launches as one; see ``PreparedLaunch``."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[PreparedLaunch]) -> None:
        self.parts = parts

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> None:
        """See ``PreparedLaunch``."""
        for part in self.parts:
            part.set_scalar(name, value)

    def launch(self, depends: Sequence[DeviceEvent] = ()) -> DeviceEvent:
        """Enqueue all parts, in order; returns at once."""
        first = last = self.parts[0].launch(depends)
        for part in self.parts[1:]:
            last = part.launch()
        return _SplitEvent(first, last)


class _SplitEvent(WrappedEvent):
    """The event of the last of several launches, which run in order."""

    __slots__ = ("_first",)

    def __init__(self, first: DeviceEvent, last: DeviceEvent) -> None:
        super().__init__(last)
        self._first = first

    def wait(self) -> None:
        """Block until all have run."""
        self._inner.wait()

    def times(self) -> tuple[int, int] | None:
        """When the first began, and the last ended."""
        first, last = self._first.times(), self._inner.times()
        return None if first is None or last is None else (first[0], last[1])
