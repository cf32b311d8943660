"""The four-kernel example: ``in1·in2 - (in1 - in3)·in4`` with three temporaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.baselines.c_openmp import c_baselines
from fusionq.benchmarks.baselines.host import numba_baseline, numexpr_baseline, numpy_baseline
from fusionq.benchmarks.baselines.opencl import HAND_FUSED, opencl_baseline
from fusionq.benchmarks.case import ArraySpec, Case, HostArrays, Step
from fusionq.kernels.library import Array


@fq.kernel
def mul(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    i = item.get_id(0)
    out[i] = a[i] * b[i]


@fq.kernel
def sub(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    i = item.get_id(0)
    out[i] = a[i] - b[i]


OPENCL_UNFUSED = """
kernel void mul(global const float *a, global const float *b, global float *out, long n) {
    long i = get_global_id(0);
    if (i < n) out[i] = a[i] * b[i];
}
kernel void sub(global const float *a, global const float *b, global float *out, long n) {
    long i = get_global_id(0);
    if (i < n) out[i] = a[i] - b[i];
}
"""
UNFUSED_LAUNCHES = (
    ("mul", ("in1", "in2", "tmp1")),
    ("sub", ("in1", "in3", "tmp2")),
    ("mul", ("tmp2", "in4", "tmp3")),
    ("sub", ("tmp1", "tmp3", "out")),
)
OPENCL_FUSED = """
kernel void fused(global const float *restrict in1, global const float *restrict in2,
                  global const float *restrict in3, global const float *restrict in4,
                  global float *restrict out, long n) {
    long i = get_global_id(0);
    if (i < n) out[i] = in1[i] * in2[i] - (in1[i] - in3[i]) * in4[i];
}
"""
FUSED_LAUNCHES = (("fused", ("in1", "in2", "in3", "in4", "out")),)


def with_numpy(arrays: HostArrays) -> None:
    """Four passes, two of them in place."""
    tmp1, tmp2, out = arrays["tmp1"], arrays["tmp2"], arrays["out"]
    np.multiply(arrays["in1"], arrays["in2"], out=tmp1)
    np.subtract(arrays["in1"], arrays["in3"], out=tmp2)
    np.multiply(tmp2, arrays["in4"], out=tmp2)
    np.subtract(tmp1, tmp2, out=out)


def numba_loop(numba: Any) -> Callable[..., None]:
    prange = numba.prange

    def loop(in1: Array, in2: Array, in3: Array, in4: Array, out: Array) -> None:
        for i in prange(out.size):
            out[i] = in1[i] * in2[i] - (in1[i] - in3[i]) * in4[i]

    return loop


CASE = Case(
    name="seeds",
    description="four kernels, three temporaries: in1·in2 - (in1 - in3)·in4",
    sizes=(100_000_000, 1_000_000, 1_000),
    extents=lambda size: (size,),
    arrays=(
        *(ArraySpec(name, "input") for name in ("in1", "in2", "in3", "in4")),
        *(ArraySpec(name, "temporary") for name in ("tmp1", "tmp2", "tmp3")),
        ArraySpec("out", "output"),
    ),
    steps=(
        Step(mul, ("in1", "in2", "tmp1")),
        Step(sub, ("in1", "in3", "tmp2")),
        Step(mul, ("tmp2", "in4", "tmp3")),
        Step(sub, ("tmp1", "tmp3", "out")),
    ),
    numpy=with_numpy,
    expression=lambda xp, a: a["in1"] * a["in2"] - (a["in1"] - a["in3"]) * a["in4"],
    baselines=(
        opencl_baseline("raw OpenCL, unfused", "unfused", OPENCL_UNFUSED, UNFUSED_LAUNCHES),
        opencl_baseline(HAND_FUSED, "promoted", OPENCL_FUSED, FUSED_LAUNCHES),
        numpy_baseline(),
        numexpr_baseline("in1 * in2 - (in1 - in3) * in4"),
        numba_baseline(numba_loop),
        *c_baselines("in1 * in2 - (in1 - in3) * in4"),
    ),
)
