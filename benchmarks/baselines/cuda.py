"""Hand-written kernels of CUDA C++ through the driver, and its copy, on the queue's stream."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.case import RawKernels, Unavailable, Workload
from fusionq.benchmarks.timing import Start

_IN_CUDA = {
    "kernel void": 'extern "C" __global__ void',
    "global const": "const",
    "global float": "float",
    "restrict": "__restrict__",
    "get_global_id(0)": "((long)blockIdx.x * blockDim.x + threadIdx.x)",
    "get_global_id(1)": "(long)blockIdx.y",
}
OPTIONS = ("--std=c++17", "--fmad=false")
BLOCK = 256


def as_cuda(source: str) -> str:
    """CUDA C++ of the OpenCL C that the baselines are written in."""
    for opencl, cuda in _IN_CUDA.items():
        source = source.replace(opencl, cuda)
    return source


def cuda_launches(
    workload: Workload, raw: RawKernels
) -> tuple[Start, Callable[[], object]]:
    """Starts the launches, prepared, and waits for them; Unavailable for arrays of more than two
    dimensions."""
    from fusionq.backends.cuda.compiler import compiled
    from fusionq.backends.cuda.devices import device
    from fusionq.backends.cuda.runtime import checked, load_driver

    driver = load_driver()
    *outer, last = workload.extents
    if len(outer) > 1:
        raise Unavailable("the kernels by hand are for one and two dimensions")
    gpu = device(int(workload.queue.device.filter_string.partition(":")[2]))
    gpu.make_current()
    code = compiled(as_cuda(raw.source), gpu.architecture, OPTIONS).code
    module = checked("a cubin", driver.cuModuleLoadData(code))
    stream = driver.CUstream(workload.queue.__cuda_stream__()[1])
    rows = outer[0] if outer else 1
    calls: list[Any] = []
    kept: list[Any] = []
    for name, arrays in raw.launches:
        function = checked("a kernel", driver.cuModuleGetFunction(module, name.encode()))
        interfaces = [on_gpu(workload, array).__cuda_array_interface__ for array in arrays]
        pointers = [interface["data"][0] for interface in interfaces]
        values = [*map(ctypes.c_uint64, pointers), ctypes.c_int64(last)]
        addresses = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        kept += [values, addresses]
        grid = (-(-last // BLOCK), rows, 1)
        calls.append(
            (function, *grid, BLOCK, 1, 1, 0, stream, ctypes.addressof(addresses), 0)
        )

    def start() -> None:
        assert kept
        for call in calls:
            checked("a kernel by hand", driver.cuLaunchKernel(*call))

    return start, workload.queue.wait


def cuda_copy(workload: Workload) -> Start:
    """Copies as many bytes as the fused and promoted kernel reads and writes: half of them read."""
    from fusionq.backends.cuda.runtime import checked, load_driver

    driver = load_driver()
    nbytes = max(workload.case.stated_bytes("promoted", workload.size) // 2, 1)
    source, target = (fq.Buffer(nbytes, np.uint8) for _ in range(2))
    for buffer in (source, target):
        workload.queue.submit(touch, 1, buffer)
    addresses = [buffer.__cuda_array_interface__["data"][0] for buffer in (target, source)]
    stream = driver.CUstream(workload.queue.__cuda_stream__()[1])

    def start() -> None:
        assert source is not target
        checked("a copy", driver.cuMemcpyDtoDAsync(*addresses, nbytes, stream))

    return start


def on_gpu(workload: Workload, array: str) -> fq.Buffer:
    """An array of the workload, which moves to the GPU if it is not there."""
    buffer = workload.buffers[array]
    if not hasattr(buffer, "__cuda_array_interface__"):
        first = buffer[(slice(0, 1),) * buffer.ndim]
        workload.queue.submit(keep_2d if buffer.ndim == 2 else keep, 1, first)
    return buffer


@fq.kernel
def touch(item: fq.Item, a: Any) -> None:
    """Brings an array to the device."""
    a[item.get_id(0)] = 0


@fq.kernel
def keep(item: fq.Item, a: Any) -> None:
    """Brings an array to the device, and leaves it as it is."""
    a[item.get_id(0)] = a[item.get_id(0)]


@fq.kernel
def keep_2d(item: fq.Item, a: Any) -> None:
    """As ``keep``."""
    a[item.get_id(0), 0] = a[item.get_id(0), 0]
