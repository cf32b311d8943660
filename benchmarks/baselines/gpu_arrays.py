"""CuPy, PyTorch and JAX: a case's arithmetic of whole arrays, on the queue's memory and, but for
JAX, on its stream."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from fusionq.benchmarks.baselines.cuda import on_gpu
from fusionq.benchmarks.case import Unavailable, Workload
from fusionq.benchmarks.timing import Start

Prepared = tuple[Start, Callable[[], object]]


def _expression(workload: Workload) -> Callable[[Any, Mapping[str, Any]], Any]:
    expression = workload.case.expression
    if expression is None:
        raise Unavailable("this case has no form as arithmetic of arrays")
    return expression


def _inputs(workload: Workload, make: Callable[[object], Any]) -> dict[str, Any]:
    return {name: make(on_gpu(workload, name)) for name in workload.case.names("input")}


def torch_eager(workload: Workload) -> Prepared:
    """PyTorch, an operation at a time."""
    return _torch(workload, lambda torch, function: function)


def torch_compiled(workload: Workload) -> Prepared:
    """``torch.compile``."""
    return _torch(workload, lambda torch, function: torch.compile(function))


def _torch(workload: Workload, wrap: Callable[[Any, Any], Any]) -> Prepared:
    expression = _expression(workload)
    try:
        import torch
    except ImportError as error:
        raise Unavailable(f"PyTorch is not installed: {error}") from None
    if not torch.cuda.is_available():
        raise Unavailable("PyTorch sees no GPU")
    arrays = _inputs(workload, torch.from_dlpack)
    stream = torch.cuda.ExternalStream(workload.queue.__cuda_stream__()[1])
    function = wrap(torch, lambda arrays: expression(torch, arrays))
    found = SimpleNamespace(value=None)

    def start() -> None:
        with torch.cuda.stream(stream):
            found.value = function(arrays)

    def finish() -> None:
        with torch.cuda.stream(stream):
            torch.from_dlpack(on_gpu(workload, workload.case.output)).copy_(found.value)
        stream.synchronize()

    try:
        start()
    except Exception as error:
        raise Unavailable(f"{type(error).__name__}: {error}"[:300]) from None
    return start, finish


def cupy_eager(workload: Workload) -> Prepared:
    """CuPy, an operation at a time."""
    return _cupy(workload, lambda cupy, function: function)


def cupy_fused(workload: Workload) -> Prepared:
    """``cupy.fuse``."""

    def fuse(cupy: Any, function: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
        names = workload.case.names("input")

        def fused(*arrays: Any) -> Any:  # CuPy's kernel has this name
            return function(dict(zip(names, arrays, strict=True)))

        kernel = cupy.fuse()(fused)
        return lambda arrays: kernel(*arrays.values())

    return _cupy(workload, fuse)


def _cupy(workload: Workload, wrap: Callable[[Any, Any], Any]) -> Prepared:
    expression = _expression(workload)
    try:
        import cupy
    except ImportError as error:
        raise Unavailable(f"CuPy is not installed: {error}") from None
    arrays = _inputs(workload, cupy.asarray)
    stream = cupy.cuda.ExternalStream(workload.queue.__cuda_stream__()[1])
    function = wrap(cupy, lambda arrays: expression(cupy, arrays))
    found = SimpleNamespace(value=None)

    def start() -> None:
        with stream:
            found.value = function(arrays)

    def finish() -> None:
        with stream:
            cupy.asarray(on_gpu(workload, workload.case.output))[...] = found.value
        stream.synchronize()

    try:
        start()
    except Exception as error:
        raise Unavailable(f"{type(error).__name__}: {error}"[:300]) from None
    return start, finish


def jax_jit(workload: Workload) -> Prepared:
    """``jax.jit``.  JAX has streams of its own, so each run is waited for on the host."""
    expression = _expression(workload)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others have memory, too
    try:
        import jax
    except ImportError as error:
        raise Unavailable(f"JAX is not installed: {error}") from None
    if jax.default_backend() != "gpu":
        raise Unavailable("JAX sees no GPU")
    workload.queue.wait()
    arrays = _inputs(workload, jax.dlpack.from_dlpack)
    function = jax.jit(lambda arrays: expression(jax.numpy, arrays))
    found = SimpleNamespace(value=None)

    def start() -> None:
        found.value = function(arrays).block_until_ready()

    def finish() -> None:
        on_gpu(workload, workload.case.output).write(np.asarray(found.value))

    try:
        start()
    except Exception as error:
        raise Unavailable(f"{type(error).__name__}: {error}"[:300]) from None
    return start, finish


BASELINES: dict[str, Callable[[Workload], Prepared]] = {
    "CuPy": cupy_eager,
    "CuPy, fuse": cupy_fused,
    "PyTorch, eager": torch_eager,
    "torch.compile": torch_compiled,
    "JAX, jit, each run waited for": jax_jit,
}
