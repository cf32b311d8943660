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
from fusionq.language.local_memory import LocalAccessor
from fusionq.language.ranges import NdRange, Range
from fusionq.memory.accessor import AccessorArgument
from fusionq.memory.array_form import SizedForm, sized_form
from fusionq.memory.buffer import Buffer
from fusionq.memory.foreign_array import contiguous_strides
from fusionq.memory.gpu_arrays import GpuToken, gpu_of
from fusionq.submission.key import SCALAR_CLASSES, range_or_none
from fusionq.submission.known import KnownSubmission


class Described(NamedTuple):
    """A submission that has not been checked."""

    key: tuple[Any, ...]
    """What it has in common with those of the same sizes."""
    sized: KnownSubmission | None
    """What stands for these, whatever their scalars, if it is known."""
    range: Range | NdRange
    places: list[ArrayPlace]
    values: list[ScalarValue]


class Templates:
    """Checked submissions of one queue by what others must have in common with them; beyond
    ``capacity`` all are forgotten."""

    def __init__(self, capacity: int = 1024) -> None:
        self._capacity = capacity
        self._entries: dict[Hashable, KnownSubmission] = {}
        """By form and the order of all sizes."""
        self._sized: dict[Hashable, KnownSubmission] = {}
        """By form and sizes; none is empty."""

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
        submission = entry.submission
        places: list[ArrayPlace] = []
        found = _key(call_in(frame), key, submission.range, args, places, [])
        if found is not None:
            _add(self._entries, _form(found, places), entry, self._capacity)
            if submission.range.size and not _has_empty(places):
                _add(self._sized, found, entry, self._capacity)

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
        if found is None:
            return None
        sized, places, values = found.sized, found.places, found.values
        if sized is not None and (entry := sized.elsewhere(places, values)) is not None:
            return entry
        return self.resized(found)

    def find(
        self,
        key: tuple[object, ...],
        range: object,
        args: Sequence[object],
        frame: FrameType | None,
    ) -> Described | None:
        """The submission, described, and what stands for those of its sizes; None where an argument
        has to be looked at by the checks.  Arguments as of ``add``."""
        space = range_or_none(range)
        if space is None or not self._entries:
            return None
        places: list[ArrayPlace] = []
        values: list[ScalarValue] = []
        try:
            found = _key(call_in(frame), key, space, args, places, values)
            if found is None:
                return None
            return Described(found, self._sized.get(found), space, places, values)
        except TypeError:  # no kernel, and without a hash
            return None

    def resized(self, described: Described) -> KnownSubmission | None:
        """As ``like``, by what is known of submissions of other sizes, or of the same with other
        scalars."""
        found, sized, space, places, values = described
        template = self._entries.get(_form(found, places))
        if template is None or space.size == 0 or _has_empty(places):
            return None
        operands = Operands(template.deferred.operands.form, space, places, values)
        if sized is not None:
            return sized.elsewhere(places, values) if sized.passes(operands) else None
        entry = template.resized(operands)
        if entry is not None:
            _add(self._sized, found, entry, self._capacity)
        return entry


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


def _add(
    table: dict[Hashable, KnownSubmission], key: Hashable, entry: KnownSubmission, capacity: int
) -> None:
    if len(table) >= capacity:
        table.clear()
    table[key] = entry


def _order(space: Range | NdRange, places: Sequence[ArrayPlace]) -> Hashable:
    """Which sizes are equal, and which are larger: checks speak of equal ones as of one, as those
    of a plan do (``planning.structure``)."""
    extents = list(space.global_range if isinstance(space, NdRange) else space)
    for place in places:
        extents += place[0]
    if extents.count(extents[0]) == len(extents):  # all are equal
        return len(extents)
    numbers: dict[int, int] = {}
    number = numbers.setdefault
    pattern = tuple([number(extent, len(numbers)) for extent in extents])
    return pattern, tuple([numbers[extent] for extent in sorted(numbers)])


def _has_empty(places: Sequence[ArrayPlace]) -> bool:
    """Whether one of the arrays has no elements."""
    return any([0 in place[0] for place in places])


def _key(
    call: Hashable,
    key: tuple[object, ...],
    space: Range | NdRange,
    args: Sequence[Any],
    places: list[ArrayPlace],
    values: list[ScalarValue],
) -> tuple[Any, ...] | None:
    """What submissions of the same sizes have in common; None where an argument has to be looked at
    by the checks.  Adds the array arguments to ``places``, the others to ``values``."""
    parts: list[object] = [key[0], key[2], call, space]
    token = 2
    for arg in args:
        token += 1  # the token's place in ``key``
        kind, is_flagged = type(arg), False
        if kind is AccessorArgument:
            parts.append(arg.promote)
            arg, is_flagged = arg.buffer, True
            kind = type(arg)
        if kind is Buffer:
            sized = arg._sized_form
            if sized.form is None:
                return None
            parts.append(sized)
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
            parts.append(kind)
            values.append(arg)
            continue
        elif kind is LocalAccessor:
            parts.append(arg)
            continue
        else:
            return None
        if sized.form is None:
            return None
        parts.append(sized)
        shape, strides = sized.extents
        places.append((shape, strides, -start, 0, start))
    return tuple(parts)


def _form(sized: tuple[Any, ...], places: Sequence[ArrayPlace]) -> Hashable:
    """What submissions of other sizes, which stand in the same order, have in common with those of
    a ``_key``, whose arrays are at ``places``."""
    space = sized[3]
    local = space.local_range if type(space) is NdRange else None
    forms = [part.form if type(part) is SizedForm else part for part in sized[4:]]
    return *sized[:3], space.ndim, local, *forms, _order(space, places)
