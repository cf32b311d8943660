"""One piece of memory, shared by a Buffer and its views, and its life."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Hashable
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from fusionq.backends.base import Allocation, Backend, DeviceEvent
from fusionq.base.errors import DeviceError
from fusionq.memory.fusing_queues import LOCK, QUEUES, end_fusion_where_used
from fusionq.memory.region import Region

_tokens = count(1)


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

    The memory is allocated when first needed, filled with zeros, by the backend that needs it
    first; or it is adopted from another object and then there from the start.
    ``last_event`` is that of the last launch that used it, on ``last_backend``.
    """

    __slots__ = (
        "__weakref__",
        "_allocation",
        "_bytes",
        "_home",
        "_watchers",
        "address",
        "last_backend",
        "last_event",
        "nbytes",
        "owned",
        "token",
        "usm_interface",
        "view_tokens",
    )

    def __init__(self, nbytes: int) -> None:
        self.token = next(_tokens)
        self.nbytes = nbytes
        self.address: int | None = None
        self.owned = True
        self.usm_interface: dict[str, Any] | None = None
        """``__sycl_usm_array_interface__`` of what owns the memory, if it is USM."""
        self.view_tokens: dict[Hashable, int] = {}
        self.last_event: DeviceEvent | None = None
        self.last_backend: Backend | None = None
        self._allocation: Allocation | None = None
        self._bytes: npt.NDArray[np.uint8] | None = None
        self._home: Backend | None = None
        self._watchers: list[deque[int]] = []

    @classmethod
    def adopted(
        cls,
        address: int,
        nbytes: int,
        writable: bool,
        owner: object,
        usm_interface: dict[str, Any] | None,
    ) -> Storage:
        """Memory of ``owner``, which lives as long as this does."""
        storage = cls(nbytes)
        storage.owned = False
        storage.address = address
        storage.usm_interface = usm_interface
        storage._bytes = np.asarray(HostBytes(address, nbytes, writable, owner))
        return storage

    @property
    def writable(self) -> bool:
        """False for adopted memory that its owner declared read-only."""
        return self._bytes is None or self._bytes.flags.writeable

    @property
    def region(self) -> Region:
        """The memory, for dependence tests."""
        low = self.address or 0
        return Region(self.token, low, low + self.nbytes if low else 0)

    def view_token(self, view: Hashable) -> int:
        """A number for one way of looking at this memory, unique in the process."""
        token = self.view_tokens.get(view)
        if token is None:
            token = self.view_tokens.setdefault(view, next(_tokens))
        return token

    def allocate(self, backend: Backend, zeros: bool = True) -> None:
        """Allocate, unless that has been done; ``zeros=False`` where all will be overwritten."""
        with LOCK:
            if self.address is not None:
                return
            allocation = backend.allocate(max(self.nbytes, 1))
            content = allocation.host_view()
            if zeros:
                content.fill(0)
            self._allocation, self._bytes, self._home = allocation, content, backend
            self.usm_interface = getattr(allocation.handle, "__sycl_usm_array_interface__", None)
            self.address = allocation.address
            self._tell_watchers()

    def make_reachable(self, backend: Backend) -> int:
        """The address for kernels on ``backend``; DeviceError if it cannot reach the memory."""
        if self.address is None:
            self.allocate(backend)
        assert self.address is not None
        if backend is not self._home:
            check_reachable(backend, self.usm_interface, "a Buffer's memory")
        return self.address

    def host_bytes(self) -> npt.NDArray[np.uint8]:
        """The memory, shared, as bytes; it must have been allocated."""
        assert self._bytes is not None
        return self._bytes

    def wait(self) -> None:
        """Block until the last launch that used this memory has run."""
        event = self.last_event
        if event is not None:
            event.wait()

    def watch(self, stale: deque[int]) -> None:
        """Have this storage's token appended to ``stale`` when it is allocated or dies."""
        if not any(watcher is stale for watcher in self._watchers):
            self._watchers.append(stale)

    def _tell_watchers(self) -> None:
        for stale in self._watchers:
            stale.append(self.token)

    def __del__(self) -> None:
        self._tell_watchers()
        self.wait()


class Ownership:
    """Shared by a Buffer and its views; dies with the last of them, which ends fusion mode
    where a list uses the memory (the list itself keeps only the storage alive)."""

    __slots__ = ("storage",)

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def __del__(self) -> None:
        if QUEUES and not sys.is_finalizing():
            cause = "the last reference to a Buffer of the list was deleted"
            end_fusion_where_used(self.storage.region, cause)


def check_reachable(backend: Backend, usm_interface: dict[str, Any] | None, what: str) -> None:
    """DeviceError unless kernels of ``backend`` can reach USM memory, or ordinary host memory
    where ``usm_interface`` is None."""
    if usm_interface is not None:
        backend.adopt(usm_interface)
    elif not backend.info.host_memory:
        raise DeviceError(
            f"device {backend.info.name!r} cannot reach ordinary host memory, and {what} lies "
            "there; copy it to the device with fusionq.Buffer(array)"
        )
