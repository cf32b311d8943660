"""Random lists of submissions over shared buffers and overlapping views.

Inside one submission no work-item touches an element that another one writes, so the result does
not depend on the order of the work-items.  Between submissions anything goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, Literal

import numpy as np
from hypothesis import strategies as st

from fusionq.backends.reference import run_function
from fusionq.backends.reference.order import Order
from fusionq.ir.types import ScalarType, scalar_type
from fusionq.language.local_memory import LocalAccessor
from fusionq.language.ranges import NdRange, Range
from tests.property.group_accesses import SharedArray
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
from tests.property.reductions import ReductionSpec, View

Flag = Literal["none", "private", "internal", "local"]
Holder = Literal["buffer", "array", "adopted"]
"""A Buffer with memory of its own, a NumPy array, or a Buffer around one."""
FLAGS: tuple[Flag, ...] = ("none", "none", "none", "private", "private", "internal", "local")


@dataclass(frozen=True)
class BufferSpec:
    """A buffer's first contents, and what the user says of its last ones.

    ``data`` may be a view of another buffer's, if none of the two has memory of its own.
    """

    data: Array
    flag: Flag = "none"
    holder: Holder = "buffer"

    @property
    def dtype(self) -> ScalarType:
        found = scalar_type(self.data.dtype)
        assert found is not None
        return found


@dataclass(frozen=True)
class SubmissionSpec:
    """One call of ``submit``."""

    kernel: RandomKernel
    range: Range | NdRange
    arguments: tuple[View | Scalar | LocalAccessor, ...]


@dataclass(frozen=True)
class CommandSpec:
    """A copy of ``source`` to ``target``, or a fill with that scalar, before a submission."""

    before: int
    target: View
    source: View | np.generic


@dataclass(frozen=True)
class Program:
    """A list of submissions, with ``commands`` between them in order."""

    buffers: tuple[BufferSpec, ...]
    submissions: tuple[SubmissionSpec, ...]
    commands: tuple[CommandSpec | ReductionSpec, ...] = ()

    def steps(self) -> Iterator[SubmissionSpec | CommandSpec | ReductionSpec]:
        """Submissions and commands in order."""
        for number in range(len(self.submissions) + 1):
            yield from (command for command in self.commands if command.before == number)
            yield from self.submissions[number : number + 1]

    def contents(self) -> list[Array]:
        """A copy of all buffers' first contents, which share memory as the buffers do."""
        roots = {id(root_of(buffer.data)): root_of(buffer.data) for buffer in self.buffers}
        copies = {key: root.copy() for key, root in roots.items()}
        return [
            np.ndarray(
                buffer.data.shape,
                buffer.data.dtype,
                copies[id(root)],
                address_of(buffer.data) - address_of(root),
            )
            for buffer in self.buffers
            for root in (root_of(buffer.data),)
        ]

    def run_python(self, order: Order = "natural", seed: int = 0) -> list[Array]:
        """All buffers' contents after the Python functions themselves have run, each with its
        work-items in ``order``."""
        contents = self.contents()
        for submission in self.steps():
            if isinstance(submission, ReductionSpec):
                target, read = submission.target, submission.source
                with np.errstate(all="ignore"):
                    submission.run_python(
                        contents[target.buffer][target.slices], contents[read.buffer][read.slices]
                    )
                continue
            if isinstance(submission, CommandSpec):
                into, source = submission.target, submission.source
                np.copyto(
                    contents[into.buffer][into.slices],
                    contents[source.buffer][source.slices].copy()
                    if isinstance(source, View)
                    else source,
                )
                continue
            arguments = [
                contents[a.buffer][a.slices] if isinstance(a, View) else a
                for a in submission.arguments
            ]
            made = submission.kernel
            size = made.sub_group_size or 16
            run_function(made.define(), submission.range, arguments, order, seed, size)
        return contents

    def __repr__(self) -> str:
        lines = [
            f"buffer {n} ({b.flag}, {b.holder}): {b.data!r}"
            + (f" at {address_of(b.data) - address_of(root_of(b.data))} of {root_of(b.data)!r}"
               if b.data is not root_of(b.data) else "")
            for n, b in enumerate(self.buffers)
        ]  # fmt: skip
        for number, submission in enumerate(self.submissions):
            lines.append(f"# submission {number} over {submission.range!r}")
            names = [p.name for p in submission.kernel.parameters]
            lines += [f"#   {n} = {a!r}" for n, a in zip(names, submission.arguments, strict=True)]
            lines.append(submission.kernel.source)
        lines += [repr(command) for command in self.commands]
        return "\n".join(lines)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How hypothesis shows it."""
        printer.text(repr(self))


# ----------------------------------------------------------------------------- hazards
class Touched:
    """Which work-items may touch which memory, in one submission."""

    def __init__(self, buffers: Sequence[BufferSpec], extents: Sequence[int]) -> None:
        self._buffers = buffers
        self._unit = min((buffer.data.itemsize for buffer in buffers), default=1)
        self._items = list(product(*map(range, extents)))
        self._accepted: list[tuple[bool, dict[int, object]]] = []

    def accept(self, parameter: ItemArray | GatherArray | SharedArray, view: View) -> bool:
        """Add an argument; False, and nothing done, if it would race with those before it."""
        written = not isinstance(parameter, GatherArray) and parameter.written
        owners = dict(self._owners(parameter, view))
        for also_written, others in self._accepted:
            if written or also_written:
                for place in owners.keys() & others.keys():
                    if owners[place] is None or owners[place] != others[place]:
                        return False
        self._accepted.append((written, owners))
        return True

    def _owners(
        self, parameter: ItemArray | GatherArray | SharedArray, view: View
    ) -> Iterator[tuple[int, object]]:
        """Addresses, in units that divide the elements of all buffers, and the item that may touch
        each, None for several items."""
        data = self._buffers[view.buffer].data[view.slices]
        places = addresses_of(data)
        width = data.itemsize // self._unit
        if not isinstance(parameter, ItemArray):
            for address in places.flat:
                first = int(address) // self._unit
                yield from ((n, None) for n in range(first, first + width))
            return
        owners: dict[int, object] = {}
        for ids in self._items:
            for index in parameter.elements(ids, places.shape):
                address = int(places[index])
                owners[address] = ids if owners.get(address, ids) == ids else None
        for address, owner in owners.items():
            first = address // self._unit
            yield from ((n, owner) for n in range(first, first + width))


def root_of(data: Array) -> Array:
    """The array whose memory ``data`` shows."""
    while isinstance(data.base, np.ndarray):
        data = data.base
    return data


def address_of(data: Array) -> int:
    """Of the element [0, …]."""
    address: int = data.__array_interface__["data"][0]
    return address


def addresses_of(data: Array) -> Array:
    """The address of each element."""
    found = np.full(data.shape, address_of(data), np.int64)
    for dim, stride in enumerate(data.strides):
        along = [1] * data.ndim
        along[dim] = -1
        found += (np.arange(data.shape[dim]) * stride).reshape(along)
    return found


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
        if self._buffers and self._chance(15) and self._alias(shape, dtype):
            return
        data = random_data(shape, dtype, self._draw(st.integers(0, 50)))
        self._buffers.append(BufferSpec(data, self._draw(st.sampled_from(FLAGS))))

    def _alias(self, wanted: Sequence[int], dtype: ScalarType) -> bool:
        """Add an array of about the shape that is wanted over the memory of another buffer, from
        some element on, perhaps with another type of integers; False if there is none."""
        number = self._draw(st.integers(0, len(self._buffers) - 1))
        root = root_of(self._buffers[number].data)
        if not (dtype.is_integer and root.dtype.kind in "iu"):
            dtype = self._buffers[number].dtype
        size = dtype.nbytes
        offset = size * self._draw(st.sampled_from((0, 1, 0, 2, 3)))
        there = max(root.nbytes - offset, 0) // size
        shape = (min(wanted[0], there // max(prod(wanted[1:]), 1)), *wanted[1:])
        if not prod(shape):
            return False
        data: Array = np.ndarray(shape, dtype.dtype, root, offset)
        for n, buffer in enumerate(self._buffers):
            if root_of(buffer.data) is root and buffer.holder == "buffer":
                self._buffers[n] = replace(buffer, flag="none", holder=self._holder())
        self._buffers.append(BufferSpec(data, holder=self._holder()))
        return True

    def _holder(self) -> Holder:
        holder: Holder = self._draw(st.sampled_from(("array", "adopted")))
        return holder

    def _new_range(self) -> Range | NdRange:
        base = self._range
        if not self._chance(25):
            return base
        if isinstance(base, Range) and self._ndim == 2 and self._chance(50):
            # A row or a column of the others, or a part of their rows.
            if self._chance(60):
                return Range(self._draw(st.sampled_from(tuple(base))))
            return Range(base[0], self._draw(st.sampled_from(EXTENTS[1])))
        if isinstance(base, Range) and self._chance(50):
            more = [self._draw(st.sampled_from((1, -1, 0, 2, -2))) for _ in base]
            return Range(*(max(n + m, 0) for n, m in zip(base, more, strict=True)))
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
