"""Random lists of submissions that depend on each other across work-groups: neighbours, reversed
and strided elements, transposes, whole-array sums, over overlapping views of a few buffers.

Inside one submission no work-item touches an element that another one writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fusionq.ir.types import FLOAT32, INT32, INT64, ScalarType
from fusionq.language.ranges import Range
from tests.property.kernel_expressions import Draw
from tests.property.kernel_parameters import Axis, GatherArray, ItemArray, Parameter, RandomKernel
from tests.property.launches import random_slices
from tests.property.programs import BufferSpec, Program, SubmissionSpec, Touched, View

EXTENTS = (
    (24, 17, 40, 7, 33, 2, 1, 64),
    (6, 9, 5, 12, 2, 1, 7),
    (3, 4, 2, 5, 1),
)
"""Extents of ranges in one, two and three dimensions."""

READS = ("{i}", "{i} - 1", "{i} + 1", "{n} - 1 - {i}", "2 * {i}", "{i} // 2", "{i} + 3", "0")
"""Which element of an array a work-item reads, of its id and the array's extent."""

WRITES = ((1, 0, False), (1, 0, False), (1, 0, False), (1, 0, True), (2, 1, False), (1, 2, True))
"""Scale and offset of the element that a work-item writes, and whether from the end."""

IDS = "ijk"


class StageDraw:
    """Draws the parts of a program one after the other."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._dtype: ScalarType = draw(st.sampled_from((INT64, FLOAT32, INT32)))
        self._buffers: list[BufferSpec] = []

    def _of(self, values: Sequence[Any]) -> Any:
        return self._draw(st.sampled_from(values))

    def _chance(self, percent: int) -> bool:
        return bool(self._draw(st.integers(0, 99)) >= 100 - percent)

    def program(self) -> Program:
        ndims = [self._of((1, 1, 2, 1, 2, 3))]
        if self._chance(30):
            ndims.append(self._of((1, 2)))
        shapes = {ndim: tuple(self._of(EXTENTS[ndim - 1]) for _ in range(ndim)) for ndim in ndims}
        for number in range(self._of((2, 3, 2, 4))):
            shape = shapes[ndims[number % len(ndims)]]
            if self._chance(30):
                shape = tuple(n + self._of((0, 1, 5)) for n in shape)
            data = np.random.default_rng(number).integers(-9, 10, shape)
            self._buffers.append(BufferSpec(data.astype(self._dtype.dtype)))
        submissions: list[SubmissionSpec] = []
        for _ in range(self._of((2, 3, 4, 6, 8))):
            if submissions and self._chance(40):
                submissions.append(self._turned(self._of(submissions)))
            else:
                submissions.append(self._submission(shapes[self._of(ndims)]))
        return Program(tuple(self._buffers), tuple(submissions))

    # ------------------------------------------------------------------------- submissions
    def _submission(self, shape: tuple[int, ...]) -> SubmissionSpec:
        if self._chance(20):
            shape = tuple(max(n - self._of((0, 1, 3)), 1) for n in shape)
        if self._chance(10):
            shape = tuple(self._of((1, n)) for n in shape)
        ndim = len(shape)
        out = self._of(self._candidates(ndim))
        axes = [Axis(d, *self._of(WRITES)) for d in range(ndim)]
        if self._chance(20):
            axes = list(self._draw(st.permutations(axes)))
        if ndim == 1 and self._chance(10):
            shape = (1,)
        touched = Touched(self._buffers, Range(*shape))
        written = ItemArray("out", self._dtype, tuple(axes), True)
        view = self._view(out)
        accepted = touched.accept(written, view)
        assert accepted
        parameters: list[Parameter] = [written]
        arguments = [view]
        lines = [f"    value = out[{_indices(written)}] * 3 + 1"]
        for number in range(self._of((1, 1, 2))):
            source = self._of(range(len(self._buffers)))
            name = f"a{number}"
            read = GatherArray(name, self._dtype, self._buffers[source].data.ndim)
            view = self._view(source)
            if touched.accept(read, view):
                parameters.append(read)
                arguments.append(view)
                lines += self._reads(read, ndim)
        ids = [f"    {IDS[d]} = item.get_id({d})" for d in range(ndim)]
        guard = " and ".join(
            f"0 <= {axis.text(f'out.shape[{d}]')} < out.shape[{d}]" for d, axis in enumerate(axes)
        )
        source_text = "\n".join(
            [
                f"def kernel(item, {', '.join(p.name for p in parameters)}):",
                *ids,
                f"    if not ({guard}):",
                "        return",
                *lines,
                f"    out[{_indices(written)}] = value",
                "",
            ]
        )
        kernel = RandomKernel(source_text, ndim, tuple(parameters))
        return SubmissionSpec(kernel, Range(*shape), tuple(arguments))

    def _candidates(self, ndim: int) -> list[int]:
        """The buffers that a kernel of ``ndim`` dimensions can write."""
        fit = [n for n, b in enumerate(self._buffers) if b.data.ndim == ndim]
        return fit or [0]

    def _view(self, buffer: int) -> View:
        shape = self._buffers[buffer].data.shape
        if self._chance(25):
            return View(buffer, random_slices(self._draw, shape))
        return View(buffer, (slice(None),) * len(shape))

    def _reads(self, read: GatherArray, ndim: int) -> list[str]:
        """Statements that add some of an array's elements to ``value``."""
        name = read.name
        if self._chance(15):  # all of the array
            lines, pad = [], "    "
            for d in range(read.ndim):
                lines.append(f"{pad}for {'xyz'[d]} in range({name}.shape[{d}]):")
                pad += "    "
            return [*lines, f"{pad}value += {name}[{', '.join('xyz'[: read.ndim])}]"]
        dims = list(self._draw(st.permutations(range(ndim))))[: read.ndim]
        if self._chance(60):
            dims = sorted(dims)
        lines = []
        for _ in range(self._of((1, 2, 3))):
            indices = []
            for d in range(read.ndim):
                pattern = self._of(READS)
                own = IDS[dims[d]] if d < len(dims) else "0"
                indices.append(pattern.format(i=own, n=f"{name}.shape[{d}]"))
            inside = " and ".join(
                f"0 <= {index} < {name}.shape[{d}]" for d, index in enumerate(indices)
            )
            lines += [f"    if {inside}:", f"        value += {name}[{', '.join(indices)}]"]
        return lines

    def _turned(self, earlier: SubmissionSpec) -> SubmissionSpec:
        """The same kernel with its arguments in another order, as a time step back; the same
        again where that would race."""
        views = earlier.arguments
        turned = (*views[1:], views[0])
        touched = Touched(self._buffers, earlier.range)  # type: ignore[arg-type]  # a Range
        for parameter, view in zip(earlier.kernel.parameters, turned, strict=True):
            assert isinstance(view, View)
            if self._buffers[view.buffer].data.ndim != parameter.ndim or not touched.accept(
                parameter, view
            ):
                return earlier
        return replace(earlier, arguments=turned)


def _indices(array: ItemArray) -> str:
    return ", ".join(
        axis.text(f"{array.name}.shape[{d}]") for d, axis in enumerate(array.axes) if axis
    )


@st.composite
def stage_programs(draw: Any) -> Program:
    """A random list of submissions with dependences across work-groups."""
    return StageDraw(draw).program()
