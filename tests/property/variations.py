"""Other sizes, scalars and contents for a random list: the same kernels, for which a queue may
have a plan that does or does not hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from fusionq.language.local_memory import LocalAccessor
from fusionq.language.ranges import NdRange, Range
from tests.property.group_programs import accept_apart
from tests.property.kernel_expressions import Draw
from tests.property.kernel_parameters import ItemArray, ScalarParameter
from tests.property.launches import Scalar, Slices, random_data, random_scalar
from tests.property.programs import (
    BufferSpec,
    Program,
    SubmissionSpec,
    Touched,
    View,
    root_of,
)


class VariationDraw:
    """Draws another program with the kernels of ``program``; equal extents stay equal, most of
    the time."""

    def __init__(self, draw: Draw, program: Program) -> None:
        self._draw = draw
        self._program = program
        self._extents: dict[int, int] = {}

    def _of(self, values: Sequence[Any]) -> Any:
        return self._draw(st.sampled_from(values))

    def variation(self) -> Program:
        """With other sizes; with other scalars and contents only where these would race, or arrays
        share memory with each other, or work-groups divide the range."""
        program = self._program
        own_memory = all(root_of(b.data) is b.data for b in program.buffers)
        if own_memory and self._draw(st.integers(0, 9)) < 8:
            buffers = tuple(self._buffer(b) for b in program.buffers)
            submissions = tuple(self._resized(s) for s in program.submissions)
            if all(fits(s, buffers) for s in submissions):
                return Program(buffers, submissions)
        return replace(program, submissions=tuple(map(self._rescaled, program.submissions)))

    def _extent(self, extent: int) -> int:
        if extent not in self._extents:
            more = self._of((0, 1, -1, 2, 5, -2))
            self._extents[extent] = max(extent + more, 0)
        if self._draw(st.integers(0, 19)) == 19:
            return max(extent + self._of((1, -1)), 0)
        return self._extents[extent]

    def _buffer(self, buffer: BufferSpec) -> BufferSpec:
        shape = [self._extent(n) for n in buffer.data.shape]
        data = random_data(shape, buffer.dtype, self._draw(st.integers(0, 50)))
        return replace(buffer, data=data)

    def _resized(self, submission: SubmissionSpec) -> SubmissionSpec:
        range_ = submission.range
        if isinstance(range_, NdRange):
            local = range_.local_range
            groups = [g // n for g, n in zip(range_.global_range, local, strict=True)]
            more = [self._of((0, 0, 1)) for _ in groups]
            range_ = NdRange(
                [(g + m) * n for g, m, n in zip(groups, more, local, strict=True)], local
            )
        else:
            range_ = Range(*(self._extent(n) for n in range_))
        rescaled = self._rescaled(submission)
        arguments = tuple(
            View(a.buffer, self._slices(a)) if isinstance(a, View) else a
            for a in rescaled.arguments
        )
        return replace(rescaled, range=range_, arguments=arguments)

    def _slices(self, view: View) -> Slices:
        """The slices of the view, which end where the buffer does if they did."""
        return tuple(
            slice(self._edge(one.start, extent), self._edge(one.stop, extent), one.step)
            for one, extent in zip(
                view.slices, self._program.buffers[view.buffer].data.shape, strict=True
            )
        )

    def _edge(self, place: int | None, extent: int) -> int | None:
        """A place as far from the end of a dimension as it was, if that is near."""
        if place is None or place <= extent // 2:
            return place
        return max(self._extents.get(extent, extent) + place - extent, 0)

    def _rescaled(self, submission: SubmissionSpec) -> SubmissionSpec:
        arguments: list[View | Scalar | LocalAccessor] = [
            random_scalar(self._draw, parameter.type)
            if isinstance(parameter, ScalarParameter)
            else argument
            for parameter, argument in zip(
                submission.kernel.parameters, submission.arguments, strict=True
            )
        ]
        return replace(submission, arguments=tuple(arguments))


def fits(submission: SubmissionSpec, buffers: Sequence[BufferSpec]) -> bool:
    """Whether no work-items of a submission race, a kernel for work-groups has elements
    everywhere, and one without guards writes inside its arrays.  Of linear ids that a kernel
    divides by extents that is not known."""
    arrays = [
        (parameter, argument)
        for parameter, argument in zip(
            submission.kernel.parameters, submission.arguments, strict=True
        )
        if isinstance(argument, View)
    ]
    range_ = submission.range
    extents = range_.global_range if isinstance(range_, NdRange) else range_
    if any(isinstance(p, ItemArray) and p.ndim > len(extents) for p, _ in arrays):
        return False
    if not submission.kernel.guarded and not all(
        parameter.lies_inside(extents, buffers[view.buffer].data[view.slices].shape)
        for parameter, view in arrays
        if isinstance(parameter, ItemArray)
    ):
        return False
    if isinstance(range_, NdRange):
        accepted: list[tuple[bool, set[int]]] = []
        return all(
            buffers[view.buffer].data[view.slices].size
            and accept_apart(buffers, accepted, parameter, view)
            for parameter, view in arrays
        )
    touched = Touched(buffers, range_)
    return all(touched.accept(parameter, view) for parameter, view in arrays)


@st.composite
def varied(draw: Any, programs: st.SearchStrategy[Program], count: int = 3) -> tuple[Program, ...]:
    """A program and others with its kernels."""
    first = draw(programs)
    return (first, *(VariationDraw(draw, first).variation() for _ in range(count - 1)))
