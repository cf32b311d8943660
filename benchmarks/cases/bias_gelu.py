"""The end of a transformer's dense layer, in two dimensions: ``gelu(x + bias) + residual``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fusionq.benchmarks.baselines.host import numba_baseline, numexpr_baseline, numpy_baseline
from fusionq.benchmarks.baselines.opencl import HAND_FUSED, opencl_baseline
from fusionq.benchmarks.case import ArraySpec, Case, HostArrays, Step
from fusionq.kernels import add_2d, bias_add, gelu_tanh_2d
from fusionq.kernels.activations import SQRT_2_OVER_PI
from fusionq.kernels.library import Array

COLUMNS = 4096

OPENCL_FUSED = f"""
kernel void fused(global const float *restrict x, global const float *restrict bias,
                  global const float *restrict residual, global float *restrict out, long n) {{
    long column = get_global_id(0), at = get_global_id(1) * n + column;
    if (column < n) {{
        float v = x[at] + bias[column];
        float inner = {SQRT_2_OVER_PI!r}f * (v + 0.044715f * v * v * v);
        out[at] = 0.5f * v * (1.0f + tanh(inner)) + residual[at];
    }}
}}
"""


def with_numpy(arrays: HostArrays) -> None:
    """One pass an operation, in two arrays."""
    v, inner = arrays["biased"], arrays["activated"]
    np.add(arrays["x"], arrays["bias"], out=v)
    np.multiply(v, np.float32(0.044715), out=inner)
    np.multiply(inner, v, out=inner)
    np.multiply(inner, v, out=inner)
    np.add(v, inner, out=inner)
    np.multiply(inner, np.float32(SQRT_2_OVER_PI), out=inner)
    np.tanh(inner, out=inner)
    np.add(inner, np.float32(1.0), out=inner)
    np.multiply(v, np.float32(0.5), out=v)
    np.multiply(v, inner, out=v)
    np.add(v, arrays["residual"], out=arrays["out"])


def numba_loop(numba: Any) -> Callable[..., None]:
    prange = numba.prange
    half, one, cubic, outer = (np.float32(value) for value in (0.5, 1.0, 0.044715, SQRT_2_OVER_PI))

    def loop(x: Array, bias: Array, residual: Array, out: Array) -> None:
        for row in prange(out.shape[0]):
            for column in range(out.shape[1]):
                v = x[row, column] + bias[column]
                inner = outer * (v + cubic * v * v * v)
                out[row, column] = half * v * (one + math.tanh(inner)) + residual[row, column]

    return loop


def with_arrays(xp: Any, arrays: Mapping[str, Any]) -> Any:
    """In arithmetic of arrays."""
    v = arrays["x"] + arrays["bias"]
    inner = SQRT_2_OVER_PI * (v + 0.044715 * v * v * v)
    return 0.5 * v * (1.0 + xp.tanh(inner)) + arrays["residual"]


CASE = Case(
    name="bias_gelu",
    description=f"2-D (rows, {COLUMNS}): bias, gelu, residual; two temporaries",
    sizes=(4096 * COLUMNS,),
    extents=lambda size: (-(-size // COLUMNS), min(size, COLUMNS)),
    arrays=(
        ArraySpec("x", "input"),
        ArraySpec("bias", "input", axes=(1,)),
        ArraySpec("residual", "input"),
        *(ArraySpec(name, "temporary") for name in ("biased", "activated")),
        ArraySpec("out", "output"),
    ),
    steps=(
        Step(bias_add, ("x", "bias", "biased")),
        Step(gelu_tanh_2d, ("biased", "activated")),
        Step(add_2d, ("activated", "residual", "out")),
    ),
    numpy=with_numpy,
    expression=with_arrays,
    tolerance=2e-6,
    baselines=(
        opencl_baseline(
            HAND_FUSED,
            "promoted",
            OPENCL_FUSED,
            (("fused", ("x", "bias", "residual", "out")),),
        ),
        numpy_baseline(),
        numexpr_baseline(
            "half * (x + bias) * (one + tanh(outer * ((x + bias) + cubic * "
            "(x + bias) * (x + bias) * (x + bias)))) + residual",
            half=0.5,
            one=1.0,
            cubic=0.044715,
            outer=SQRT_2_OVER_PI,
        ),
        numba_baseline(numba_loop),
    ),
)
