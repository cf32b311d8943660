"""Contenders for arguments that are new at each call: in1·in2 - (in1 - in3)·in4 over new arrays,
with the result in a new one; and what the first launch of it takes by itself."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import fusionq as fq
from fusionq.benchmarks.baselines.opencl import HEADER, LOCAL_SIZE, Launch
from fusionq.benchmarks.case import Unavailable
from fusionq.benchmarks.cases import seeds

Arrays = Sequence[npt.NDArray[np.float32]]
"""The inputs."""
Make = Callable[[Arrays], Any]
"""Gives inputs, which may be kept by anybody, as the contender takes them."""
Call = Callable[[Any], Any]
"""Gives the result, or what has to be kept until it is there."""
SPIN_SECONDS = 0.3
"""OpenMP's threads spin for 0.2 s behind a loop."""
Contender = tuple[str, str, float, Callable[[], tuple[Make, Call]]]
"""The name and a note; for how many seconds after a call its threads keep processors busy; what
brings it up raises Unavailable."""


def contenders(queue: fq.FusionQueue) -> Iterator[Contender]:
    """All of them; dpctl's is on the same SYCL queue."""
    yield "numpy", "the same result; NumPy's operators", 0.0, lambda: (_as_they_are, _numpy)
    yield "numexpr", "the same result; one expression", 0.0, lambda: (_as_they_are, _numexpr())
    spins = "the same result; one loop, parallel; its threads spin between calls"
    yield "numba", spins, SPIN_SECONDS, lambda: (_as_they_are, _numba())
    four = "the same result; four launches of built kernels, USM"
    yield "dpctl", four, 0.0, lambda: _dpctl(queue)
    one = "one of these launches, with the memory of its result"
    yield "dpctl_one_launch", one, 0.0, lambda: _dpctl(queue, seeds.UNFUSED_LAUNCHES[:1])


def _as_they_are(inputs: Arrays) -> Arrays:
    return inputs


def _numpy(a: Arrays) -> Any:
    return a[0] * a[1] - (a[0] - a[2]) * a[3]


def _numexpr() -> Call:
    try:
        import numexpr
    except ImportError:
        raise Unavailable("numexpr is not installed: pip install numexpr") from None
    names = ("in1", "in2", "in3", "in4")

    def call(inputs: Arrays) -> Any:
        arrays = dict(zip(names, inputs, strict=True))
        return numexpr.evaluate("in1 * in2 - (in1 - in3) * in4", arrays, {})

    return call


def _numba() -> Call:
    try:
        import numba
    except ImportError:
        raise Unavailable("Numba is not installed: pip install numba") from None
    loop = numba.njit(parallel=True)(seeds.numba_loop(numba))

    def call(inputs: Arrays) -> Any:
        out = np.empty_like(inputs[0])
        loop(*inputs, out)
        return out

    return call


def _dpctl(
    queue: fq.FusionQueue, launches: Sequence[Launch] = seeds.UNFUSED_LAUNCHES
) -> tuple[Make, Call]:
    native = queue.sycl_queue
    if native is None:
        raise Unavailable("dpctl's launches need a SYCL device")
    from dpctl.memory import MemoryUSMShared
    from dpctl.program import create_program_from_source

    program = create_program_from_source(native, HEADER + seeds.OPENCL_UNFUSED, "-cl-std=CL3.0")
    kernels = {name: program.get_sycl_kernel(name) for name in ("mul", "sub")}

    def new(nbytes: int) -> Any:
        return MemoryUSMShared(nbytes, queue=native)

    def make(inputs: Arrays) -> Any:
        memory = [new(a.nbytes) for a in inputs]
        for to, a in zip(memory, inputs, strict=True):
            to.copy_from_host(a.view(np.uint8))
        return memory

    def call(inputs: Any) -> Any:
        nbytes = inputs[0].nbytes
        memory = dict(zip(("in1", "in2", "in3", "in4"), inputs, strict=True))
        memory |= {arrays[-1]: new(nbytes) for _, arrays in launches}
        n = nbytes // np.dtype(np.float32).itemsize
        items = ctypes.c_longlong(n)
        whole = [-(-n // LOCAL_SIZE) * LOCAL_SIZE]
        for name, arrays in launches:
            arguments = [*[memory[a] for a in arrays], items]
            native.submit_async(kernels[name], arguments, whole, [LOCAL_SIZE])
        return memory

    return make, call
