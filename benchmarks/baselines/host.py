"""Baselines from Python packages: NumPy, numexpr, Numba."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from fusionq.benchmarks.case import Baseline, Unavailable, Workload
from fusionq.benchmarks.timing import Start


def numpy_baseline() -> Baseline:
    """The case's own NumPy form: one pass over memory an operation, results preallocated."""

    def prepare(workload: Workload) -> Start:
        def run() -> None:
            workload.case.numpy(workload.host)

        return run

    return Baseline("NumPy, out=", "unfused", prepare)


def numexpr_baseline(expression: str, **constants: float) -> Baseline:
    """One numexpr expression over the arrays' names, on all cores.

    ``constants`` enter as float32: a literal in the text would make the whole float64.
    """

    def prepare(workload: Workload) -> Start:
        try:
            import numexpr
        except ImportError:
            raise Unavailable("numexpr is not installed: pip install numexpr") from None
        numexpr.set_num_threads(min(os.cpu_count() or 1, numexpr.MAX_THREADS))
        inputs: dict[str, Any] = {n: workload.host[n] for n in workload.case.names("input")}
        inputs |= {name: np.float32(value) for name, value in constants.items()}

        def run() -> None:
            numexpr.evaluate(expression, inputs, {}, out=workload.out, casting="same_kind")

        return run

    return Baseline("numexpr", "promoted", prepare)


def numba_baseline(make: Callable[[Any], Callable[..., None]]) -> Baseline:
    """A parallel loop in Numba: ``make(numba)`` returns the plain Python function over the
    inputs and the output, in the case's order; it uses ``numba.prange``."""

    def prepare(workload: Workload) -> Start:
        try:
            import numba
        except ImportError:
            raise Unavailable("Numba is not installed: pip install numba") from None
        loop = numba.njit(parallel=True)(make(numba))
        case = workload.case
        arrays = [workload.host[name] for name in (*case.names("input"), case.output)]

        def run() -> None:
            loop(*arrays)

        return run

    return Baseline("Numba, parallel", "promoted", prepare)
