"""New memory that a list overwrites before anybody reads it, so that nobody need fill it.

Programs that make their temporaries anew at each call have it filled with zeros otherwise, by one
thread of the host, which takes as long as a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from fusionq.analysis.submission import ArrayPlace, Operands
from fusionq.cache.entries import MOST_VARIANTS
from fusionq.memory.foreign_array import contiguous_strides
from fusionq.memory.storage import Storage
from fusionq.submission.known import KnownSubmission, submissions_of

LEAST = 1 << 16
"""Bytes from which on it is asked: less is filled within microseconds, and to find out takes
milliseconds the first time."""


class OverwrittenMemory:
    """Inside of the block what is allocated of the ``memory`` of a list's array arguments is not
    filled, where the first of the submissions that use it stores it as a whole, and reads none of
    it: the submissions that stand for ``entries``, and have ``operands``, in order, which all run
    then, or the memory has any contents."""

    __slots__ = ("_found",)

    def __init__(
        self,
        entries: Sequence[KnownSubmission],
        operands: Callable[[], Sequence[Operands]],
        memory: Sequence[object],
    ) -> None:
        self._found: list[Storage] = []
        for held in memory:
            if type(held) is Storage and held.address is None and held.nbytes >= LEAST:
                self._found = _overwritten(entries, operands(), memory)
                break

    def __enter__(self) -> None:
        for held in self._found:
            held.is_overwritten = True

    def __exit__(self, *error: object) -> None:
        for held in self._found:
            held.is_overwritten = False


def _overwritten(
    entries: Sequence[KnownSubmission], operands: Sequence[Operands], memory: Sequence[object]
) -> list[Storage]:
    found: list[Storage] = []
    seen: set[int] = set()
    """The tokens of what submissions before use."""
    start = 0
    for entry, of_entry in zip(entries, operands, strict=True):
        places, dtypes = of_entry.places, of_entry.form.dtypes
        own = memory[start : start + len(places)]
        start += len(places)
        tokens = [held.token if type(held) is Storage else 0 for held in own]
        asked = [
            (k, held)
            for k, held in enumerate(own)
            if type(held) is Storage
            and held.address is None
            and held.nbytes >= LEAST
            and entry.stores[k]
            and held.token not in seen
            and tokens.count(held.token) == 1
            and _is_whole(places[k], dtypes[k].nbytes, held)
        ]
        seen.update(tokens)
        if asked:
            stored = _stored_whole(entry, of_entry)
            found += [held for k, held in asked if k in stored]
    return found


def _is_whole(place: ArrayPlace, itemsize: int, held: Storage) -> bool:
    """Whether an argument is all of a memory."""
    shape, strides, _, offset, _ = place
    if offset or prod(shape) * itemsize != held.nbytes:
        return False
    return tuple(strides) == contiguous_strides(tuple(shape), itemsize)


def _stored_whole(entry: KnownSubmission, operands: Operands) -> frozenset[int]:
    """Which array arguments the submission with these ``operands`` stores as a whole; none where
    that was asked for many others of its structure."""
    known = entry.whole_stores
    for validity, arrays in known:
        if validity is None or validity.holds((operands,)):
            return arrays
    if len(known) >= MOST_VARIANTS:
        return frozenset()
    from fusionq.planning.whole_stores import whole_stores

    (submission,) = submissions_of([entry.deferred], operands.values)
    made = whole_stores(submission, known)
    known.append(made)
    holds = made.validity is None or made.validity.holds((operands,))
    return made.arrays if holds else frozenset()
