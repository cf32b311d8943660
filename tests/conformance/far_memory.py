"""A backend whose memory the host does not see, and whose launches run later.

It is the reference backend behind addresses of its own, which mean nothing to the host, with
copies between the two; a launch waits in line until somebody waits for it, or for a later one.  So
whoever takes it for granted that the host sees memory, reads it before its launch has run, or lets
it go too early, fails here at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from fusionq.backends.arguments import bound_by_name
from fusionq.backends.base import (
    Abilities,
    ArrayBinding,
    Binding,
    DeviceEvent,
    PreparedLaunch,
    Program,
)
from fusionq.backends.platform import Platform
from fusionq.backends.reference.backend import REFERENCE_DEVICE, ReferenceBackend
from fusionq.backends.reference.checked_arrays import HostAllocation
from fusionq.base.errors import DeviceError
from fusionq.base.target import LaunchShape, target_of
from fusionq.ir.nodes import ArrayParam, Kernel

DISTANCE = 1 << 56
"""Between an address and the host's; no host has memory there."""

FAR_DEVICE = replace(
    REFERENCE_DEVICE, name="far memory", vendor="tests", filter_string="far", host_memory=False
)

_allocated: WeakValueDictionary[int, FarAllocation] = WeakValueDictionary()


class FarAllocation:
    """Memory behind addresses that are not the host's."""

    usm_interface = None
    gpu = None

    def __init__(self, nbytes: int) -> None:
        self._near = HostAllocation(nbytes)
        self.address = self._near.address + DISTANCE
        self.nbytes = nbytes
        _allocated[self.address] = self

    def host_view(self) -> None:
        """The host does not see it."""

    def read(self, into: npt.NDArray[np.uint8], offset: int = 0) -> None:
        self._check(offset, into.size)
        self._near.read(into, offset)

    def fetched(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:
        into = np.empty(nbytes, np.uint8)
        self.read(into, offset)
        return into

    def write(self, source: npt.NDArray[np.uint8], offset: int = 0) -> None:
        self._check(offset, source.size)
        self._near.write(source, offset)

    def copy(self, address: int, nbytes: int, offset: int = 0) -> None:
        self._check(offset, nbytes)
        self._near.copy(near_address(address, nbytes), nbytes, offset)

    def zero(self) -> None:
        self._near.zero()

    def free_after(self, event: DeviceEvent) -> bool:
        return False

    def _check(self, offset: int, nbytes: int) -> None:
        assert 0 <= offset <= offset + nbytes <= max(self.nbytes, 1)


def near_address(address: int, nbytes: int) -> int:
    """The host's address of far memory; DeviceError for what is no far memory, or no more."""
    if not nbytes:
        return address
    for start, allocation in _allocated.items():
        if start <= address and address + nbytes <= start + max(allocation.nbytes, 1):
            return address - DISTANCE
    raise DeviceError(f"there is no far memory of {nbytes} bytes at {address:#x}")


class FarBackend(ReferenceBackend):
    """The reference backend with far memory and a line of launches."""

    abilities = Abilities(runtime=None, asynchronous=True)
    memory_domain: Hashable = "far"

    def __init__(self) -> None:
        super().__init__()
        self.target = target_of(FAR_DEVICE)
        self._line: deque[FarEvent] = deque()

    def allocate(self, nbytes: int) -> FarAllocation:  # type: ignore[override]  # another class
        return FarAllocation(nbytes)

    def prepare(  # type: ignore[override]  # another class
        self, program: Program, arguments: Sequence[Binding], shape: LaunchShape
    ) -> FarLaunch:
        kernel: Kernel = program.kernel  # type: ignore[attr-defined]  # a reference program
        bound = bound_by_name(kernel, arguments)
        inner = super().prepare(program, _all_near(kernel, bound), shape)
        return FarLaunch(self, kernel, bound, inner, {})

    def movable(  # type: ignore[override]  # another class
        self, launch: PreparedLaunch, places: Mapping[str, int]
    ) -> FarLaunch | None:
        assert isinstance(launch, FarLaunch)
        inner = super().movable(launch.inner, places)
        if inner is None:
            return None
        return FarLaunch(self, launch.kernel, launch.bound, inner, places)

    def wait(self) -> None:
        while self._line:
            self._line[0].wait()

    def adopt(self, interface: dict[str, Any]) -> None:
        raise DeviceError("the far device cannot reach USM; copy it to a fusionq Buffer")


def _all_near(kernel: Kernel, bound: Mapping[str, Binding]) -> list[Binding]:
    return [
        _near(binding, param.dtype.nbytes)
        if isinstance(param, ArrayParam) and isinstance(binding, ArrayBinding)
        else binding
        for name, binding in bound.items()
        for param in (kernel.param(name),)
    ]


def _near(binding: ArrayBinding, itemsize: int) -> ArrayBinding:
    if 0 in binding.shape:
        return binding
    reach = [s * (n - 1) * itemsize for s, n in zip(binding.strides, binding.shape, strict=True)]
    below, above = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0) + itemsize
    start = near_address(binding.address + below, above - below)
    return replace(binding, address=start - below)


class FarLaunch:
    """A launch that waits in its backend's line, with the arguments of then; its memory has to be
    there when it runs."""

    def __init__(
        self,
        backend: FarBackend,
        kernel: Kernel,
        bound: Mapping[str, Binding],
        inner: Any,
        places: Mapping[str, int],
    ) -> None:
        self._backend, self.kernel, self.bound, self.inner = backend, kernel, bound, inner
        self._places = places

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> None:
        self.inner.set_scalar(name, value)

    def move(self, addresses: Sequence[int | None]) -> None:
        bound, near = dict(self.bound), list(addresses)
        for name, place in self._places.items():
            binding, address, param = bound[name], addresses[place], self.kernel.param(name)
            assert isinstance(binding, ArrayBinding) and isinstance(param, ArrayParam)
            assert address is not None
            bound[name] = moved = replace(binding, address=address)
            near[place] = _near(moved, param.dtype.nbytes).address
        self.bound = bound
        self.inner.move(near)

    def launch(self, depends: Sequence[DeviceEvent] = ()) -> FarEvent:
        kernel, bound, inner = self.kernel, self.bound, self.inner.copy({})

        def run() -> None:
            for event in depends:
                event.wait()
            _all_near(kernel, bound)
            inner.launch()

        event = FarEvent(self._backend._line, run)
        self._backend._line.append(event)
        return event


class FarEvent:
    """The event of a launch in line."""

    native = None

    def __init__(self, line: deque[FarEvent], run: Callable[[], None]) -> None:
        self._line, self._run = line, run
        self.complete = False

    def wait(self) -> None:
        """Let the line run up to this launch; raises what the launches do."""
        while not self.complete:
            first = self._line.popleft()
            first.complete = True
            first._run()

    def times(self) -> None:
        """There is no clock."""


def _open(target: object, profiling: bool) -> FarBackend:
    return FarBackend()


PLATFORM = Platform(_open, lambda: (FAR_DEVICE,))
