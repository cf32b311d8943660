"""The registry that pairs every library kernel with its NumPy reference."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fusionq import LocalAccessor, NdRange

Array: TypeAlias = npt.NDArray[Any]
"""An array parameter of a kernel or of its reference, of any dtype the kernel takes."""
Scalar: TypeAlias = Any
"""A scalar parameter: a Python or NumPy number."""
Reference: TypeAlias = Callable[..., None]
Extents: TypeAlias = tuple[int, ...]

FLOATING = ("float32", "float64")
NUMERIC = ("int8", "int32", "int64", "uint8", "uint32", "float16", "float32", "float64")
SIGNED = ("int8", "int32", "int64", "float16", "float32", "float64")


@dataclass(frozen=True)
class LibraryKernel:
    """A library kernel, its reference, and what arguments it takes.

    ``reference`` takes the kernel's arguments without the item, as NumPy arrays and scalars,
    and writes the last one, as the kernel does.
    """

    kernel: Any
    reference: Reference
    family: str
    """The file that holds it, such as ``axpy``."""
    ndim: int
    """Dimensions of the range."""
    dtypes: tuple[str, ...]
    """The dtypes its arrays may have; one at a time."""
    scalars: Mapping[str, float | int] = field(default_factory=dict)
    """The scalar parameters, each with a typical value."""
    axes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Which of the range's axes an array has, where it has not all of them in order."""
    array_dtypes: Mapping[str, str] = field(default_factory=dict)
    """Arrays whose dtype is fixed."""
    ulps: int = 0
    """How far, in units in the last place of the largest intermediate, the kernel may lie from
    its reference; 0 means the same bits."""
    range_of: Callable[[Extents], Extents | NdRange] = tuple
    """What to submit the kernel with, for a problem of given extents."""
    shapes: Mapping[str, Callable[[Extents], Extents]] = field(default_factory=dict)
    """The shapes of arrays that have not the problem's."""
    local: Mapping[str, Extents] = field(default_factory=dict)
    """The parameters that are LocalAccessors, with their shapes."""
    positive: tuple[str, ...] = ()
    """Arrays that hold no negative number."""
    reorders: bool = False
    """Whether floating numbers are added up in an order of the device's choice: then a result
    may lie from its reference by ``n·eps`` times the reference of the absolute values, for a
    problem of ``n`` elements in all."""

    @property
    def name(self) -> str:
        """The kernel's name: the reference's without its ``_reference``."""
        return self.reference.__name__.removesuffix("_reference")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The kernel's parameter names after the item."""
        return tuple(inspect.signature(self.reference).parameters)

    def shape_of(self, parameter: str, extents: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of an array parameter for a problem of ``extents``."""
        if parameter in self.shapes:
            return self.shapes[parameter](extents)
        return tuple(extents[axis] for axis in self.axes.get(parameter, range(self.ndim)))

    def arguments(
        self, extents: tuple[int, ...], dtype: str, rng: np.random.Generator
    ) -> list[Array | float | int | LocalAccessor]:
        """Random arguments for a problem of ``extents``: fresh arrays, the typical scalars."""
        values: list[Array | float | int | LocalAccessor] = []
        for parameter in self.parameters:
            if parameter in self.scalars:
                values.append(self.scalars[parameter])
            elif parameter in self.local:
                values.append(LocalAccessor(self.local[parameter], dtype))
            else:
                array_dtype = np.dtype(self.array_dtypes.get(parameter, dtype))
                array = _random(self.shape_of(parameter, extents), array_dtype, rng)
                values.append(np.abs(array) if parameter in self.positive else array)
        return values


LIBRARY: dict[str, LibraryKernel] = {}
"""Every library kernel, by name."""


def reference_for(
    kernel: Any,
    *,
    dtypes: Iterable[str] = NUMERIC,
    ndim: int = 1,
    scalars: Mapping[str, float | int] | None = None,
    axes: Mapping[str, tuple[int, ...]] | None = None,
    array_dtypes: Mapping[str, str] | None = None,
    ulps: int = 0,
    range_of: Callable[[Extents], Extents | NdRange] = tuple,
    shapes: Mapping[str, Callable[[Extents], Extents]] | None = None,
    local: Mapping[str, Extents] | None = None,
    positive: tuple[str, ...] = (),
    reorders: bool = False,
) -> Callable[[Reference], Reference]:
    """Decorate the NumPy reference of ``kernel``, and put the pair into ``LIBRARY``."""

    def register(reference: Reference) -> Reference:
        entry = LibraryKernel(
            kernel=kernel,
            reference=reference,
            family=reference.__module__.rpartition(".")[2],
            ndim=ndim,
            dtypes=tuple(dtypes),
            scalars=scalars or {},
            axes=axes or {},
            array_dtypes=array_dtypes or {},
            ulps=ulps,
            range_of=range_of,
            shapes=shapes or {},
            local=local or {},
            positive=positive,
            reorders=reorders,
        )
        if entry.name in LIBRARY:
            raise ValueError(f"two library kernels are named {entry.name!r}")
        LIBRARY[entry.name] = entry
        return reference

    return register


def in_groups(size: int) -> Callable[[Extents], NdRange]:
    """``range_of`` for one work-item an element, in work-groups of ``size``."""
    return lambda extents: NdRange(-(-extents[0] // size) * size, size)


def one_group(size: int) -> Callable[[Extents], NdRange]:
    """``range_of`` for a single work-group of ``size``."""
    return lambda extents: NdRange(size, size)


def _random(shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Values of moderate size, both signs where the dtype has them, and never zero."""
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "f":
        magnitude = rng.uniform(0.25, 4.0, shape)
        return np.asarray(magnitude * rng.choice((-1.0, 1.0), shape)).astype(dtype)
    count = rng.integers(1, 100, shape)
    if dtype.kind == "u":
        return count.astype(dtype)
    return np.asarray(count * rng.choice((-1, 1), shape)).astype(dtype)
