"""Random lists of submissions that use work-groups: NdRanges whose kernels have barriers, local
memory, atomic operations and group functions, beside plain ranges that exchange in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from fusionq.language.local_memory import LocalAccessor
from fusionq.language.ranges import NdRange, Range
from tests.property.group_accesses import (
    ATOMIC_METHODS,
    ATOMIC_TYPES,
    GroupParameter,
    LocalTile,
    SharedArray,
    TileArray,
    block_axis,
)
from tests.property.group_kernels import (
    GroupKernelWriter,
    random_local_tile,
    random_tile_array,
)
from tests.property.kernel_expressions import Draw, Features
from tests.property.kernel_parameters import (
    Axis,
    GatherArray,
    ItemArray,
    RandomKernel,
    ScalarParameter,
)
from tests.property.launches import (
    Scalar,
    random_data,
    random_scalar,
    random_scalar_parameter,
)
from tests.property.programs import (
    BufferSpec,
    Flag,
    Program,
    ProgramDraw,
    SubmissionSpec,
    View,
    addresses_of,
)

LOCALS = (
    ((4,), (8,), (3,), (6,), (5,), (16,), (2,), (1,)),
    ((2, 3), (4, 4), (1, 4), (2, 2), (3, 1), (2, 8)),
    ((2, 2, 2), (1, 2, 3), (2, 1, 2)),
)
FLAGS: tuple[Flag, ...] = ("none", "none", "local", "local", "internal", "internal", "private")


class GroupProgramDraw(ProgramDraw):
    """Draws the parts of a program one after the other."""

    lengths = (2, 3, 2, 4, 1)
    kinds = ("read", "read", "read", "written", "scalar", "gather")

    def __init__(
        self,
        draw: Draw,
        features: Features,
        plain: bool,
        uniform: int,
        groups: tuple[tuple[int, ...], tuple[int, ...]] | None = None,
    ) -> None:
        super().__init__(draw, features)
        self._plain = plain
        self._uniform = uniform
        self._latest: int | None = None
        """The buffer that the last submission was made to write."""
        self._fixed = groups is not None
        if groups is not None:
            self._groups, self._local = groups
            self._ndim, self.lengths = len(self._local), (1, 2)
        else:
            self._local = draw(st.sampled_from(LOCALS[self._ndim - 1]))
            self._groups = tuple(draw(st.sampled_from((2, 3, 1, 4))) for _ in self._local)
        self._range = NdRange(_times(self._groups, self._local), self._local)

    def _buffer(self) -> None:
        """A buffer of about one, two or three elements a work-item."""
        shape = list(self._range.global_range)
        shape[-1] *= self._draw(st.sampled_from((1, 1, 1, 2, 3)))
        if self._chance(20):
            dim = self._draw(st.integers(0, self._ndim - 1))
            shape[dim] = max(shape[dim] + self._draw(st.sampled_from((1, -1, 2, -2))), 1)
        dtype = self._draw(st.sampled_from(self._features.dtypes))
        if self._buffers and self._chance(10) and self._alias(shape, dtype):
            return
        data = random_data(shape, dtype, self._draw(st.integers(0, 50)))
        self._buffers.append(BufferSpec(data, self._draw(st.sampled_from(FLAGS))))

    def _new_range(self) -> Range | NdRange:
        """For a plain kernel: as many work-items as the work-groups have, or some less."""
        extents = list(self._range.global_range)
        if self._chance(20):
            extents[0] = max(extents[0] + self._draw(st.sampled_from((-1, 1, -3))), 0)
        return Range(*extents)

    def _nd_range(self) -> NdRange:
        groups, local = list(self._groups), self._local
        if self._fixed:
            return self._range
        if self._chance(20):
            groups[0] = self._draw(st.sampled_from((1, 2, 3, 5)))
        if self._chance(5):
            local = self._draw(st.sampled_from(LOCALS[self._ndim - 1]))
        return NdRange(_times(groups, local), local)

    def _view(self, candidates: Sequence[int]) -> View:
        """Often what the submission before has made."""
        if self._latest in candidates and self._chance(40):
            assert self._latest is not None
            return View(self._latest, (slice(None),) * self._ndim)
        return super()._view(candidates)

    def _axes(self, ndim: int, array_ndim: int, written: bool) -> tuple[Axis | None, ...]:
        """Which element of an array belongs to a work-item of a plain kernel."""
        if self._chance(50) or array_ndim != self._ndim:
            return super()._axes(ndim, array_ndim, written)
        last = self._ndim - 1
        return (*map(Axis, range(last)), block_axis(self._draw, last, written))

    def _new(self) -> SubmissionSpec:
        plain = self._plain or (self._submissions and not self._fixed and self._chance(35))
        made = super()._new() if plain else self._new_of_groups()
        latest = made.arguments[0]
        self._latest = latest.buffer if isinstance(latest, View) else None
        return made

    def _new_of_groups(self) -> SubmissionSpec:
        """A submission of a new kernel over an NdRange."""
        range_ = self._nd_range()
        parameters: list[GroupParameter] = []
        arguments: list[View | Scalar | LocalAccessor] = []
        accepted: list[tuple[bool, set[int]]] = []
        for number in range(self._draw(st.integers(2, 5))):
            kinds = ("local", "shared", *self.kinds)
            kind = "written" if number == 0 else self._draw(st.sampled_from(kinds))
            if kind == "scalar":
                scalar = random_scalar_parameter(self._draw, f"s{number}", self._features)
                parameters.append(scalar)
                arguments.append(random_scalar(self._draw, scalar.type))
                continue
            if kind == "local":
                dtype = self._draw(st.sampled_from(self._features.dtypes))
                tile = random_local_tile(self._draw, f"m{number}", dtype, tuple(range_.local_range))
                parameters.append(tile)
                arguments.append(LocalAccessor(tile.tile, dtype.dtype))
                continue
            view = self._view(range(len(self._buffers)))
            parameter = self._array(kind, number, view, range_)
            if parameter is not None and accept_apart(self._buffers, accepted, parameter, view):
                parameters.append(parameter)
                arguments.append(view)
        writer = GroupKernelWriter(
            self._draw, self._features, parameters, tuple(range_.local_range), self._uniform
        )
        text = writer.text()
        size = writer.sub_group if writer.uses_sub_groups else None
        kernel = RandomKernel(text, self._ndim, tuple(parameters), True, size)
        return SubmissionSpec(kernel, range_, tuple(arguments))

    def _array(self, kind: str, number: int, view: View, range_: NdRange) -> GroupParameter | None:
        """A parameter for ``view``; None if there is none of that kind."""
        spec = self._buffers[view.buffer]
        shape = spec.data[view.slices].shape
        if kind == "gather":
            return GatherArray(f"b{number}", spec.dtype, len(shape))
        if 0 in shape:
            return None
        if kind == "shared" and spec.dtype.name in ATOMIC_TYPES:
            methods = self._draw(st.sampled_from(ATOMIC_METHODS))
            return SharedArray(f"h{number}", spec.dtype, len(shape), methods)
        return random_tile_array(
            self._draw, f"a{number}", spec.dtype, shape, range_, kind != "read"
        )

    def _repeated(self, earlier: SubmissionSpec) -> SubmissionSpec | None:
        if not isinstance(earlier.range, NdRange):
            return super()._repeated(earlier)
        arguments: list[Any] = []
        accepted: list[tuple[bool, set[int]]] = []
        for parameter, argument in zip(earlier.kernel.parameters, earlier.arguments, strict=True):
            if isinstance(parameter, ScalarParameter):
                argument = random_scalar(self._draw, parameter.type)
            elif not isinstance(parameter, LocalTile):
                argument = self._view(
                    [n for n, b in enumerate(self._buffers) if b.dtype == parameter.dtype]
                )
                shape = self._buffers[argument.buffer].data[argument.slices].shape
                if 0 in shape or not accept_apart(self._buffers, accepted, parameter, argument):
                    return None
            arguments.append(argument)
        return SubmissionSpec(earlier.kernel, earlier.range, tuple(arguments))


def accept_apart(
    buffers: Sequence[BufferSpec],
    accepted: list[tuple[bool, set[int]]],
    parameter: GroupParameter,
    view: View,
) -> bool:
    """Add an argument to those that are ``accepted`` (written or not, bytes); False if it shares
    memory with another, and one of them changes."""
    data = buffers[view.buffer].data[view.slices]
    written = isinstance(parameter, SharedArray) or (
        isinstance(parameter, (TileArray, ItemArray)) and parameter.written
    )
    touched = {
        address + byte
        for address in addresses_of(data).ravel().tolist()
        for byte in range(data.itemsize)
    }
    if any((written or also) and touched & others for also, others in accepted):
        return False
    accepted.append((written, touched))
    return True


def _times(groups: Sequence[int], local: Sequence[int]) -> tuple[int, ...]:
    return tuple(g * n for g, n in zip(groups, local, strict=True))


@st.composite
def group_programs(
    draw: Any, features: Features, plain: bool = False, uniform: int = 30
) -> Program:
    """A random list of submissions; the first has work-groups, with ``plain`` none of them.
    ``uniform``: how many per cent of the phases are inside what is uniform over a group."""
    return GroupProgramDraw(draw, features, plain, uniform).program()


@st.composite
def read_across(draw: Any, programs: st.SearchStrategy[Program]) -> Program:
    """``programs``, nine of ten of which end with a plain kernel that reads from the other end what
    their last work-groups have written, so that work-groups depend on others."""
    program: Program = draw(programs)
    last = next(s for s in reversed(program.submissions) if isinstance(s.range, NdRange))
    view = last.arguments[0]
    if not isinstance(view, View):  # what it writes is combined, by a reduction
        return program
    source = program.buffers[view.buffer]
    shape = source.data[view.slices].shape
    if 0 in shape or draw(st.integers(0, 9)) == 9:
        return program
    ndim = len(shape)
    ids = [f"    {'ijk'[d]} = item.get_id({d})" for d in range(ndim)]
    element = ", ".join("ijk"[:ndim])
    other = ", ".join(f"a.shape[{d}] - 1 - {'ijk'[d]}" for d in range(ndim))
    text = ["def kernel(item, out, a):", *ids, f"    out[{element}] = a[{other}]", ""]
    out = ItemArray("out", source.dtype, tuple(map(Axis, range(ndim))), True)
    read = GatherArray("a", source.dtype, ndim)
    kernel = RandomKernel("\n".join(text), ndim, (out, read), guarded=False)
    into = View(len(program.buffers), (slice(None),) * ndim)
    made = BufferSpec(random_data(shape, source.dtype, draw(st.integers(0, 50))))
    return replace(
        program,
        buffers=(*program.buffers, made),
        submissions=(*program.submissions, SubmissionSpec(kernel, Range(*shape), (into, view))),
    )
