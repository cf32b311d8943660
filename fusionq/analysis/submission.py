"""A submission as the planner sees it: a typed kernel, where its memory lies, its range."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import field
from math import prod
from typing import Literal, Protocol, TypeAlias

import numpy as np

from fusionq.base.frozen import dataclass
from fusionq.base.span import Span
from fusionq.frontend.signature import ConstantType, LocalType, Signature
from fusionq.frontend.source import KernelText
from fusionq.ir.nodes import Kernel
from fusionq.ir.types import ScalarType
from fusionq.language.ranges import NdRange, Range

Promotion = Literal["private", "local"]

ScalarValue: TypeAlias = bool | int | float | np.generic
"""The value of a scalar argument."""

ArrayPlace: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], int, int, int | None]
"""Extents, strides, storage, offset and address of an array argument."""


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A field of the records of an array argument: the kernel's ``parameter``, and the names of the
    fields from the outermost on."""

    parameter: str
    path: tuple[str, ...]

    def of(self, array: str) -> str:
        """The field of ``array`` as a program writes it."""
        return array + "".join(f'["{name}"]' for name in self.path)


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array argument: extents in elements, strides and offset in bytes.

    ``storage`` identifies the allocation; ``address`` is the address of element [0, …] where
    memory is allocated already, else None; ``offset`` is that element's distance from the
    allocation's start.  Two arguments can share memory if their storage is one and the same,
    or if both have addresses whose extents overlap.
    """

    name: str
    label: str
    dtype: ScalarType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    storage: int
    offset: int
    address: int | None
    owned: bool
    """False for adopted memory (NumPy, dpctl, dpnp): never promoted."""
    buffer_flag: Promotion | None = None
    access_flag: Promotion | None = None
    internal: bool = False
    is_complex: bool = False
    """Whether the last dimension, of extent 2, holds the parts of complex numbers."""
    field: FieldPath | None = None
    """Which field of an array of records it is, if it is one."""
    alignment: int | None = None
    """Bytes of which all elements lie at multiples, where that is less than their size; None: they
    lie at multiples of their size."""

    @property
    def parameter_text(self) -> str:
        """What the kernel calls it."""
        return self.name if self.field is None else self.field.of(self.field.parameter)

    @property
    def text(self) -> str:
        """What the program that submits it calls it."""
        return self.named(self.label)

    def named(self, array: str) -> str:
        """The same, where the array is called ``array``."""
        return array if self.field is None else self.field.of(array)

    def elsewhere(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        storage: int,
        offset: int,
        address: int | None,
    ) -> ArrayArgument:
        """The argument with other memory of the same dtype, dimensions and flags."""
        return ArrayArgument(  # ``dataclasses.replace`` takes several times as long
            self.name, self.label, self.dtype, shape, strides, storage, offset, address,
            self.owned, self.buffer_flag, self.access_flag, self.internal, self.is_complex,
            self.field, self.alignment,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A number; ``value`` is what it is at present.  ``part``: of a complex one, what the part of
    the kernel's parameter is called, such as ``z.real``."""

    name: str
    label: str
    type: ScalarType
    value: ScalarValue
    part: str | None = None


@dataclass(frozen=True, slots=True)
class DeclaredArgument:
    """What the kernel declares itself: a LocalAccessor, local memory of each work-group; or what is
    known when the kernel is compiled, such as a tuple of numbers or None."""

    name: str
    label: str
    type: LocalType | ConstantType


Argument = ArrayArgument | ScalarArgument | DeclaredArgument


def parameter_of(argument: Argument) -> str:
    """The kernel's parameter that an argument, or the array of which it is a field, is for; of a
    complex number also which part."""
    if isinstance(argument, ScalarArgument):
        return argument.part or argument.name
    field = argument.field if isinstance(argument, ArrayArgument) else None
    return argument.name if field is None else field.parameter


@dataclass(slots=True, eq=False)
class DeferredKernel:
    """A kernel that is specialised when its IR is first asked for."""

    name: str
    specialise: Callable[[], Kernel]
    _ir: Kernel | None = field(default=None, init=False, repr=False)

    @property
    def ir(self) -> Kernel:
        """The specialised kernel."""
        if self._ir is None:
            self._ir = self.specialise()
        return self._ir


class SubmissionForm:
    """What a submission has in common with others of other sizes and other memory: the kernel, the
    arguments' types, layouts and flags.  Equal ones are one object (``form_of``).

    ``positions``: for each argument its place among the arrays or among the scalars.  ``dtypes``
    are the arrays', ``units`` the bytes in which kernels count their strides; ``contiguous``:
    whether all of them are.
    """

    __slots__ = ("__weakref__", "contiguous", "dtypes", "parts", "positions", "units")

    def __init__(
        self,
        parts: Hashable,
        positions: tuple[int, ...],
        dtypes: tuple[ScalarType, ...],
        units: tuple[int, ...],
        contiguous: bool,
    ) -> None:
        self.parts, self.positions = parts, positions
        self.dtypes, self.units, self.contiguous = dtypes, units, contiguous


class Sized(Protocol):
    """A submission, or what says its sizes and scalars without making one."""

    @property
    def form(self) -> SubmissionForm | None:
        """Where it is known, what ``form_of`` gives."""

    @property
    def range(self) -> Range | NdRange:
        """The index space."""

    def shapes(self) -> Iterable[tuple[int, ...]]:
        """The extents of each array argument."""

    def number(self, argument: int | None, dim: int | None) -> int:
        """An extent of the range (``argument`` None) or of an array argument, or the value of a
        scalar argument (``dim`` None)."""


class Operands:
    """What a submission has beside its form: ``places`` are those of its array arguments,
    ``values`` its scalars."""

    __slots__ = ("form", "places", "range", "values")

    def __init__(
        self,
        form: SubmissionForm,
        range: Range | NdRange,
        places: Sequence[ArrayPlace],
        values: Sequence[ScalarValue],
    ) -> None:
        self.form, self.range, self.places, self.values = form, range, places, values

    def shapes(self) -> Iterable[tuple[int, ...]]:
        """See ``Sized``."""
        return [place[0] for place in self.places]

    def number(self, argument: int | None, dim: int | None) -> int:
        """See ``Sized``."""
        if argument is None:
            assert dim is not None
            space = self.range
            return (space.global_range if isinstance(space, NdRange) else space)[dim]
        position = self.form.positions[argument]
        return int(self.values[position]) if dim is None else self.places[position][0][dim]


@dataclass(frozen=True, slots=True)
class Submission:
    """One ``queue.submit``; ``kernel`` is or becomes the IR for ``signature``."""

    index: int
    kernel: Kernel | DeferredKernel
    signature: Signature
    fingerprint: str
    """Of the kernel's source text and constants."""
    range: Range | NdRange
    arguments: tuple[Argument, ...]
    span: Span
    text: KernelText | None = None
    """The kernel's source lines; None where what is found out about it is not to be kept."""
    with_regions: Callable[[], Kernel] | None = field(default=None, compare=False)
    """Gives the kernel with records for the regions and marks that it names."""

    notes: tuple[str, ...] = field(default=(), compare=False)
    """What reports say of the kernel, each with its file and line."""
    form: SubmissionForm | None = field(default=None, compare=False)
    """Where it is known, what ``form_of`` gives."""

    def like(
        self, index: int, range: Range | NdRange, arguments: tuple[Argument, ...]
    ) -> Submission:
        """The same kernel, submitted as ``index``-th over ``range``, with arguments of the same
        form."""
        return Submission(  # ``dataclasses.replace`` takes several times as long
            index, self.kernel, self.signature, self.fingerprint, range, arguments, self.span,
            self.text, self.with_regions, self.notes, self.form,
        )  # fmt: skip

    def shapes(self) -> Iterable[tuple[int, ...]]:
        """See ``Sized``."""
        return (a.shape for a in self.arguments if isinstance(a, ArrayArgument))

    def number(self, argument: int | None, dim: int | None) -> int:
        """See ``Sized``."""
        if argument is None:
            assert dim is not None
            space = self.range
            return (space.global_range if isinstance(space, NdRange) else space)[dim]
        present = self.arguments[argument]
        if isinstance(present, ArrayArgument):
            assert dim is not None
            return present.shape[dim]
        assert isinstance(present, ScalarArgument)
        return int(present.value)

    @property
    def ir(self) -> Kernel:
        """The kernel specialised for ``signature``."""
        kernel = self.kernel
        return kernel if isinstance(kernel, Kernel) else kernel.ir

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.kernel.name


MOST_TEXTS = 4
"""Of buffers that take turns, in their name."""


def buffer_names(submissions: Sequence[Submission]) -> dict[int, str]:
    """By storage the one name that a report has for it: of the texts that name it or its views in
    the program, and no other buffer, that of the largest, and of those the first.

    Buffers that take turns in a loop have the same texts.  Each is called by all of these, such as
    ``now or then``: whose turn it is does not change a buffer's name, and equal rounds read equal.
    """
    sizes: dict[int, dict[str, int]] = {}
    meant: dict[str, list[int]] = {}
    for submission in submissions:
        for a in submission.arguments:
            if isinstance(a, ArrayArgument):
                of = sizes.setdefault(a.storage, {})
                if a.label not in of:
                    meant.setdefault(a.label, []).append(a.storage)
                of[a.label] = max(of.get(a.label, 0), prod(a.shape))
    own = {s: [label for label in of if len(meant[label]) == 1] for s, of in sizes.items()}
    names = {s: max(labels, key=lambda t: sizes[s][t]) for s, labels in own.items() if labels}
    left = {s: None for s in sizes if s not in names}
    while left:
        alike, texts = [next(iter(left))], dict[str, None]()
        del left[alike[0]]
        for storage in alike:  # which grows, by those that have a text in common
            for text in sizes[storage]:
                if text not in texts:
                    texts[text] = None
                    more = [other for other in meant[text] if other in left]
                    alike += more
                    for other in more:
                        del left[other]
        shown = [*texts][:MOST_TEXTS] + ["…"] * (len(texts) > MOST_TEXTS)
        names |= dict.fromkeys(alike, " or ".join(shown))
    return names
