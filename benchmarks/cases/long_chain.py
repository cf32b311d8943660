"""Many light kernels in a row over one array: twelve steps of the logistic map."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.baselines.c_openmp import c_baselines
from fusionq.benchmarks.baselines.host import numba_baseline, numpy_baseline
from fusionq.benchmarks.baselines.opencl import HAND_FUSED, opencl_baseline
from fusionq.benchmarks.case import ArraySpec, Case, HostArrays, Step
from fusionq.kernels.library import Array, Scalar

STEPS = 12
RATE = 3.5
"""Exact in float32; within [0, 1] the map stays there."""

OPENCL_FUSED = f"""
kernel void fused(global const float *restrict x, global float *restrict out, long n) {{
    long i = get_global_id(0);
    if (i < n) {{
        float v = x[i];
        for (int step = 0; step < {STEPS}; step++)
            v = {RATE}f * v * (1.0f - v);
        out[i] = v;
    }}
}}
"""


@fq.kernel
def logistic(item: fq.Item, rate: Scalar, x: Array, out: Array) -> None:
    i = item.get_id(0)
    out[i] = rate * x[i] * (1.0 - x[i])


def with_numpy(arrays: HostArrays) -> None:
    """Three passes a step."""
    v, rest = arrays["ping"], arrays["pong"]
    np.copyto(v, arrays["x"])
    for step in range(STEPS):
        np.subtract(np.float32(1.0), v, out=rest)
        np.multiply(v, np.float32(RATE), out=v)
        np.multiply(v, rest, out=arrays["out"] if step == STEPS - 1 else v)


def numba_loop(numba: Any) -> Callable[..., None]:
    prange = numba.prange
    rate, one, steps = np.float32(RATE), np.float32(1.0), STEPS

    def loop(x: Array, out: Array) -> None:
        for i in prange(out.size):
            v = x[i]
            for _ in range(steps):
                v = rate * v * (one - v)
            out[i] = v

    return loop


def _chain() -> tuple[Step, ...]:
    names = ["x", *(("ping", "pong")[step % 2] for step in range(STEPS - 1)), "out"]
    return tuple(Step(logistic, (RATE, source, target)) for source, target in pairwise(names))


def _nested(start: str) -> str:
    """The last step's result as one C expression (statement expressions keep it short)."""
    body = " ".join(f"v = {RATE}f * v * (1.0f - v);" for _ in range(STEPS))
    return f"({{ vector v = {start}; {body} v; }})"


CASE = Case(
    name="long_chain",
    description=f"{STEPS} steps of the logistic map, two temporaries in turn",
    sizes=(16_000_000,),
    extents=lambda size: (size,),
    arrays=(
        ArraySpec("x", "input"),
        *(ArraySpec(name, "temporary") for name in ("ping", "pong")),
        ArraySpec("out", "output"),
    ),
    steps=_chain(),
    numpy=with_numpy,
    baselines=(
        opencl_baseline(HAND_FUSED, "promoted", OPENCL_FUSED, (("fused", ("x", "out")),)),
        numpy_baseline(),
        numba_baseline(numba_loop),
        *c_baselines(_nested("x")),
    ),
)
