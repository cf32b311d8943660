"""One piece of memory, shared by a Buffer and its views, and its life."""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fusionq.backends.base import Allocation, Backend, DeviceEvent, MemoryHome
from fusionq.backends.interruptible import keep_until_run
from fusionq.base.call_site import warn
from fusionq.base.changes import CHANGES
from fusionq.base.errors import ArrayDetached, DeviceError, DeviceLost
from fusionq.memory.foreign_array import ForeignArray, byte_bounds
from fusionq.memory.fusing_queues import LOCK, QUEUES, end_fusion_where_used, note
from fusionq.memory.region import MemoryRegion

_tokens = count(1)


MOST_VIEWS = 4096
"""Of one memory, whose numbers are kept."""

move_listeners: list[Callable[[], None]] = []
"""Called when memory has moved, for those who keep addresses."""


class HostBytes:
    """Memory of another object, as NumPy's array interface; keeps that object alive."""

    def __init__(self, address: int, nbytes: int, writable: bool, owner: object) -> None:
        self.__array_interface__ = {
            "data": (address, not writable),
            "shape": (nbytes,),
            "typestr": "|u1",
            "version": 3,
        }
        self.owner = owner


class Storage:
    """``nbytes`` of memory with a ``token`` that is never used again.

    The memory is allocated when first needed, by the backend that needs it first, filled with zeros
    unless all of it is overwritten then, and moves where another backend needs it that cannot reach
    it; or it is adopted from another object and then there from the start, and stays there.
    ``last_event`` is that of the last launch that used it, on ``last_backend``.
    """

    moves: ClassVar[int] = 0
    """How often memory has moved in this process."""

    __slots__ = (
        "__weakref__",
        "_adopted",
        "_allocation",
        "_home",
        "_reached_by",
        "_shared",
        "_usm_interface",
        "_watchers",
        "address",
        "bound_to",
        "is_overwritten",
        "last_backend",
        "last_event",
        "nbytes",
        "owned",
        "token",
        "view_tokens",
        "writable",
    )

    def __init__(self, nbytes: int) -> None:
        self.token = next(_tokens)
        self.nbytes = nbytes
        self.address: int | None = None
        self.is_overwritten = False
        """Whether what is launched next stores all of the memory, which it is allocated for."""
        self.owned = True
        self.writable = True
        """False for adopted memory that its owner declared read-only."""
        self._usm_interface: dict[str, Any] | None = None
        """That of adopted memory."""
        self.view_tokens: dict[Hashable, int] = {}
        self.last_event: DeviceEvent | None = None
        self.last_backend: Backend | None = None
        self._allocation: Allocation | None = None
        self._adopted: npt.NDArray[np.uint8] | None = None
        self._shared: weakref.ref[npt.NDArray[np.uint8]] | None = None
        """The bytes as the host has been given them, as long as it has them."""
        self._home: MemoryHome | None = None
        self._reached_by: Backend | None = None
        """The last backend that was seen to reach the memory."""
        self.bound_to: Backend | None = None
        """The last backend that has asked for the address for its kernels, which may keep it, and
        has reached the memory since."""
        self._watchers: list[weakref.ref[deque[int]]] = []

    @classmethod
    def adopted(cls, array: ForeignArray) -> Storage:
        """The bytes of ``array``, whose owner lives as long as this does."""
        below, above = byte_bounds(array.shape, array.strides, array.dtype.itemsize)
        address, nbytes = array.address + below, above - below
        storage = cls(nbytes)
        storage.owned = False
        storage.writable = array.writable
        storage.address = address
        storage._usm_interface = array.usm_interface
        if array.home is None:
            owned = HostBytes(address, nbytes, array.writable, array.owner)
            storage._adopted = np.asarray(owned)
        else:
            from fusionq.backends.cuda.foreign import adopted

            storage._home = array.home
            storage._allocation = adopted(array.home, address, nbytes, array.owner)
            storage.last_event = array.work
        return storage

    @property
    def usm_interface(self) -> dict[str, Any] | None:
        """``__sycl_usm_array_interface__`` of what owns the memory, if it is USM."""
        allocation = self._allocation
        return self._usm_interface if allocation is None else allocation.usm_interface

    @property
    def gpu(self) -> int | None:
        """The number of the NVIDIA GPU whose memory it is; None for other memory, and for what has
        not been allocated."""
        return None if self._allocation is None else self._allocation.gpu

    @property
    def region(self) -> MemoryRegion:
        """The memory, for dependence tests."""
        low = self.address or 0
        return MemoryRegion(self.token, low, low + self.nbytes if low else 0)

    def view_token(self, view: Hashable) -> int:
        """A number for one way of looking at this memory, unique in the process; a new one where
        there have been many others since."""
        token = self.view_tokens.get(view)
        if token is None:
            if len(self.view_tokens) >= MOST_VIEWS:
                self.view_tokens.clear()
            token = self.view_tokens.setdefault(view, next(_tokens))
        return token

    def allocate(self, backend: Backend, zeros: bool = True) -> None:
        """Allocate, unless that has been done; ``zeros=False`` where all will be overwritten."""
        with LOCK:
            if self.address is not None:
                return
            nbytes = max(self.nbytes, 1)
            if self.is_overwritten and not zeros:
                found = backend.unfilled(nbytes)
            else:
                found = backend.filled(nbytes) if zeros else (backend.allocate(nbytes), None)
            self._place(*found, backend)
            self._tell_watchers()

    def make_reachable(self, backend: Backend) -> int:
        """The address for kernels on ``backend``, to which the memory moves if it must;
        DeviceError if it is adopted, and ``backend`` cannot reach it."""
        if self.address is None:
            self.allocate(backend, not self.is_overwritten)
        if backend is not self._reached_by and backend is not self._home:
            home = self._home
            if home is not None and home.memory_domain == backend.memory_domain:
                pass
            elif self.owned and not self._is_reachable(backend):
                self._move(backend)
            elif not self.owned:
                self.check_reachable(backend)
            self._reached_by = backend
        self.bound_to = backend
        assert self.address is not None
        return self.address

    def _place(
        self, allocation: Allocation, filled: DeviceEvent | None, backend: Backend
    ) -> None:
        """The memory is that of ``allocation`` from now on; ``filled``: when it has its contents,
        None if it has."""
        self._allocation, self._home, self._reached_by = allocation, backend, backend
        self.address = allocation.address
        if filled is not None:
            self.last_event, self.last_backend = filled, backend

    def _is_reachable(self, backend: Backend) -> bool:
        """Whether kernels of ``backend`` reach the memory, which has been allocated."""
        if not backend.abilities.reaches_others:
            home = self._home
            return home is not None and home.memory_domain == backend.memory_domain
        try:
            self.check_reachable(backend)
        except DeviceError:
            return False
        return True

    def check_reachable(self, backend: Backend) -> None:
        """DeviceError unless kernels of ``backend`` reach the memory, which has been allocated."""
        home = self._home
        if home is not None and home.memory_domain == backend.memory_domain:
            return
        if self.usm_interface is None and self.host_bytes() is None:
            raise DeviceError(f"only {home.info.name if home else 'its device'} reaches the memory")
        check_reachable(backend, self.usm_interface, "a Buffer's memory")

    def _move(self, backend: Backend) -> None:
        """Copy the contents to memory that ``backend`` reaches, and let the old memory go."""
        with LOCK:
            self.wait()
            old, nbytes = self._allocation, max(self.nbytes, 1)
            assert old is not None
            view = old.host_view()
            if view is None:
                view = np.empty(old.nbytes, np.uint8)
                old.read(view)
            contents, filled = view[: self.nbytes], None
            if self._shared is None or self._shared() is None:
                new, filled = backend.filled(nbytes, contents)
            else:  # others may write to the old memory
                new = backend.allocate(nbytes)
                new.write(contents)
                warn(
                    f"a Buffer moves to {backend.info.name}, which cannot reach the memory that "
                    "it has had so far; the arrays that Buffer.numpy() has given share that memory "
                    "still, not the Buffer's: call numpy() again",
                    ArrayDetached,
                )
            self._shared = None
            was_bound, self.bound_to = self.bound_to is not None, None
            self._place(new, filled, backend)
            if was_bound:
                Storage.moves += 1
                CHANGES.latest = object()
                for listener in move_listeners:
                    listener()

    # ------------------------------------------------------------------- on the host
    def host_bytes(self) -> npt.NDArray[np.uint8] | None:
        """The memory, shared, as bytes; None where the host does not see it.  It must have been
        allocated."""
        if self._adopted is not None:
            return self._adopted
        shared = None if self._shared is None else self._shared()
        if shared is None:
            assert self._allocation is not None and self.address is not None
            if self._allocation.host_view() is None:
                return None
            shared = np.asarray(HostBytes(self.address, self.nbytes, True, self._allocation))
            self._shared = weakref.ref(shared)
        return shared

    def read(self, start: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """A copy of ``nbytes`` from ``start`` on, of memory that has been allocated and that no
        launch writes to."""
        assert self._allocation is not None
        return self._allocation.fetched(start, nbytes)

    def write(self, source: npt.NDArray[np.uint8], start: int) -> None:
        """Overwrite the bytes from ``start`` on, of memory that has been allocated and that no
        launch uses."""
        assert self._allocation is not None
        self._allocation.write(source, start)

    def copy(self, start: int, nbytes: int, source: Storage, source_start: int) -> bool:
        """Overwrite ``nbytes`` from ``start`` on with another storage's, on their device; False,
        and nothing done, where they are not on one, or the host sees the memory."""
        mine, other = self._home, source._home
        if mine is None or other is None or mine.memory_domain != other.memory_domain:
            return False
        if self.host_bytes() is not None:
            return False
        assert self._allocation is not None and source.address is not None
        self._allocation.copy(source.address + source_start, nbytes, start)
        return True

    def wait(self) -> None:
        """Block until the last launch that used this memory has run."""
        event = self.last_event
        if event is not None:
            event.wait()

    def watch(self, stale: deque[int]) -> None:
        """Have this storage's token appended to ``stale``, which it does not keep alive, when it is
        allocated or dies."""
        alive = [watcher for watcher in self._watchers if watcher() is not None]
        if not any(watcher() is stale for watcher in alive):
            alive.append(weakref.ref(stale))
        self._watchers = alive

    def _tell_watchers(self) -> None:
        for watcher in self._watchers:
            stale = watcher()
            if stale is not None:
                stale.append(self.token)

    def __del__(self) -> None:
        self._tell_watchers()
        event, allocation = self.last_event, self._allocation
        if event is not None:
            # A lost device has been said; at the end of the process, when the program's end has
            # waited for all queues, what asks of stalls is gone, and so are the names of modules.
            gone = (ImportError, TypeError) if sys.is_finalizing() else ()
            with suppress(DeviceLost, *gone):
                if allocation is None or not allocation.free_after(event):
                    keep_until_run(event, allocation, self._adopted)


class Ownership:
    """Shared by a Buffer and its views; dies with the last of them.

    A list keeps the storage until it has run.  Where that is memory of its own, nobody can look at
    it any more, and the list goes on; memory of others ends fusion mode, since they can.
    """

    __slots__ = ("storage",)

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def __del__(self) -> None:
        if QUEUES and not self.storage.owned and not sys.is_finalizing():
            cause = "the last reference to a Buffer around another object's memory was deleted"
            note(partial(end_fusion_where_used, self.storage.region, cause))


def check_reachable(
    backend: Backend,
    usm_interface: dict[str, Any] | None,
    what: str,
    home: MemoryHome | None = None,
) -> None:
    """DeviceError unless kernels of ``backend`` can reach USM memory, memory of a GPU
    (``home``), or, where both are None, ordinary host memory."""
    if home is not None:
        if home.memory_domain != backend.memory_domain:
            raise DeviceError(
                f"device {backend.info.name!r} cannot reach {what}, which is in the memory of "
                f"{home.info.name} ({home.info.filter_string}); submit to a queue on that GPU, or "
                "copy it with fusionq.Buffer(array)"
            )
    elif usm_interface is not None:
        backend.adopt(usm_interface)
    elif not backend.info.host_memory:
        raise DeviceError(
            f"device {backend.info.name!r} cannot reach ordinary host memory, and {what} lies "
            "there; copy it to the device with fusionq.Buffer(array)"
        )
