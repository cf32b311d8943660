"""Random data, views, ranges and parameters; ``single_launches``: one kernel with arrays of its
own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from fusionq.ir.types import BOOL, WEAK_FLOAT, WEAK_INT, ScalarType
from fusionq.language.casts import integer_limits
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
from tests.property.kernel_text import KernelWriter

Array = npt.NDArray[Any]
Scalar = bool | int | float | np.generic
Slices = tuple[slice, ...]
EXTENTS = ((4, 7, 5, 3, 13, 6, 8, 2, 1, 0), (4, 3, 5, 2, 1, 6, 4, 3, 0), (2, 3, 4, 1, 3, 2))
"""Extents of arrays in one, two and three dimensions."""


# ------------------------------------------------------------------------------ data
def random_data(shape: Sequence[int], dtype: ScalarType, seed: int) -> Array:
    """Small numbers, extremes, and for floating types zeros of both signs, NaN and infinity."""
    random = np.random.default_rng(seed)
    ordinary = random.integers(-9, 10, shape)
    with np.errstate(all="ignore"):
        if dtype.is_bool:
            return np.asarray(ordinary > 0)
        if dtype.is_float:
            limits = np.finfo(dtype.name)
            special = [0.0, -0.0, np.nan, np.inf, -np.inf, limits.max, limits.tiny, 1e5, -0.5]
            values: Array = (ordinary / 4).astype(dtype.dtype)
        else:
            low, high = integer_limits(dtype.dtype)
            special = [low, high, high - 1, high // 2, 0, 1]
            values = ordinary.astype(dtype.dtype)
        extremes = random.choice(np.array(special, dtype.dtype), shape)
    return np.asarray(np.where(random.random(shape) < 0.25, extremes, values), dtype.dtype)


def random_scalar(draw: Draw, type_: ScalarType) -> Scalar:
    """A value for a scalar parameter; Python ints fit every integer type."""
    if type_ == WEAK_INT:
        return int(draw(st.sampled_from((1, 2, 0, 3, 100))))
    if type_ == WEAK_FLOAT:
        return float(draw(st.sampled_from((1.0, 0.5, 0.1, 0.0, -2.5))))
    if type_ == BOOL:
        return bool(draw(st.booleans()))
    value: np.generic = random_data((1,), type_, draw(st.integers(0, 20)))[0]
    return value


def random_slices(draw: Draw, shape: Sequence[int]) -> Slices:
    """A view of the whole, a shifted or shortened part, or one with another step."""
    if draw(st.integers(0, 99)) < 50:
        return (slice(None),) * len(shape)
    slices = []
    for extent in shape:
        start = draw(st.sampled_from((0, 0, 0, 1, 2)))
        stop = extent - draw(st.sampled_from((0, 0, 0, 1)))
        step = draw(st.sampled_from((1, 1, 1, 1, -1, 2, -2)))
        part = range(extent)[start : max(stop, start)][::step]
        slices.append(as_slice(part))
    return tuple(slices)


def as_slice(part: range) -> slice:
    """The slice that selects the indices of ``part``."""
    if len(part) == 0:
        return slice(0, 0, 1)
    stop = part[-1] + (1 if part.step > 0 else -1)
    return slice(part[0], None if stop < 0 else stop, part.step)


# ---------------------------------------------------------------------------- kernels
def random_axes(draw: Draw, ndim: int, array_ndim: int, written: bool) -> tuple[Axis | None, ...]:
    """Which element of an array belongs to an item; every id takes part if it is written."""
    dims: list[int | None] = list(range(ndim))
    if array_ndim < ndim:
        dims = list(draw(st.permutations(dims)))[:array_ndim]
    if draw(st.integers(0, 9)) > 7:
        dims = list(draw(st.permutations(dims)))
    while len(dims) < array_ndim:
        dims.insert(draw(st.integers(0, len(dims))), None)
    assert not written or set(range(ndim)) <= set(dims)
    return tuple(None if d is None else _random_axis(draw, d) for d in dims)


def _random_axis(draw: Draw, dim: int) -> Axis:
    if draw(st.integers(0, 99)) < 80:
        return Axis(dim)
    scale, offset = draw(st.sampled_from((1, 2, 3))), draw(st.sampled_from((0, 1, 2)))
    return Axis(dim, scale, offset, draw(st.booleans()))


def random_kernel(
    draw: Draw,
    parameters: Sequence[Parameter],
    ndim: int,
    nd_item: bool = False,
    features: Features = Features(),  # noqa: B008  # frozen
) -> RandomKernel:
    """A kernel with these parameters over an ``ndim``-dimensional range."""
    text = KernelWriter(draw, features, parameters).kernel(ndim, nd_item)
    return RandomKernel(text, ndim, tuple(parameters), nd_item)


def random_scalar_parameter(draw: Draw, name: str, features: Features) -> ScalarParameter:
    types = (WEAK_FLOAT, WEAK_INT, *features.dtypes)
    return ScalarParameter(name, draw(st.sampled_from(types)))


@dataclass(frozen=True)
class Launch:
    """A kernel with a range and arguments; views share memory with ``bases``."""

    kernel: RandomKernel
    range: Range | NdRange
    bases: tuple[Array | Scalar, ...]
    """For each parameter a scalar, or the array that its argument is a view of."""
    slices: tuple[Slices, ...]

    def copied(self) -> tuple[list[Array], list[Array | Scalar]]:
        """Fresh copies of the base arrays, and arguments over them."""
        bases, arguments = [], list[Array | Scalar]()
        for base, slices in zip(self.bases, self.slices, strict=True):
            if isinstance(base, np.ndarray):
                bases.append(base.copy())
                arguments.append(bases[-1][slices])
            else:
                arguments.append(base)
        return bases, arguments

    def __repr__(self) -> str:
        arguments = [
            f"{p.name}: {base!r}" + (f" {slices}" if slices else "")
            for p, base, slices in zip(self.kernel.parameters, self.bases, self.slices, strict=True)
        ]
        return "\n".join([self.kernel.source, f"over {self.range!r}", *arguments])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How hypothesis shows it."""
        printer.text(repr(self))


def random_range(draw: Draw, ndim: int, nd: bool) -> Range | NdRange:
    """A small range; 0 and primes too."""
    if nd:
        local = [draw(st.sampled_from((2, 3, 1))) for _ in range(ndim)]
        groups = [draw(st.sampled_from((2, 1, 3))) for _ in range(ndim)]
        return NdRange([g * n for g, n in zip(groups, local, strict=True)], local)
    return Range(*random_shape(draw, ndim))


def random_shape(draw: Draw, ndim: int) -> tuple[int, ...]:
    """The shape of a small array."""
    return tuple(draw(st.sampled_from(EXTENTS[ndim - 1])) for _ in range(ndim))


def item_shape(draw: Draw, axes: Sequence[Axis | None], extents: Sequence[int]) -> tuple[int, ...]:
    """About the shape that a range of ``extents`` reaches."""
    shape = []
    for axis in axes:
        if axis is None:
            shape.append(draw(st.sampled_from((3, 2, 1, 4, 0))))
        else:
            reached = axis.scale * (extents[axis.dim] - 1) + axis.offset + 1
            shape.append(max(reached + draw(st.sampled_from((0, 0, 0, 1, 2, -1))), 0))
    return tuple(shape)


def random_features(draw: Draw, features: Features) -> Features:
    """The same with a few types only, so that values of one type meet."""
    types = draw(st.lists(st.sampled_from(features.dtypes), min_size=1, max_size=3, unique=True))
    return replace(features, dtypes=tuple(types))


@st.composite
def single_launches(draw: Any, features: Features = Features()) -> Launch:  # noqa: B008  # frozen
    """One random kernel over arrays that share no memory."""
    features = random_features(draw, features)
    ndim = draw(st.sampled_from((1, 1, 2, 3)))
    nd = draw(st.integers(0, 9)) > 7
    range_ = random_range(draw, ndim, nd)
    extents = range_.global_range if isinstance(range_, NdRange) else range_
    parameters: list[Parameter] = []
    bases: list[Array | Scalar] = []
    slices: list[Slices] = []
    for number in range(draw(st.integers(1, 4))):
        kinds = ("written",) if number == 0 else ("read", "gather", "written", "scalar")
        kind = draw(st.sampled_from(kinds))
        dtype = draw(st.sampled_from(features.dtypes))
        if kind == "scalar":
            scalar = random_scalar_parameter(draw, f"s{number}", features)
            parameters.append(scalar)
            bases.append(random_scalar(draw, scalar.type))
            slices.append(())
            continue
        if kind == "gather":
            array_ndim = draw(st.sampled_from((1, 1, 2, 3)))
            shape = random_shape(draw, array_ndim)
            parameters.append(GatherArray(f"g{number}", dtype, array_ndim))
        else:
            written = kind == "written"
            more, less = ndim < 3, ndim > 1 and not written
            array_ndim = ndim + draw(st.sampled_from([0] * 5 + [1] * more + [-1] * less))
            axes = random_axes(draw, ndim, array_ndim, written)
            shape = item_shape(draw, axes, extents)
            parameters.append(ItemArray(f"a{number}", dtype, axes, written))
        bases.append(random_data(shape, dtype, draw(st.integers(0, 50))))
        slices.append(random_slices(draw, shape))
    kernel = random_kernel(draw, parameters, ndim, nd, features)
    return Launch(kernel, range_, tuple(bases), tuple(slices))
