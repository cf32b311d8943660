"""Submissions like ones that have been checked: the same call of the same kernel, with arguments of
the same types, layouts and flags, of other sizes or in other memory.

Programs that make their temporaries anew at each call submit nothing else.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from fusionq.analysis.aliasing import layout
from fusionq.analysis.submission import (
    Argument,
    ArrayArgument,
    ScalarArgument,
)
from fusionq.base.call_site import user_span
from fusionq.base.span import Span
from fusionq.language.local_memory import LocalAccessor
from fusionq.language.ranges import NdRange, Range
from fusionq.memory.buffer import AccessorArgument, Buffer
from fusionq.submission.key import SCALAR_CLASSES, range_or_none
from fusionq.submission.pending import KnownSubmission

Array = tuple[tuple[int, ...], tuple[int, ...], int, int, int | None]
"""Extents, strides, storage, offset and address of an array argument."""


class Templates:
    """Checked submissions of one queue by what others must have in common with them; beyond
    ``capacity`` all are forgotten."""

    def __init__(self, capacity: int = 1024) -> None:
        self._capacity = capacity
        self._entries: dict[Hashable, KnownSubmission] = {}

    def add(self, called: object, args: Sequence[object], entry: KnownSubmission) -> None:
        """Remember a submission that has been checked, of a kernel and the error model."""
        submission = entry.submission
        key = _key(submission.span, called, submission.range, args, [])
        if key is not None:
            if len(self._entries) >= self._capacity:
                self._entries.clear()
            self._entries[key] = entry

    def like(
        self, called: object, range: object, args: Sequence[object]
    ) -> KnownSubmission | None:
        """The submission, checked, where what is known of one like it serves it too; else None."""
        space = range_or_none(range)
        if space is None or not self._entries:
            return None
        arrays: list[Array] = []
        try:
            template = self._entries.get(_key(user_span(), called, space, args, arrays))
        except TypeError:  # no kernel, and without a hash
            return None
        if template is None or space.size == 0 or any(0 in a[0] for a in arrays):
            return None
        arguments = _arguments(template.submission.arguments, args, arrays)
        submission = template.submission.like(0, space, arguments)
        entry = KnownSubmission(
            submission,
            template.stores,
            template.scalars,
            template.bounds,
            template.check_again,
            checks=template.checks,
        )
        values = [a.value for a in arguments if isinstance(a, ScalarArgument)]
        return entry if entry.passes(submission, values) else None


def _key(
    span: Span,
    called: object,
    space: Range | NdRange,
    args: Sequence[object],
    arrays: list[Array],
) -> Hashable:
    """What submissions have in common; None where an argument has to be looked at by the checks.
    Adds the array arguments to ``arrays``."""
    parts: list[Hashable] = [called, span.file, span.line, span.text, space.ndim]
    if type(space) is NdRange:
        parts.append(space.local_range)
    for arg in args:
        kind = type(arg)
        if kind is AccessorArgument:
            parts.append(arg.promote)  # type: ignore[attr-defined]  # it is one
            arg = arg.buffer  # type: ignore[attr-defined]
            kind = type(arg)
        if kind is Buffer:
            assert isinstance(arg, Buffer)
            shape, strides, storage, offset = arg._shape, arg._strides, arg._storage, arg._offset
            token, address = storage.token, storage.address
            if address is not None:
                address += offset
            parts += (arg._promotion, arg._internal, storage.owned, storage.writable)
        elif kind is np.ndarray:
            assert isinstance(arg, np.ndarray)
            shape, strides, offset = arg.shape, arg.strides, 0
            address, read_only = arg.__array_interface__["data"]
            itemsize = arg.itemsize
            if not shape or address % itemsize or any(s % itemsize for s in strides):
                return None
            token = -address
            parts.append(read_only)
        elif kind in SCALAR_CLASSES:
            parts.append(kind)  # type: ignore[arg-type]  # classes have hashes
            continue
        elif kind is LocalAccessor:
            parts.append(arg)
            continue
        else:
            return None
        parts += (kind, arg.dtype, len(shape), layout(shape, strides, arg.dtype.itemsize))
        arrays.append((shape, strides, token, offset, address))
    return tuple(parts)


def _arguments(
    template: Sequence[Argument], args: Sequence[object], arrays: Sequence[Array]
) -> tuple[Argument, ...]:
    """The arguments of a template with other values and other memory."""
    places = iter(arrays)
    arguments: list[Argument] = []
    for t, arg in zip(template, args, strict=True):
        if isinstance(t, ArrayArgument):
            arguments.append(t.elsewhere(*next(places)))
        elif isinstance(t, ScalarArgument):
            arguments.append(ScalarArgument(t.name, t.label, t.type, arg))  # type: ignore[arg-type]
        else:
            arguments.append(t)
    return tuple(arguments)
