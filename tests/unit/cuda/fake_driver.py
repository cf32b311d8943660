"""A driver that keeps memory on the host and, in place of running kernels, notes what it was asked
to launch with which arguments, as they were then."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

import pytest

import fusionq as fq
from fusionq.backends.cuda import backend, devices, foreign, graph, launch, streams

LIMITS = {
    "COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0, "MULTIPROCESSOR_COUNT": 132,
    "MAX_THREADS_PER_MULTIPROCESSOR": 2048, "MAX_THREADS_PER_BLOCK": 1024,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 233472, "L2_CACHE_SIZE": 52428800,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
}  # fmt: skip
"""Of an H100."""


class Launched(NamedTuple):
    """A launch, or what a node of a graph launches."""

    entry_point: str
    blocks: tuple[int, int, int]
    arguments: tuple[int, ...]
    """The bytes of each as a number, of eight: beyond a shorter one is what lies there."""


class FakeDriver:
    """``cuda.bindings.driver``, as much of it as one stream's launches take; ``launched``: all of
    them, in order, and what was copied; ``calls``: how often each function was called."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self._done = real.CUresult.CUDA_SUCCESS
        self._functions: list[str] = []
        self._streams = 0
        self._graphs: list[list[Launched]] = [[]]
        self.memory: dict[int, Any] = {}
        """What is allocated, by its address."""
        self.freed: list[tuple[int, int]] = []
        """What was, with the stream in whose order it was."""
        self.most_bytes: int | None = None
        """How much there is."""
        self.lengths: dict[int, int] = {}
        """How many arguments there are, by where their addresses are."""
        self.launched: list[Launched] = []
        self.calls: dict[str, int] = {}
        self.is_busy = False
        """Whether a stream still runs what it was given."""
        self._called = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(
            self._launch_graph
        )
        address = ctypes.cast(self._called, ctypes.c_void_p).value
        assert address is not None
        self.launch_graph = ctypes.CFUNCTYPE(ctypes.c_int)(address)
        """``cuGraphLaunch`` as a C function."""

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        if not (name.startswith("cu") and name[2].isupper()):
            return real
        own: Callable[..., Any] = getattr(type(self), f"_{name[2:]}", _nothing)

        def call(*given: Any) -> tuple[Any, ...]:
            self.calls[name] = self.calls.get(name, 0) + 1
            found = own(self, *given)
            if isinstance(found, real_status):
                return (found,)
            if isinstance(found, tuple):
                return self._done, *found
            return (self._done,) if found is None else (self._done, found)

        real_status = self._real.CUresult
        return call

    def _DeviceGetCount(self) -> int:
        return 1

    def _DeviceGet(self, ordinal: int) -> int:
        return ordinal

    def _DeviceGetName(self, length: int, handle: int) -> bytes:
        return b"no GPU\0"

    def _DeviceGetAttribute(self, attribute: Any, handle: int) -> int:
        return LIMITS[attribute.name.removeprefix("CU_DEVICE_ATTRIBUTE_")]

    def _DeviceTotalMem(self, handle: int) -> int:
        return 80 << 30

    def _DriverGetVersion(self) -> int:
        return 13000

    def _DevicePrimaryCtxRetain(self, handle: int) -> Any:
        return self._real.CUcontext(1)

    def _StreamCreate(self, flags: Any) -> Any:
        self._streams += 1
        return self._real.CUstream(4096 + self._streams)

    def _StreamQuery(self, stream: Any) -> Any:
        return self._real.CUresult.CUDA_ERROR_NOT_READY if self.is_busy else None

    def _StreamIsCapturing(self, stream: Any) -> Any:
        return self._real.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE

    def _EventCreate(self, flags: Any) -> Any:
        return self._real.CUevent(11)

    def _EventElapsedTime(self, start: Any, end: Any) -> float:
        return 0.005

    def c_function(self, name: str, *parameters: Any) -> Any:
        """A function of the driver as C has it."""
        return {"cuGraphLaunch": self.launch_graph, "cuPointerGetAttribute": _of_the_first}[name]

    def _MemPoolCreate(self, properties: Any) -> Any:
        return self._real.CUmemoryPool(7)

    def _MemPoolGetAttribute(self, pool: Any, attribute: Any) -> int:
        return sum(len(memory) for memory in self.memory.values())

    def _MemAllocFromPoolAsync(self, nbytes: int, pool: Any, stream: Any) -> Any:
        used = sum(len(memory) for memory in self.memory.values())
        if self.most_bytes is not None and used + nbytes > self.most_bytes:
            return self._real.CUresult.CUDA_ERROR_OUT_OF_MEMORY
        return self._allocate(nbytes)

    def _GetErrorString(self, status: Any) -> bytes:
        return status.name.encode()

    def _MemGetInfo(self) -> tuple[int, int]:
        return 1 << 30, 80 << 30

    def _MemHostAlloc(self, nbytes: int, flags: int) -> int:
        return self._allocate(nbytes)

    def _allocate(self, nbytes: int) -> int:
        memory = ctypes.create_string_buffer(nbytes + 512)
        address = -(-ctypes.addressof(memory) // 512) * 512
        self.memory[address] = memory
        return address

    def _MemFreeAsync(self, address: Any, stream: Any) -> None:
        del self.memory[int(address)]
        self.freed.append((int(address), int(stream)))

    def _MemcpyDtoHAsync(self, target: int, source: int, nbytes: int, stream: Any) -> None:
        ctypes.memmove(target, source, nbytes)

    _MemcpyHtoDAsync = _MemcpyDtoDAsync = _MemcpyDtoHAsync

    def _MemsetD8Async(self, address: int, value: int, nbytes: int, stream: Any) -> None:
        ctypes.memset(address, value, nbytes)

    def _ModuleLoadData(self, code: bytes) -> Any:
        return self._real.CUmodule(5)

    def _ModuleGetFunction(self, module: Any, name: bytes) -> Any:
        self._functions.append(name.decode())
        return self._real.CUfunction(len(self._functions))

    def _FuncGetAttribute(self, attribute: Any, function: Any) -> int:
        return 1024

    def _OccupancyMaxActiveBlocksPerMultiprocessor(self, *given: Any) -> int:
        return 8

    def _noted(self, function: Any, config: Any, parameters: int) -> Launched:
        addresses = (ctypes.c_void_p * self.lengths[parameters]).from_address(parameters)
        arguments = [ctypes.c_uint64.from_address(address or 0).value for address in addresses]
        blocks = config.gridDimX, config.gridDimY, config.gridDimZ
        return Launched(self._functions[int(function) - 1], blocks, tuple(arguments))

    def _LaunchKernelEx(self, config: Any, function: Any, parameters: int, extra: int) -> None:
        self.launched.append(self._noted(function, config, parameters))

    def _GraphCreate(self, flags: int) -> Any:
        self._graphs.append([])
        return self._real.CUgraph(len(self._graphs) - 1)

    def _GraphAddKernelNode(self, of: Any, after: Any, count: int, node: Any) -> Any:
        nodes = self._graphs[int(of)]
        nodes.append(self._noted(node.func, node, int(node.kernelParams)))
        return self._real.CUgraphNode(len(nodes))

    def _GraphInstantiate(self, of: Any, flags: int) -> Any:
        return self._real.CUgraphExec(int(of))

    def _GraphExecKernelNodeSetParams(self, of: Any, place: Any, node: Any) -> None:
        nodes = self._graphs[int(of)]
        nodes[int(place) - 1] = self._noted(node.func, node, int(node.kernelParams))

    def _launch_graph(self, executable: int, stream: int) -> int:
        self.launched += self._graphs[executable]
        return 0


def _nothing(driver: FakeDriver, *given: Any) -> None:
    """A call that gives nothing."""


@functools.cache
def _fake() -> FakeDriver:
    """One for the process, whose caches know programs that it has loaded."""
    return FakeDriver(import_module("cuda.bindings.driver"))


def _of_the_first(place: int, attribute: int, address: int) -> int:
    """The ordinal of the GPU that memory belongs to, into the int at ``place``."""
    ctypes.c_int.from_address(place).value = 0
    return 0


@functools.cache
def _gpu() -> devices.Device:
    return devices.Device(0)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, nvrtc: object) -> FakeDriver:
    """The driver of all queues that are made on ``cuda`` meanwhile."""
    fake = _fake()
    fake.launched, fake.calls, fake.is_busy, fake.most_bytes = [], {}, False, None
    for name, module in tuple(sys.modules.items()):
        if name.startswith("fusionq.backends.cuda") and hasattr(module, "load_driver"):
            monkeypatch.setattr(module, "load_driver", lambda: fake)
    monkeypatch.setattr(devices, "device_count", lambda: 1)
    monkeypatch.setattr(devices.current, "device", None)
    gpu = _gpu()
    for module in (streams, foreign):
        monkeypatch.setattr(module, "device", lambda ordinal: gpu)
    for module in (graph, foreign):
        monkeypatch.setattr(module, "driver_function", fake.c_function)
    has = launch.CudaLaunch._has

    def counted(self: launch.CudaLaunch, arguments: Any) -> None:
        has(self, arguments)
        fake.lengths[self._parameters] = len(self._addresses)

    monkeypatch.setattr(launch.CudaLaunch, "_has", counted)
    return fake


@pytest.fixture
def gpu_queue(driver: FakeDriver) -> Iterator[fq.FusionQueue]:
    """A queue that launches on no GPU."""
    assert backend.CudaBackend is not None
    with fq.FusionQueue("cuda") as queue:
        yield queue
        driver.is_busy = False
