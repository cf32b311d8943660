"""Arrays in storages as the host uses them: shared where it sees the memory, copied where not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fusionq.base.frozen import dataclass
from fusionq.memory.foreign_array import byte_bounds, contiguous_strides
from fusionq.memory.storage import Storage

Access = Literal["read", "write", "read_write"]
"""What is done to an array; ``write`` overwrites all of its elements."""


@dataclass(frozen=True, slots=True)
class StoredArray:
    """An array in a storage that has been allocated; ``strides`` and ``offset``, that of element
    [0, …], in bytes."""

    storage: Storage
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def bounds(self) -> tuple[int, int]:
        """Where its first byte lies in the storage, and one past the last."""
        below, above = byte_bounds(self.shape, self.strides, self.dtype.itemsize)
        return self.offset + below, self.offset + above

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements lie one after the other, in C order."""
        return self.strides == contiguous_strides(self.shape, self.dtype.itemsize)

    def over(self, memory: npt.NDArray[np.uint8], start: int = 0) -> npt.NDArray[Any]:
        """The array over ``memory``, the storage's bytes from ``start`` on."""
        if 0 in self.shape:  # its first element may lie outside
            return np.ndarray(self.shape, self.dtype, memory)
        array: npt.NDArray[Any] = np.ndarray(
            self.shape, self.dtype, memory, self.offset - start, self.strides
        )
        return array


def host_array(array: StoredArray) -> npt.NDArray[Any]:
    """The array, shared; a read-only copy where the host does not see its memory."""
    shared = array.storage.host_bytes()
    if shared is not None:
        return array.over(shared)
    start, end = array.bounds
    copy = array.over(array.storage.read(start, end - start), start)
    copy.flags.writeable = False
    return copy


def overwrite(
    array: StoredArray, source: npt.NDArray[Any], casting: Literal["safe", "same_kind"]
) -> None:
    """Give the array the contents of ``source``, of its shape, converted by NumPy's ``casting``."""
    storage = array.storage
    plain = array.is_contiguous and source.dtype == array.dtype and source.flags.c_contiguous
    if plain and storage.host_bytes() is None:
        storage.write(source.reshape(-1).view(np.uint8), array.bounds[0])
        return
    with host_arrays([(array, "write")]) as (into,):
        np.copyto(into, source, casting=casting)


@contextmanager
def host_arrays(
    accesses: Sequence[tuple[StoredArray, Access]],
) -> Iterator[list[npt.NDArray[Any]]]:
    """The arrays for as long as the block runs; no launch may use their memory meanwhile.

    Where the host does not see a storage's memory, its arrays share one copy, which is written
    back when the block ends, also by an error, as if it had been the memory itself.
    """
    copies: dict[Storage, _Copy] = {}
    for storage in dict.fromkeys(array.storage for array, _ in accesses):
        if storage.host_bytes() is None:
            copies[storage] = _Copy.of(storage, [a for a in accesses if a[0].storage is storage])
    done = False
    try:
        yield [
            host_array(array) if copy is None else array.over(copy.memory, copy.start)
            for array, _ in accesses
            for copy in (copies.get(array.storage),)
        ]
        done = True
    finally:
        for storage, copy in copies.items():
            if copy.is_written and (done or copy.was_read):
                storage.write(copy.memory, copy.start)


@dataclass(frozen=True, slots=True)
class _Copy:
    """A storage's bytes from ``start`` on, on the host.  ``was_read``: they were the storage's
    from the beginning; else all of them are to be overwritten."""

    memory: npt.NDArray[np.uint8]
    start: int
    was_read: bool
    is_written: bool

    @classmethod
    def of(cls, storage: Storage, accesses: Sequence[tuple[StoredArray, Access]]) -> _Copy:
        """What the arrays need, all in ``storage``."""
        bounds = [array.bounds for array, _ in accesses if array.nbytes] or [(0, 0)]
        start, end = min(low for low, _ in bounds), max(high for _, high in bounds)
        overwritten = any(
            how == "write" and array.is_contiguous and array.nbytes == end - start
            for array, how in accesses
        )
        only_written = overwritten and all(how == "write" for _, how in accesses)
        memory = (
            np.empty(end - start, np.uint8) if only_written else storage.read(start, end - start)
        )
        return cls(memory, start, not only_written, any(how != "read" for _, how in accesses))


def copy_on_device(target: StoredArray, source: StoredArray) -> bool:
    """Copy between contiguous arrays in two storages of one device whose memory the host does not
    see; False, and nothing done, for others."""
    if target.storage is source.storage:
        return False
    if not (target.is_contiguous and source.is_contiguous):
        return False
    return target.storage.copy(
        target.bounds[0], target.nbytes, source.storage, source.bounds[0]
    )
