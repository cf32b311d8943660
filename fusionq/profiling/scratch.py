"""Copies of the memory that a list writes, so that it can run again without being noticed."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np

from fusionq.analysis.aliasing import distance, extent_of, places
from fusionq.analysis.submission import ArrayArgument
from fusionq.backends.base import Allocation, Backend
from fusionq.storage import Storage
from fusionq.submission_list import SubmissionList, array_arguments

_ALIGNMENT = 64

Key = tuple[object, ...]


class Scratch:
    """The copies; an instance is a function from an array argument to the address of its copy,
    None where the list only reads that memory.

    Raises DeviceError where there is not enough memory for them.
    """

    def __init__(self, backend: Backend, pending: SubmissionList) -> None:
        self._addresses: dict[Key, int] = {}
        self._memory: list[Allocation] = []
        self.nbytes = 0
        submissions = pending.submissions()
        present = [a for s in submissions for a in s.arguments if isinstance(a, ArrayArgument)]
        stored = [stores for entry in pending.entries for _, stores in array_arguments(entry)]
        groups = [place.group for place in places(present)]
        for held in pending.memory:
            if isinstance(held, Storage):
                held.wait()
        for group in dict.fromkeys(groups):
            members = [k for k, g in enumerate(groups) if g == group]
            if any(stored[k] for k in members):
                self._copy(backend, [present[k] for k in members])

    def __call__(self, argument: ArrayArgument) -> int | None:
        return self._addresses.get(_key(argument))

    def _copy(self, backend: Backend, arguments: list[ArrayArgument]) -> None:
        origin = arguments[0]
        distances = [distance(origin, a) for a in arguments]
        reach = [extent_of(a) for a in arguments]
        low = min(d + below for d, (below, _) in zip(distances, reach, strict=True))
        high = max(d + above for d, (_, above) in zip(distances, reach, strict=True))
        start = None if origin.address is None else origin.address + low
        # On the same place within a cache line; alignment is part of what is measured.
        pad = (origin.offset + low if start is None else start) % _ALIGNMENT
        copy = backend.allocate(high - low + pad)
        self._memory.append(copy)
        self.nbytes += high - low
        content = copy.host_view()[pad : pad + high - low]
        if start is None:
            content.fill(0)
        else:
            source = (ctypes.c_uint8 * (high - low)).from_address(start)
            np.copyto(content, np.ctypeslib.as_array(source))
        for argument, offset in zip(arguments, distances, strict=True):
            self._addresses[_key(argument)] = copy.address + pad + offset - low


def bytes_written(pending: SubmissionList) -> int:
    """How much memory ``Scratch`` takes, about."""
    return sum(_sizes(pending))


def _sizes(pending: SubmissionList) -> Iterator[int]:
    seen: set[int] = set()
    for entry in pending.entries:
        for argument, stores in array_arguments(entry):
            if stores and argument.storage not in seen:
                seen.add(argument.storage)
                below, above = extent_of(argument)
                yield above - below


def _key(argument: ArrayArgument) -> Key:
    return argument.storage, argument.offset, argument.shape, argument.strides, argument.dtype
