"""Copies of the memory that a list writes, so that it can run again without being noticed."""

from __future__ import annotations

from collections.abc import Iterator

from fusionq.analysis.aliasing import distance, extent_groups, extent_of
from fusionq.analysis.submission import ArrayArgument, ArrayPlace
from fusionq.backends.base import Allocation, Backend
from fusionq.base.frozen import dataclass
from fusionq.memory.foreign import check_host_access, describe
from fusionq.memory.storage import Storage
from fusionq.submission.known import array_arguments
from fusionq.submission.pending import SubmissionList

_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class _Extent:
    """Arguments that share memory, and the bytes around all of them.  ``offsets``: of each
    argument's first element from the lowest byte.  ``start``: that byte's address, None where the
    memory has not been allocated."""

    arguments: tuple[ArrayArgument, ...]
    offsets: tuple[int, ...]
    nbytes: int
    start: int | None


class Scratch:
    """The copies; an instance is a function from an array argument's place to the address of its
    copy, None where the list only reads that memory.

    Raises DeviceError where there is not enough memory for them, or an array of another library
    cannot be copied.
    """

    def __init__(self, backend: Backend, pending: SubmissionList) -> None:
        self._addresses: dict[tuple[object, ...], int] = {}
        """By an argument's place, but for its address."""
        self._copies: list[tuple[Allocation, int, int, int | None]] = []
        """Each copy, where in it the contents begin, how many bytes they are, and at what address
        those are that it is a copy of; None where that has not been allocated."""
        self.nbytes = 0
        for held in pending.memory:
            if isinstance(held, Storage):
                held.wait()
            elif (foreign := describe(held)) is not None:
                if foreign.work is not None:
                    foreign.work.wait()
                if foreign.home is None:
                    check_host_access(foreign)
        for extent in _written(pending):
            self._copy(backend, extent)
        self.restore()

    def __call__(self, place: ArrayPlace) -> int | None:
        return self._addresses.get(place[:4])

    def restore(self) -> None:
        """Give the copies the contents of the list's own memory again.  No launch may be using
        them."""
        for copy, pad, nbytes, source in self._copies:
            if source is None:
                copy.zero()
            else:
                copy.copy(source, nbytes, pad)

    def _copy(self, backend: Backend, extent: _Extent) -> None:
        origin, start = extent.arguments[0], extent.start
        # On the same place within a cache line; alignment is part of what is measured.
        place = origin.offset - extent.offsets[0] if start is None else start
        pad = place % _ALIGNMENT
        copy = backend.allocate(max(extent.nbytes + pad, 1))
        self.nbytes += extent.nbytes
        self._copies.append((copy, pad, extent.nbytes, start))
        for argument, offset in zip(extent.arguments, extent.offsets, strict=True):
            a = argument
            self._addresses[a.shape, a.strides, a.storage, a.offset] = copy.address + pad + offset


def bytes_written(pending: SubmissionList) -> int:
    """How much memory ``Scratch`` takes."""
    return sum(extent.nbytes for extent in _written(pending))


def _written(pending: SubmissionList) -> Iterator[_Extent]:
    """The arguments that share memory which the list writes."""
    submissions = pending.submissions()
    present = [a for s in submissions for a in s.arguments if isinstance(a, ArrayArgument)]
    stored = [stores for entry in pending.entries for _, stores in array_arguments(entry)]
    groups = extent_groups(present)
    for group in dict.fromkeys(groups):
        members = [k for k, g in enumerate(groups) if g == group]
        if any(stored[k] for k in members):
            yield _extent([present[k] for k in members])


def _extent(arguments: list[ArrayArgument]) -> _Extent:
    origin = arguments[0]
    distances = [distance(origin, a) for a in arguments]
    reach = [extent_of(a) for a in arguments]
    low = min(d + below for d, (below, _) in zip(distances, reach, strict=True))
    high = max(d + above for d, (_, above) in zip(distances, reach, strict=True))
    start = None if origin.address is None else origin.address + low
    return _Extent(tuple(arguments), tuple(d - low for d in distances), high - low, start)
