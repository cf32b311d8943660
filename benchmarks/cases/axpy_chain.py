"""Three weighted sums in a row: ``0.5 (0.25 (2 x1 - x2) + x3) + 3 x4``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusionq.benchmarks.baselines.c_openmp import c_baselines
from fusionq.benchmarks.baselines.host import numba_baseline, numexpr_baseline, numpy_baseline
from fusionq.benchmarks.baselines.opencl import HAND_FUSED, opencl_baseline
from fusionq.benchmarks.case import ArraySpec, Case, HostArrays, Step
from fusionq.kernels import weighted_sum
from fusionq.kernels.library import Array

OPENCL_FUSED = """
kernel void fused(global const float *restrict x1, global const float *restrict x2,
                  global const float *restrict x3, global const float *restrict x4,
                  global float *restrict out, long n) {
    long i = get_global_id(0);
    if (i < n) {
        float sum = 2.0f * x1[i] + -1.0f * x2[i];
        sum = 0.25f * sum + 1.0f * x3[i];
        out[i] = 0.5f * sum + 3.0f * x4[i];
    }
}
"""


def with_numpy(arrays: HostArrays) -> None:
    """One pass an operation, over two arrays that are used again and again."""
    sum_, term = arrays["sum1"], arrays["sum2"]
    np.multiply(arrays["x1"], np.float32(2.0), out=sum_)
    np.subtract(sum_, arrays["x2"], out=sum_)
    np.multiply(sum_, np.float32(0.25), out=sum_)
    np.add(sum_, arrays["x3"], out=sum_)
    np.multiply(sum_, np.float32(0.5), out=sum_)
    np.multiply(arrays["x4"], np.float32(3.0), out=term)
    np.add(sum_, term, out=arrays["out"])


def numba_loop(numba: Any) -> Callable[..., None]:
    prange = numba.prange
    half, quarter, two, three = (np.float32(value) for value in (0.5, 0.25, 2.0, 3.0))

    def loop(x1: Array, x2: Array, x3: Array, x4: Array, out: Array) -> None:
        for i in prange(out.size):
            out[i] = half * (quarter * (two * x1[i] - x2[i]) + x3[i]) + three * x4[i]

    return loop


CASE = Case(
    name="axpy_chain",
    description="three weighted sums, two temporaries",
    sizes=(16_000_000,),
    extents=lambda size: (size,),
    arrays=(
        *(ArraySpec(name, "input") for name in ("x1", "x2", "x3", "x4")),
        *(ArraySpec(name, "temporary") for name in ("sum1", "sum2")),
        ArraySpec("out", "output"),
    ),
    steps=(
        Step(weighted_sum, (2.0, "x1", -1.0, "x2", "sum1")),
        Step(weighted_sum, (0.25, "sum1", 1.0, "x3", "sum2")),
        Step(weighted_sum, (0.5, "sum2", 3.0, "x4", "out")),
    ),
    numpy=with_numpy,
    expression=lambda xp, a: 0.5 * (0.25 * (2.0 * a["x1"] - a["x2"]) + a["x3"]) + 3.0 * a["x4"],
    baselines=(
        opencl_baseline(
            HAND_FUSED,
            "promoted",
            OPENCL_FUSED,
            (("fused", ("x1", "x2", "x3", "x4", "out")),),
        ),
        numpy_baseline(),
        numexpr_baseline(
            "half * (quarter * (two * x1 - x2) + x3) + three * x4",
            half=0.5,
            quarter=0.25,
            two=2.0,
            three=3.0,
        ),
        numba_baseline(numba_loop),
        *c_baselines("0.5f * (0.25f * (2.0f * x1 - x2) + x3) + 3.0f * x4"),
    ),
)
