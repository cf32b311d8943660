"""A gated activation, mish times a gate: ``tanh(softplus(x)) · x · gate``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fusionq.benchmarks.baselines.host import numba_baseline, numexpr_baseline, numpy_baseline
from fusionq.benchmarks.baselines.opencl import HAND_FUSED, opencl_baseline
from fusionq.benchmarks.case import ArraySpec, Case, HostArrays, Step
from fusionq.kernels import hyperbolic_tangent, multiply, softplus
from fusionq.kernels.library import Array

OPENCL_FUSED = """
kernel void fused(global const float *restrict x, global const float *restrict gate,
                  global float *restrict out, long n) {
    long i = get_global_id(0);
    if (i < n) {
        float v = x[i];
        out[i] = tanh(fmax(v, 0.0f) + log1p(exp(-fabs(v)))) * v * gate[i];
    }
}
"""


def with_numpy(arrays: HostArrays) -> None:
    """One pass an operation, in two arrays."""
    x, a, b = arrays["x"], arrays["soft"], arrays["squashed"]
    np.abs(x, out=a)
    np.negative(a, out=a)
    np.exp(a, out=a)
    np.log1p(a, out=a)
    np.maximum(x, np.float32(0), out=b)
    np.add(a, b, out=a)
    np.tanh(a, out=a)
    np.multiply(a, x, out=a)
    np.multiply(a, arrays["gate"], out=arrays["out"])


def numba_loop(numba: Any) -> Callable[..., None]:
    prange = numba.prange
    zero = np.float32(0)

    def loop(x: Array, gate: Array, out: Array) -> None:
        for i in prange(out.size):
            v = x[i]
            soft = max(v, zero) + math.log1p(math.exp(-abs(v)))
            out[i] = math.tanh(soft) * v * gate[i]

    return loop


def with_arrays(xp: Any, arrays: Mapping[str, Any]) -> Any:
    """In arithmetic of arrays."""
    x = arrays["x"]
    soft = xp.maximum(x, xp.zeros_like(x)) + xp.log1p(xp.exp(-abs(x)))
    return xp.tanh(soft) * x * arrays["gate"]


CASE = Case(
    name="activation_chain",
    description="softplus, tanh and two products, three temporaries",
    sizes=(16_000_000,),
    extents=lambda size: (size,),
    arrays=(
        *(ArraySpec(name, "input") for name in ("x", "gate")),
        *(ArraySpec(name, "temporary") for name in ("soft", "squashed", "mish")),
        ArraySpec("out", "output"),
    ),
    steps=(
        Step(softplus, ("x", "soft")),
        Step(hyperbolic_tangent, ("soft", "squashed")),
        Step(multiply, ("squashed", "x", "mish")),
        Step(multiply, ("mish", "gate", "out")),
    ),
    numpy=with_numpy,
    expression=with_arrays,
    tolerance=2e-6,
    baselines=(
        opencl_baseline(HAND_FUSED, "promoted", OPENCL_FUSED, (("fused", ("x", "gate", "out")),)),
        numpy_baseline(),
        numexpr_baseline(
            "tanh(where(x > zero, x, zero) + log1p(exp(-abs(x)))) * x * gate", zero=0.0
        ),
        numba_baseline(numba_loop),
    ),
)
