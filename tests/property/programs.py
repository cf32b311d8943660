"""Random lists of submissions over shared buffers and overlapping views.

Inside one submission no work-item touches an element that another one writes, so the result does
not depend on the order of the work-items.  Between submissions anything goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np
from hypothesis import strategies as st

from fusionq.backends.reference import run_function
from fusionq.backends.reference.order import Order
from fusionq.ir.types import ScalarType, scalar_type
from fusionq.language.local_memory import LocalAccessor
from fusionq.language.ranges import NdRange, Range
from tests.property.kernel_expressions import Draw, Features
from tests.property.kernel_parameters import (
    Axis,
    GatherArray,
    ItemArray,
    Parameter,
    RandomKernel,
    ScalarParameter,
)
from tests.property.launches import (
    EXTENTS,
    Array,
    Scalar,
    Slices,
    item_shape,
    random_axes,
    random_data,
    random_features,
    random_kernel,
    random_range,
    random_scalar,
    random_scalar_parameter,
    random_slices,
)

Flag = Literal["none", "private", "internal", "local"]
FLAGS: tuple[Flag, ...] = ("none", "none", "none", "private", "private", "internal", "local")


@dataclass(frozen=True)
class BufferSpec:
    """A buffer's first contents, and what the user says of its last ones."""

    data: Array
    flag: Flag = "none"

    @property
    def dtype(self) -> ScalarType:
        found = scalar_type(self.data.dtype)
        assert found is not None
        return found


@dataclass(frozen=True)
class View:
    """A part of a buffer."""

    buffer: int
    slices: Slices


@dataclass(frozen=True)
class SubmissionSpec:
    """One call of ``submit``."""

    kernel: RandomKernel
    range: Range | NdRange
    arguments: tuple[View | Scalar | LocalAccessor, ...]


@dataclass(frozen=True)
class Program:
    """A list of submissions."""

    buffers: tuple[BufferSpec, ...]
    submissions: tuple[SubmissionSpec, ...]

    def run_python(self, order: Order = "natural", seed: int = 0) -> list[Array]:
        """All buffers' contents after the Python functions themselves have run, each with its
        work-items in ``order``."""
        contents = [buffer.data.copy() for buffer in self.buffers]
        for submission in self.submissions:
            arguments = [
                contents[a.buffer][a.slices] if isinstance(a, View) else a
                for a in submission.arguments
            ]
            run_function(submission.kernel.define(), submission.range, arguments, order, seed)
        return contents

    def __repr__(self) -> str:
        lines = [f"buffer {n} ({b.flag}): {b.data!r}" for n, b in enumerate(self.buffers)]
        for number, submission in enumerate(self.submissions):
            lines.append(f"# submission {number} over {submission.range!r}")
            names = [p.name for p in submission.kernel.parameters]
            lines += [f"#   {n} = {a!r}" for n, a in zip(names, submission.arguments, strict=True)]
            lines.append(submission.kernel.source)
        return "\n".join(lines)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How hypothesis shows it."""
        printer.text(repr(self))


# ----------------------------------------------------------------------------- hazards
class Touched:
    """Which work-items may touch which elements of which buffer, in one submission."""

    def __init__(self, buffers: Sequence[BufferSpec], extents: Sequence[int]) -> None:
        self._buffers = buffers
        self._items = list(product(*map(range, extents)))
        self._accepted: list[tuple[int, bool, dict[int, object]]] = []

    def accept(self, parameter: ItemArray | GatherArray, view: View) -> bool:
        """Add an argument; False, and nothing done, if it would race with those before it."""
        written = isinstance(parameter, ItemArray) and parameter.written
        owners = dict(self._owners(parameter, view))
        for buffer, also_written, others in self._accepted:
            if buffer == view.buffer and (written or also_written):
                for element in owners.keys() & others.keys():
                    if owners[element] is None or owners[element] != others[element]:
                        return False
        self._accepted.append((view.buffer, written, owners))
        return True

    def _owners(
        self, parameter: ItemArray | GatherArray, view: View
    ) -> Iterator[tuple[int, object]]:
        """Elements, numbered within the buffer, and the item that may touch each, None for
        several items."""
        data = self._buffers[view.buffer].data
        numbers = np.arange(data.size).reshape(data.shape)[view.slices]
        if isinstance(parameter, GatherArray):
            yield from ((int(n), None) for n in numbers.flat)
            return
        owners: dict[int, object] = {}
        for ids in self._items:
            for index in parameter.elements(ids, numbers.shape):
                number = int(numbers[index])
                owners[number] = ids if owners.get(number, ids) == ids else None
        yield from owners.items()


# ---------------------------------------------------------------------------- strategy
class ProgramDraw:
    """Draws the parts of a program one after the other."""

    lengths: tuple[int, ...] = (1, 2, 3, 4, 5)
    """How many submissions a program may have."""
    kinds: tuple[str, ...] = ("read", "written", "gather", "scalar")
    """What a kernel's parameters after the first may be."""

    def __init__(self, draw: Draw, features: Features) -> None:
        self._draw = draw
        self._features = random_features(draw, features)
        self._ndim: int = draw(st.sampled_from((1, 1, 1, 2, 3)))
        self._range = random_range(draw, self._ndim, self._chance(15))
        self._buffers: list[BufferSpec] = []
        self._submissions: list[SubmissionSpec] = []

    def _chance(self, percent: int) -> bool:
        return bool(self._draw(st.integers(0, 99)) >= 100 - percent)

    def program(self) -> Program:
        for _ in range(self._draw(st.integers(1, 4))):
            self._buffer()
        for _ in range(self._draw(st.sampled_from(self.lengths))):
            submission = None
            if self._submissions and self._chance(15):
                submission = self._repeated(self._draw(st.sampled_from(self._submissions)))
            self._submissions.append(submission or self._new())
        return Program(tuple(self._buffers), tuple(self._submissions))

    def _buffer(self) -> None:
        ndim = self._ndim
        if ndim < 3 and self._chance(15):
            ndim += 1
        axes = random_axes(self._draw, self._ndim, ndim, True)
        shape = item_shape(self._draw, axes, _extents(self._range))
        dtype = self._draw(st.sampled_from(self._features.dtypes))
        data = random_data(shape, dtype, self._draw(st.integers(0, 50)))
        self._buffers.append(BufferSpec(data, self._draw(st.sampled_from(FLAGS))))

    def _new_range(self) -> Range | NdRange:
        base = self._range
        if not self._chance(25):
            return base
        if isinstance(base, Range) and self._ndim == 2 and self._chance(50):
            # A row or a column of the others, or a part of their rows.
            if self._chance(60):
                return Range(self._draw(st.sampled_from(tuple(base))))
            return Range(base[0], self._draw(st.sampled_from(EXTENTS[1])))
        return random_range(self._draw, self._ndim, isinstance(base, NdRange))

    def _view(self, candidates: Sequence[int]) -> View:
        buffer = self._draw(st.sampled_from(candidates))
        shape = self._buffers[buffer].data.shape
        if self._chance(25):
            return View(buffer, random_slices(self._draw, shape))
        return View(buffer, (slice(None),) * len(shape))

    def _axes(self, ndim: int, array_ndim: int, written: bool) -> tuple[Axis | None, ...]:
        """Which element of an array belongs to an item with ``ndim`` ids."""
        return random_axes(self._draw, ndim, array_ndim, written)

    def _new(self) -> SubmissionSpec:
        """A submission of a new kernel; arguments that would race are left out."""
        range_ = self._new_range()
        ndim = len(_extents(range_))
        touched = Touched(self._buffers, _extents(range_))
        parameters: list[Parameter] = []
        arguments: list[View | Scalar] = []
        for number in range(self._draw(st.integers(1, 4))):
            kind = "written" if number == 0 else self._draw(st.sampled_from(self.kinds))
            if kind == "scalar":
                scalar = random_scalar_parameter(self._draw, f"s{number}", self._features)
                parameters.append(scalar)
                arguments.append(random_scalar(self._draw, scalar.type))
                continue
            view = self._view(range(len(self._buffers)))
            spec = self._buffers[view.buffer]
            parameter: ItemArray | GatherArray
            if kind == "gather":
                parameter = GatherArray(f"g{number}", spec.dtype, spec.data.ndim)
            else:
                written = kind == "written"
                axes = self._axes(ndim, spec.data.ndim, written)
                parameter = ItemArray(f"a{number}", spec.dtype, axes, written)
            if touched.accept(parameter, view):
                parameters.append(parameter)
                arguments.append(view)
        nd_item = isinstance(range_, NdRange)
        kernel = random_kernel(self._draw, parameters, ndim, nd_item, self._features)
        return SubmissionSpec(kernel, range_, tuple(arguments))

    def _repeated(self, earlier: SubmissionSpec) -> SubmissionSpec | None:
        """The kernel of another submission with other arguments; None if they would race."""
        touched = Touched(self._buffers, _extents(earlier.range))
        arguments: list[View | Scalar] = []
        for parameter in earlier.kernel.parameters:
            if isinstance(parameter, ScalarParameter):
                arguments.append(random_scalar(self._draw, parameter.type))
                continue
            view = self._view(
                [
                    number
                    for number, buffer in enumerate(self._buffers)
                    if buffer.dtype == parameter.dtype and buffer.data.ndim == parameter.ndim
                ]
            )
            if not touched.accept(parameter, view):
                return None
            arguments.append(view)
        return replace(earlier, arguments=tuple(arguments))


def _extents(range_: Range | NdRange) -> Range:
    return range_.global_range if isinstance(range_, NdRange) else range_


@st.composite
def programs(draw: Any, features: Features = Features(statements=3)) -> Program:  # noqa: B008  # frozen
    """A random list of submissions."""
    return ProgramDraw(draw, features).program()
