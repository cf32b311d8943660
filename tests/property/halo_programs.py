"""Random chains of stencils over temporaries that the user looks at or not: guards, edges that are
left out or clamped, interiors by conditions and by ranges, linear ids that are divided, loops over
neighbours, reversed and strided elements, distances that scalars say, conditions on data, ranges
that differ, buffers of several types, temporaries that are written or read again, inputs that are
overwritten, overlapping views, time steps over two buffers that take turns.

Inside one submission no work-item touches an element that another one writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fusionq.ir.types import (
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    UINT8,
    WEAK_INT,
    ScalarType,
)
from fusionq.language.ranges import NdRange, Range
from tests.property import index_forms
from tests.property.kernel_expressions import Draw, typed
from tests.property.kernel_parameters import (
    Axis,
    GatherArray,
    ItemArray,
    Parameter,
    RandomKernel,
    ScalarParameter,
)
from tests.property.launches import random_slices
from tests.property.programs import BufferSpec, Flag, Program, SubmissionSpec, Touched, View

EXTENTS = ((24, 17, 40, 7, 33, 3, 1, 64), (6, 9, 5, 12, 2, 1, 7), (3, 4, 2, 5, 3, 6, 1))
"""Extents in one, two and three dimensions."""

NEIGHBOURS = (
    "{i} - 1", "{i} + 1", "{i}", "{i} + 2", "{i} - 3", "max({i} - 1, 0)", "min({i} + 1, {n} - 1)",
    "min(max({i} + shift, 0), {n} - 1)", "{i} + shift", "{i} - k", "{i} + k", "{n} - 1 - {i}",
    "{i} // 2", "2 * {i}",
)  # fmt: skip
"""Which element a work-item reads, of its index, the array's extent, a scalar and a loop's
variable."""

NEAR = (*NEIGHBOURS[:-3], *index_forms.NEAR)
"""Those at a bounded distance."""

OTHERS = tuple(element for element in NEAR if element != "{i}")
"""Those of them that are not one's own."""

WRITES = ((1, 0, False), (1, 0, False), (1, 0, False), (1, 0, True), (2, 1, False), (1, 1, False))
"""Scale and offset of the element that a work-item writes, and whether from the end."""

TEMPORARY: tuple[Flag, ...] = ("private", "local", "internal", "internal", "none", "none", "none")

TYPES: tuple[tuple[ScalarType, ...], ...] = (
    (INT64,), (FLOAT32,), (INT32,), (INT32, INT64, UINT8), (FLOAT32, FLOAT64),
)  # fmt: skip
"""Of the buffers of a program."""

OFTEN_SEVERAL = (*TYPES[3:], *TYPES[3:], TYPES[1])
"""Such that most programs have several."""

UNSEEN: tuple[Flag, ...] = ("private", "local", "internal", "internal", "internal", "none")
"""Of those that nobody looks at, but for a few, so that halos save their memory."""

STEPS = (2, 3, 3, 4, 5, 6, 7)
"""Time steps over two buffers that take turns; of near ones only the first four."""

IDS = "ijk"

LINEAR = (
    ("i = item.get_linear_id()",),
    ("i = item.get_linear_id() // out.shape[1]", "j = item.get_linear_id() % out.shape[1]"),
    (
        "i = item.get_linear_id() // (out.shape[1] * out.shape[2])",
        "j = item.get_linear_id() // out.shape[2] % out.shape[1]",
        "k = item.get_linear_id() % out.shape[2]",
    ),
)
"""The same ids of a linear one, by dimensions."""


class HaloDraw:
    """Draws the parts of a program one after the other."""

    def __init__(self, draw: Draw, near: bool, ndims: Sequence[int]) -> None:
        self._draw = draw
        self._near = near
        self._dtypes: tuple[ScalarType, ...] = draw(
            st.sampled_from(OFTEN_SEVERAL if near else TYPES)
        )
        self._ndim: int = draw(st.sampled_from(ndims))
        self._buffers: list[BufferSpec] = []

    def _of(self, values: Sequence[Any]) -> Any:
        return self._draw(st.sampled_from(values))

    def _chance(self, percent: int) -> bool:
        return bool(self._draw(st.integers(0, 99)) >= 100 - percent)

    def program(self) -> Program:
        self._shape = tuple(self._of(EXTENTS[self._ndim - 1]) for _ in range(self._ndim))
        inputs = [self._buffer("none") for _ in range(self._of((1, 1, 2)))]
        made = list(inputs)
        submissions: list[SubmissionSpec] = []
        if self._chance(15 if self._near else 30):
            submissions += self._turns(inputs)
        few = (2, 2, 2, 1) if self._near else (1, 2, 1, 3)
        for _ in range(self._of(few if not submissions else (0, 1))):
            target = self._buffer(self._flag())
            whole = not self._chance(15) if self._near else self._chance(60)
            submissions.append(self._submission(target, made[-2:], whole))
            made.append(target)
            if self._chance(8):  # written again
                submissions.append(self._submission(target, made[-2:], True))
            if self._chance(8):  # an input is overwritten
                submissions.append(self._submission(self._of(inputs), made[-2:], True))
        for _ in range(1 if self._near else self._of((1, 1, 1, 2))):
            target = self._of(inputs) if self._chance(15) else self._buffer("none")
            submissions.append(self._submission(target, made[-3:], True))
            if self._chance(15):
                made.append(target)
        return Program(tuple(self._buffers), tuple(submissions))

    def _buffer(self, flag: Flag) -> int:
        shape = self._shape
        if self._chance(15):
            shape = tuple(max(n + self._of((0, 1, -1)), 1) for n in shape)
        data = np.random.default_rng(len(self._buffers)).integers(-9, 10, shape)
        dtype = self._of(self._dtypes)
        self._buffers.append(BufferSpec(data.astype(dtype.dtype), flag))
        return len(self._buffers) - 1

    def _flag(self) -> Flag:
        flag: Flag = "none" if self._chance(5) else self._of(UNSEEN if self._near else TEMPORARY)
        return flag

    def _turns(self, inputs: Sequence[int]) -> list[SubmissionSpec]:
        """Time steps from an input to another buffer and back, by one kernel or two."""
        first, second = inputs[0], self._buffer("none" if self._chance(80) else "internal")
        self._buffers[second] = replace(
            self._buffers[second],
            data=np.full_like(self._buffers[first].data, self._buffers[second].data.flat[0]),
        )
        others = [*inputs[1:]] if self._chance(30) else []
        codes = [
            self._submission(second, [first, *others], self._chance(50))
            for _ in range(self._of((1, 1, 2)))
        ]
        other = {first: second, second: first}
        steps = []
        for n in range(self._of(STEPS[:4] if self._near else STEPS)):
            step = codes[n % len(codes)]
            if n % 2:
                turned = tuple(
                    View(other.get(a.buffer, a.buffer), a.slices) if isinstance(a, View) else a
                    for a in step.arguments
                )
                step = replace(step, arguments=turned)
            steps.append(step)
        return steps

    # ------------------------------------------------------------------------- submissions
    def _submission(self, out: int, sources: Sequence[int], whole: bool) -> SubmissionSpec:
        """A kernel that writes ``out`` from elements of ``sources``; of the ``whole`` of it, or
        perhaps less."""
        shape = self._buffers[out].data.shape
        extents: list[int] = []
        axes: list[Axis] = []
        inside = self._chance(30)
        least = 0 if self._chance(5) else 1
        for dim, extent in enumerate(shape):
            scale, offset, reverse = (1, 0, False)
            if inside:  # the work-items are those of the elements that are not at the edges
                offset = min(self._of((1, 1, 2, 0)), extent - 1)
                extents.append(max(extent - offset - self._of((1, 1, 2, 0)), least))
                axes.append(Axis(dim, scale, offset, self._chance(10)))
                continue
            if not self._near and (not whole or self._chance(10)):
                scale, offset, reverse = self._of(WRITES)
            extents.append(max(extent - (0 if whole else self._of((0, 0, 0, 2, -1))), 1))
            axes.append(Axis(dim, scale, offset, reverse))
        range_: Range | NdRange = Range(*extents)
        if self._chance(8) and extents[-1]:
            range_ = NdRange(tuple(extents), (1,) * (len(extents) - 1) + (extents[-1],))
        touched = Touched(self._buffers, extents)
        self._dtype = self._buffers[out].dtype
        written = ItemArray("out", self._dtype, tuple(axes), True)
        view = self._view(out)
        own = self._buffers[out].data[view.slices].shape
        assert touched.accept(written, view)
        shift = ScalarParameter("shift", WEAK_INT)
        parameters: list[Parameter] = [written, shift]
        arguments: list[View | int] = [view, self._of((1, 0, 2, -1))]
        one = "1" if len(self._dtypes) == 1 else f"{typed(self._dtype)}(1)"
        lines = (
            [f"value = {one}"] if not self._chance(3) else [f"value = {self._element(written)} + 1"]
        )
        for source in dict.fromkeys(sources):
            read = GatherArray(f"a{source}", self._buffers[source].dtype, self._ndim)
            view = self._view(source)
            if touched.accept(read, view):
                parameters.append(read)
                arguments.append(view)
                lines += self._reads(read)
        if self._chance(15):
            last = self._ndim - 1
            small = self._of(index_forms.VALUES).format(i=IDS[last], n=f"out.shape[{last}]")
            lines.append(f"value += {typed(self._dtype)}({small})")
        lines += self._stores(written, whole)
        names = ", ".join(p.name for p in parameters)
        ids = [f"    {IDS[d]} = item.get_{self._id(range_)}({d})" for d in range(self._ndim)]
        if tuple(extents) == shape and isinstance(range_, Range) and self._chance(25):
            range_ = Range(int(np.prod(shape)))
            ids = [f"    {line}" for line in LINEAR[self._ndim - 1]]
        guard = self._inside("out", [axis.text(f"out.shape[{d}]") for d, axis in enumerate(axes)])
        text = [f"def kernel(item, {names}):", *ids]
        guarded = not inside or self._chance(30) or not written.lies_inside(extents, own)
        if guarded:
            text += [f"    if not ({guard}):", "        return"]
        text += [f"    {line}" for line in lines]
        source_text = "\n".join(["import fusionq as fq", "import numpy as np", "", "", *text, ""])
        kernel = RandomKernel(source_text, self._ndim, tuple(parameters), guarded=guarded)
        return SubmissionSpec(kernel, range_, tuple(arguments))

    def _id(self, range_: Range | NdRange) -> str:
        return "id" if isinstance(range_, Range) else "global_id"

    def _view(self, buffer: int) -> View:
        shape = self._buffers[buffer].data.shape
        if not self._near and self._chance(4):
            return View(buffer, random_slices(self._draw, shape))
        return View(buffer, (slice(None),) * len(shape))

    def _element(self, written: ItemArray) -> str:
        indices = [a.text(f"out.shape[{d}]") for d, a in enumerate(written.axes) if a is not None]
        return f"out[{', '.join(indices)}]"

    def _inside(self, name: str, indices: Sequence[str]) -> str:
        return " and ".join(f"0 <= {index} < {name}.shape[{d}]" for d, index in enumerate(indices))

    def _reads(self, read: GatherArray) -> list[str]:
        """Lines that add elements of an array to ``value``, where there are such elements."""
        lines = []
        for _ in range(self._of((1, 2, 1) if self._near else (1, 2, 3))):
            moved = self._of(range(self._ndim)) if self._near else None
            indices = [
                self._of(self._elements(d == moved)).format(i=IDS[d], n=f"{read.name}.shape[{d}]")
                for d in range(self._ndim)
            ]
            if self._ndim == 3:
                indices = [index.replace("- k", "- m").replace("+ k", "+ m") for index in indices]
            loop = "m" if self._ndim == 3 else "k"
            element = f"{read.name}[{', '.join(indices)}]"
            if read.dtype != self._dtype:
                element = f"{typed(self._dtype)}({element})"
            inside = self._inside(read.name, indices)
            kind = self._of(("if", "chosen", "both", "loop"))
            if kind == "chosen":
                line = f"value += {element} if {inside} else 2"
            elif kind == "both":
                line = f"if {inside} and {element} > 0: value += 3 * {element}"
            else:
                line = f"if {inside}: value = value * 2 - {element}"
            looped = kind == "loop" or f" {loop}" in element
            lines.append(f"for {loop} in range(-1, 2):" if looped else line)
            if looped:
                lines.append(f"    {line}")
        return lines

    def _elements(self, moved: bool) -> Sequence[str]:
        """Which elements of one dimension may be read; another than one's own if ``moved``."""
        if moved:
            return OTHERS
        elements = NEAR if self._near else NEIGHBOURS
        return elements if self._chance(60) else ("{i}",)

    def _stores(self, written: ItemArray, whole: bool) -> list[str]:
        element = self._element(written)
        if whole or self._chance(60):
            if self._chance(25):
                edge = f"{IDS[0]} > 0 and {IDS[0]} < {written.name}.shape[0] - 1"
                return [f"if {edge}: {element} = value", f"else: {element} = value * 5"]
            return [f"{element} = value"]
        condition = self._of((f"{IDS[0]} > 0", "value > 0", f"{IDS[0]} % 2 == 0"))
        return [f"if {condition}: {element} = value"]


@st.composite
def halo_programs(draw: Any, near: bool = False, ndims: tuple[int, ...] = (1, 1, 2, 3)) -> Program:
    """A random chain of stencils in one of ``ndims`` dimensions; ``near``: a short one, of whole
    buffers, and reads only at bounded distances, so that many halos are computed anew where that is
    asked for."""
    return HaloDraw(draw, near, ndims).program()
