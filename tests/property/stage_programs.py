"""Random lists of submissions that depend on each other across work-groups: neighbours, reversed
and strided elements, transposes, whole-array sums, elements at places that bits, narrow integers,
scalars and other elements name, blocks with loops that carry values on, atomic operations, over
overlapping views of a few buffers.

Inside one submission no work-item touches an element that another one writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fusionq.ir.types import FLOAT32, INT32, INT64, WEAK_INT, ScalarType
from fusionq.language.ranges import Range
from tests.property.group_accesses import SharedArray
from tests.property.index_forms import FORMS, READS, VALUES, FormAxis
from tests.property.kernel_expressions import Draw, typed
from tests.property.kernel_parameters import (
    Axis,
    GatherArray,
    ItemArray,
    LoopAxis,
    Parameter,
    RandomKernel,
    ScalarParameter,
    ShiftedAxis,
)
from tests.property.launches import random_slices
from tests.property.programs import BufferSpec, Program, SubmissionSpec, Touched, View

EXTENTS = (
    (24, 17, 40, 7, 33, 2, 1, 64),
    (6, 9, 5, 12, 2, 1, 7),
    (3, 4, 2, 5, 1),
)
"""Extents of ranges in one, two and three dimensions."""

WRITES = ((1, 0, False), (1, 0, False), (1, 0, False), (1, 0, True), (2, 1, False), (1, 2, True))
"""Scale and offset of the element that a work-item writes, and whether from the end."""

BOUNDS = ("{i}", "{i}, -1, -2", "{i} % 3, 9, 2", "{i} // 2, {i}")
"""Of loops, by an id."""

SHIFTS = (1, 0, 2, 3, -1, 7, 1 << 62)

METHODS = {"i": (("add",), ("max",), ("xor",)), "f": (("max",), ("min",))}
"""Atomic operations whose order is not seen, by kind of type."""

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
        axes = self._axes(ndim)
        if ndim == 1 and self._chance(10):
            shape = (1,)
        touched = Touched(self._buffers, Range(*shape))
        written = ItemArray("out", self._dtype, axes, True)
        view = self._view(out)
        accepted = touched.accept(written, view)
        assert accepted
        shift = ScalarParameter("shift", WEAK_INT)
        parameters: list[Parameter | SharedArray] = [written, shift]
        arguments: list[View | int] = [view, self._of(SHIFTS)]
        lines = [f"value = out[{_indices(written)}] * 3 + 1"]
        if isinstance(axes[-1], LoopAxis) and self._chance(50):
            lines.append(f"if t > {axes[-1].first}: value += out[t - {axes[-1].step}]")
        others: list[GatherArray] = []
        for number in range(self._of((1, 1, 2))):
            source = self._of(range(len(self._buffers)))
            read = GatherArray(f"a{number}", self._dtype, self._buffers[source].data.ndim)
            view = self._view(source)
            if touched.accept(read, view):
                parameters.append(read)
                arguments.append(view)
                lines += self._reads(read, ndim, others)
                others.append(read)
        if self._chance(20):
            own = self._of(VALUES).format(i=IDS[0], n="out.shape[0]")
            lines.append(f"value += {typed(self._dtype)}({own})")
        store = f"out[{_indices(written)}] = value"
        lines.append(f"if value > 9: {store}" if self._chance(10) else store)
        if self._chance(15):
            target = self._of(range(len(self._buffers)))
            methods = self._of(METHODS[self._dtype.kind])
            shared = SharedArray("h", self._dtype, self._buffers[target].data.ndim, methods)
            view = self._view(target)
            if touched.accept(shared, view):
                parameters.append(shared)
                arguments.append(view)
                lines += self._atomic(shared, ndim)
        names = ", ".join(p.name for p in parameters)
        text = [f"def kernel(item, {names}):"]
        text += [f"    {IDS[d]} = item.get_id({d})" for d in range(ndim)]
        if isinstance(axes[-1], LoopAxis):
            text += [f"    for t in {axes[-1].loop('out.shape[0]')}:"]
            text += [f"        {line}" for line in lines]
        else:
            guard = " and ".join(axis.guard(f"out.shape[{d}]") for d, axis in enumerate(axes))
            text += [f"    if not ({guard}):", "        return"]
            text += [f"    {line}" for line in lines]
        source_text = "\n".join(["import fusionq as fq", "import numpy as np", "", "", *text, ""])
        kernel = RandomKernel(source_text, ndim, tuple(parameters))
        return SubmissionSpec(kernel, Range(*shape), tuple(arguments))

    def _axes(self, ndim: int) -> tuple[Axis, ...]:
        """Which element of the array that it writes belongs to a work-item."""
        if ndim == 1 and self._chance(15):
            return (LoopAxis(0, width=self._of((2, 3, 4, 8)), blocks=self._of((True, False))),)
        axes = [Axis(d, *self._of(WRITES)) for d in range(ndim)]
        if self._chance(10):
            axes[-1] = ShiftedAxis(ndim - 1)
        elif self._chance(15):
            axes[-1] = FormAxis(ndim - 1, form=self._of(FORMS))
        if self._chance(20):
            axes = list(self._draw(st.permutations(axes)))
        return tuple(axes)

    def _atomic(self, shared: SharedArray, ndim: int) -> list[str]:
        """An atomic operation on some element of an array."""
        indices = [
            self._of(READS).format(i=IDS[min(d, ndim - 1)], n=f"h.shape[{d}]")
            for d in range(shared.ndim)
        ]
        if self._dtype.kind == "i" and self._chance(50):  # an index that is not known
            indices[0] = "value % 5"
        inside = " and ".join(f"0 <= {x} < h.shape[{d}]" for d, x in enumerate(indices))
        call = f"fq.AtomicRef(h, ({', '.join(indices)},)).fetch_{shared.methods[0]}(value)"
        return [f"if {inside}: {call}"]

    def _candidates(self, ndim: int) -> list[int]:
        """The buffers that a kernel of ``ndim`` dimensions can write."""
        fit = [n for n, b in enumerate(self._buffers) if b.data.ndim == ndim]
        return fit or [0]

    def _view(self, buffer: int) -> View:
        shape = self._buffers[buffer].data.shape
        if self._chance(25):
            return View(buffer, random_slices(self._draw, shape))
        return View(buffer, (slice(None),) * len(shape))

    def _reads(self, read: GatherArray, ndim: int, others: Sequence[GatherArray]) -> list[str]:
        """Statements that add some of an array's elements to ``value``; ``others`` may say
        which."""
        name = read.name
        if self._chance(15):  # all of the array
            lines, pad = [], ""
            for d in range(read.ndim):
                lines.append(f"{pad}for {'xyz'[d]} in range({name}.shape[{d}]):")
                pad += "    "
            return [*lines, f"{pad}value += {name}[{', '.join('xyz'[: read.ndim])}]"]
        dims = list(self._draw(st.permutations(range(ndim))))[: read.ndim]
        if self._chance(60):
            dims = sorted(dims)
        if self._chance(8):  # a part that the id says
            inside = f"0 <= u < {name}.shape[0]"  # t may count what is written
            bounds = self._of(BOUNDS).format(i=IDS[0])
            element = f"{name}[{', '.join(['u', *'0' * (read.ndim - 1)])}]"
            return [f"for u in range({bounds}):", f"    if {inside}: value += {element}"]
        lines = []
        for _ in range(self._of((1, 2, 3))):
            indices, checks = [], []
            for d in range(read.ndim):
                pattern = self._of(READS)
                own = IDS[dims[d]] if d < len(dims) else "0"
                indices.append(pattern.format(i=own, n=f"{name}.shape[{d}]"))
            if others and self._dtype.kind == "i" and self._chance(30):
                other = others[0]
                places = ["0"] * (other.ndim - 1) + [IDS[0]]
                checks = [f"{p} < {other.name}.shape[{d}]" for d, p in enumerate(places)]
                indices[-1] = f"{other.name}[{', '.join(places)}] % 7"
            checks += [f"0 <= {index} < {name}.shape[{d}]" for d, index in enumerate(indices)]
            lines.append(f"if {' and '.join(checks)}: value += {name}[{', '.join(indices)}]")
        return lines

    def _turned(self, earlier: SubmissionSpec) -> SubmissionSpec:
        """The same kernel with its arguments in another order, as a time step back; the same
        again where that would race."""
        views = [a for a in earlier.arguments if isinstance(a, View)]
        turned = iter((*views[1:], views[0]))
        arguments = tuple(next(turned) if isinstance(a, View) else a for a in earlier.arguments)
        touched = Touched(self._buffers, earlier.range)  # type: ignore[arg-type]  # a Range
        for parameter, view in zip(earlier.kernel.parameters, arguments, strict=True):
            if isinstance(view, View) and (
                self._buffers[view.buffer].data.ndim != parameter.ndim
                or not touched.accept(parameter, view)
            ):
                return earlier
        return replace(earlier, arguments=arguments)


def _indices(array: ItemArray) -> str:
    return ", ".join(
        axis.text(f"{array.name}.shape[{d}]") for d, axis in enumerate(array.axes) if axis
    )


@st.composite
def stage_programs(draw: Any) -> Program:
    """A random list of submissions with dependences across work-groups."""
    return StageDraw(draw).program()
