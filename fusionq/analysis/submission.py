"""A submission as the planner sees it: a typed kernel, where its memory lies, its range."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal

import numpy as np

from fusionq.base.span import Span
from fusionq.frontend.signature import LocalType, Signature, TupleType
from fusionq.frontend.source import KernelText
from fusionq.ir.nodes import Kernel
from fusionq.ir.types import ScalarType
from fusionq.language.ranges import NdRange, Range

Promotion = Literal["private", "local"]


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
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A number; ``value`` is what it is at present."""

    name: str
    label: str
    type: ScalarType
    value: bool | int | float | np.generic


@dataclass(frozen=True, slots=True)
class DeclaredArgument:
    """What the kernel declares itself: a LocalAccessor, local memory of each work-group; or a tuple
    or list of numbers, known when the kernel is compiled."""

    name: str
    label: str
    type: LocalType | TupleType


Argument = ArrayArgument | ScalarArgument | DeclaredArgument


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


class Form:
    """What a submission has in common with others of other sizes and other memory: the kernel, the
    arguments' types, layouts and flags.  Equal ones are one object (``form_of``)."""

    __slots__ = ("__weakref__", "parts")

    def __init__(self, parts: Hashable) -> None:
        self.parts = parts


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
    form: Form | None = field(default=None, compare=False)
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

    @property
    def ir(self) -> Kernel:
        """The kernel specialised for ``signature``."""
        kernel = self.kernel
        return kernel if isinstance(kernel, Kernel) else kernel.ir

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.kernel.name


def buffer_names(submissions: Sequence[Submission]) -> dict[int, str]:
    """By storage the one name that a report has for it: of the texts that name it or its views in
    the program, and no other buffer, that of the largest, and of those the first.

    Where every text also names others, as in loops whose buffers take turns, there is none: each
    submission's own text says what it is there, and equal rounds read equal.
    """
    sizes: dict[int, dict[str, int]] = {}
    meant: dict[str, set[int]] = {}
    for submission in submissions:
        for a in submission.arguments:
            if isinstance(a, ArrayArgument):
                of = sizes.setdefault(a.storage, {})
                of[a.label] = max(of.get(a.label, 0), prod(a.shape))
                meant.setdefault(a.label, set()).add(a.storage)
    own = {s: [label for label in of if len(meant[label]) == 1] for s, of in sizes.items()}
    return {s: max(labels, key=lambda t: sizes[s][t]) for s, labels in own.items() if labels}
