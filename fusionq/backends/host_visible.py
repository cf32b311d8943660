"""Allocations that the host sees: their operations, on the host."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt

from fusionq.backends.base import DeviceEvent


class HostVisible:
    """The operations of an ``Allocation`` by way of ``host_view``."""

    __slots__ = ()

    gpu: int | None = None
    """It is no GPU's."""

    def host_view(self) -> npt.NDArray[np.uint8]:
        """The bytes, shared, not copied."""
        raise NotImplementedError

    def read(self, into: npt.NDArray[np.uint8], offset: int = 0) -> None:
        """Copy the bytes from ``offset`` on to ``into``."""
        np.copyto(into, self.host_view()[offset : offset + into.size])

    def fetched(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """A copy of ``nbytes`` from ``offset`` on."""
        into = np.empty(nbytes, np.uint8)
        self.read(into, offset)
        return into

    def write(self, source: npt.NDArray[np.uint8], offset: int = 0) -> None:
        """Overwrite the bytes from ``offset`` on with ``source``."""
        np.copyto(self.host_view()[offset : offset + source.size], source)

    def copy(self, address: int, nbytes: int, offset: int = 0) -> None:
        """Overwrite the bytes from ``offset`` on with ``nbytes`` at ``address``, host memory."""
        block = (ctypes.c_uint8 * nbytes).from_address(address)
        self.write(np.ctypeslib.as_array(block), offset)

    def zero(self) -> None:
        """Set all bytes to zero."""
        self.host_view().fill(0)

    def free_after(self, event: DeviceEvent) -> bool:
        """False: arrays of the host may share it."""
        return False
