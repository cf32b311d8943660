"""Submissions like ones that have been checked: the same call of the same kernel, with arguments of
the same types, layouts and flags, of other sizes or in other memory.

Programs that make their temporaries anew at each call submit nothing else.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from fusionq.analysis.submission import ArrayPlace, Operands, ScalarValue
from fusionq.base.call_site import call_in
from fusionq.base.size_order import size_order
from fusionq.language.local_memory import LocalAccessor
from fusionq.language.ranges import NdRange, Range
from fusionq.memory.accessor import AccessorArgument
from fusionq.memory.array_form import SizedForm, sized_form
from fusionq.memory.buffer import Buffer
from fusionq.memory.foreign_array import contiguous_strides
from fusionq.memory.gpu_arrays import GpuToken, gpu_of
from fusionq.submission.key import SCALAR_CLASSES, range_or_none
from fusionq.submission.known import KnownSubmission


class Templates:
    """Checked submissions of one queue by what others must have in common with them; beyond
    ``capacity`` all are forgotten."""

    def __init__(self, capacity: int = 1024) -> None:
        self._capacity = capacity
        self._forms: dict[Hashable, SameForm] = {}

    def add(
        self,
        key: tuple[object, ...],
        args: Sequence[object],
        entry: KnownSubmission,
        frame: FrameType | None,
    ) -> None:
        """Remember a submission that has been checked; ``key`` is what ``submit`` knows it by,
        ``frame`` the user's who called that."""
        if entry.apart:  # other arrays may overlap elsewhere
            return
        space = entry.submission.range
        places: list[ArrayPlace] = []
        found = _described(call_in(frame), key, space, args, places, [])
        if found is None:
            return
        forms, sizes = found
        order = _order(space, places)
        if order is None:
            return
        form = self._forms.get(forms)
        if form is None:
            if len(self._forms) >= self._capacity:
                self._forms.clear()
            form = self._forms[forms] = SameForm()
        form.add_template(order, entry)
        form.add_sized(sizes, entry)

    def like(
        self,
        key: tuple[object, ...],
        range: object,
        args: Sequence[object],
        frame: FrameType | None,
    ) -> KnownSubmission | None:
        """The submission, checked, where what is known of one like it serves it too; else None.
        Arguments as of ``add``."""
        found = self.find(key, range, args, frame)
        return None if found is None else found.checked()

    def find(
        self,
        key: tuple[object, ...],
        range: object,
        args: Sequence[object],
        frame: FrameType | None,
    ) -> Described | None:
        """The submission, described; None where there is none of its form, or an argument has to be
        looked at by the checks.  Arguments as of ``add``."""
        space = range_or_none(range)
        if space is None or not self._forms:
            return None
        places: list[ArrayPlace] = []
        values: list[ScalarValue] = []
        try:
            found = _described(call_in(frame), key, space, args, places, values)
            if found is None:
                return None
            forms, sizes = found
            form = self._forms.get(forms)
        except TypeError:  # no kernel, and without a hash
            return None
        return None if form is None else Described(form, sizes, space, places, values)


MOST_SIZES, MOST_ORDERS = 1024, 64
"""Of one form: beyond so many all are forgotten."""


class SameForm:
    """Checked submissions of one form by one call: the same kernel with arguments of the same
    types, layouts and flags."""

    __slots__ = ("latest", "like", "sized", "templates")

    def __init__(self) -> None:
        self.templates: dict[Hashable, KnownSubmission] = {}
        """By the order of all sizes."""
        self.sized: dict[Hashable, KnownSubmission] = {}
        """By sizes; none is empty."""
        self.latest: tuple[Hashable, ...] = ()
        """The sizes of the latest one that has been launched and is recorded nowhere."""
        self.like: KnownSubmission | None = None
        """What is in ``templates`` for these, whose checks they have passed."""

    def add_template(self, order: Hashable, entry: KnownSubmission) -> None:
        """``entry`` stands for those with this ``order``."""
        if len(self.templates) >= MOST_ORDERS:
            self.templates.clear()
        self.templates[order], self.latest = entry, ()

    def add_sized(self, sizes: Hashable, entry: KnownSubmission) -> None:
        """``entry`` stands for those with these ``sizes``, which are not empty."""
        if len(self.sized) >= MOST_SIZES:
            self.sized.clear()
        self.sized[sizes] = entry


class Described(NamedTuple):
    """A submission that has not been checked."""

    form: SameForm
    sizes: tuple[Hashable, ...]
    """What it has in common with those of the same form and sizes."""
    range: Range | NdRange
    places: list[ArrayPlace]
    values: list[ScalarValue]

    def template(self) -> KnownSubmission | None:
        """Another one of the same form and order of sizes, whose checks speak of its sizes too;
        None for those with sizes of 0."""
        return self.form.templates.get(_order(self.range, self.places))

    def checked(self) -> KnownSubmission | None:
        """The submission, by what is known of those of its sizes, or of others; None where it has
        to be checked."""
        form, sizes, space, places, values = self
        sized = form.sized.get(sizes)
        if sized is not None and (entry := sized.elsewhere(places, values)) is not None:
            return entry
        template = self.template()
        if template is None:
            return None
        operands = Operands(template.deferred.operands.form, space, places, values)
        if sized is not None:
            return sized.elsewhere(places, values) if sized.passes(operands) else None
        resized = template.resized(operands)
        if resized is not None:
            form.add_sized(sizes, resized)
        return resized


def _of_gpu(token: GpuToken) -> SizedForm | None:
    """As ``sized_form`` of another library's array on a GPU; None for those that the checks
    have to look at: empty ones, records and what may be bfloat16."""
    (start, read_only), shape, strides, typestr, is_masked = token
    if is_masked or not shape or "V" in typestr:
        return None
    ordinal = gpu_of(token)
    if ordinal is None:
        return None
    dtype = np.dtype(typestr)
    if strides is None:
        strides = contiguous_strides(tuple(shape), dtype.itemsize)
    return sized_form(tuple(shape), tuple(strides), dtype, start, read_only, "gpu", ordinal)


def _order(space: Range | NdRange, places: Sequence[ArrayPlace]) -> Hashable | None:
    """That of all sizes of a submission; None where one is 0."""
    extents = list(space.global_range if isinstance(space, NdRange) else space)
    for place in places:
        extents += place[0]
    return size_order(extents)


def _described(
    call: Hashable,
    key: tuple[object, ...],
    space: Range | NdRange,
    args: Sequence[Any],
    places: list[ArrayPlace],
    values: list[ScalarValue],
) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]] | None:
    """What submissions of one form have in common, and beside it those of the same sizes; None
    where an argument has to be looked at by the checks.  Adds the array arguments to ``places``,
    the others to ``values``."""
    local = space.local_range if type(space) is NdRange else space.ndim
    forms: list[object] = [key[0], key[2], call, local]
    sizes: list[object] = [space]
    token = 2
    for arg in args:
        token += 1  # the token's place in ``key``
        kind, is_flagged = type(arg), False
        if kind is AccessorArgument:
            forms.append(arg.promote)
            arg, is_flagged = arg.buffer, True
            kind = type(arg)
        if kind is Buffer:
            sized = arg._sized_form
            form = sized.form
            if form is None:
                return None
            forms.append(form)
            sizes.append(sized)
            shape, strides = sized.extents
            storage, offset = arg._storage, arg._offset
            address = storage.address
            if address is not None:
                address += offset
            places.append((shape, strides, storage.token, offset, address))
            continue
        if kind is np.ndarray:
            found: Any = key[token]  # ``foreign_token``
            _, (start, read_only), shape, strides, dtype = found[0] if is_flagged else found
            if not shape:
                return None
            sized = sized_form(shape, strides, dtype, start, read_only)
        elif type(key[token]) is GpuToken:
            gpu: GpuToken = key[token]  # type: ignore[assignment]  # which has been seen
            described = _of_gpu(gpu)
            if described is None:
                return None
            sized, start = described, gpu.data[0]
        elif kind in SCALAR_CLASSES:
            forms.append(kind)
            values.append(arg)
            continue
        elif kind is LocalAccessor:
            forms.append(arg)
            continue
        else:
            return None
        if sized.form is None:
            return None
        forms.append(sized.form)
        sizes.append(sized)
        shape, strides = sized.extents
        places.append((shape, strides, -start, 0, start))
    return tuple(forms), tuple(sizes)
