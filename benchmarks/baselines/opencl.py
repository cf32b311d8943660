"""Raw dpctl launches of hand-written OpenCL C kernels, on the same queue and memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from fusionq.benchmarks.case import Baseline, RawKernels, Traffic, Unavailable, Workload
from fusionq.benchmarks.timing import Start, Waitable

HEADER = "#pragma OPENCL FP_CONTRACT OFF\n"
LOCAL_SIZE = 1024
HAND_FUSED = "raw OpenCL, hand-fused"

Launch = tuple[str, tuple[str, ...]]
"""A kernel's name and the arrays it takes; the number of work-items is its last argument."""


def raw_launches(workload: Workload, source: str, launches: tuple[Launch, ...]) -> list[Any]:
    """Build ``source`` and prepare each launch: calls that enqueue and return an event."""
    queue = workload.queue.sycl_queue
    if queue is None:
        raise Unavailable("raw dpctl launches need a SYCL device")
    from dpctl.memory import as_usm_memory
    from dpctl.program import create_program_from_source

    program = create_program_from_source(queue, HEADER + source, "-cl-std=CL3.0")
    *outer, last = workload.extents
    group = workload.case.local_range[-1] if workload.case.local_range else LOCAL_SIZE
    # In SYCL's order: the last is OpenCL's dimension 0.
    global_size = [*outer, -(-last // group) * group]
    local_size = [*(1 for _ in outer), group]

    def prepare(name: str, arrays: tuple[str, ...]) -> Callable[[], Any]:
        kernel = program.get_sycl_kernel(name)
        arguments = [as_usm_memory(workload.buffers[array]) for array in arrays]
        arguments.append(ctypes.c_longlong(last))
        return lambda: queue.submit_async(kernel, arguments, global_size, local_size)

    return [prepare(name, arrays) for name, arrays in launches]


def opencl_baseline(
    name: str,
    traffic: Traffic,
    source: str,
    launches: tuple[Launch, ...],
    is_portable: bool = True,
) -> Baseline:
    """Hand-written kernels, one launch each, in order.

    A kernel takes its arrays and ``long n``, the extent of the last axis, which it guards; the
    global size is rounded up to whole work-groups, of the case's size or 1024.
    ``is_portable``: whether its text is CUDA C++ as well, with other qualifiers.
    """

    def prepare(workload: Workload) -> Start:
        *first, last = raw_launches(workload, source, launches)

        def start() -> Waitable:
            for launch in first:
                launch()
            event: Waitable = last()
            return event

        return start

    raw = RawKernels(source, launches) if is_portable else None
    return Baseline(name, traffic, prepare, raw)
