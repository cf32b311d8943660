"""Reductions and scans over work-groups, beside kernels by hand with the device's own functions."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.benchmarks.baselines.host import numpy_baseline
from fusionq.benchmarks.baselines.opencl import HAND_FUSED, opencl_baseline
from fusionq.benchmarks.case import ArraySpec, Case, HostArrays, Step
from fusionq.kernels.library import Array

GROUP = 256

DEVICE_FUNCTIONS = """
kernel void deviations(global const float *x, global float *t, long n) {
  size_t i = get_global_id(0);
  t[i] = x[i] - work_group_reduce_add(x[i]) * (1.0f / 256);
}
kernel void running_sums(global const float *t, global float *out, long n) {
  size_t i = get_global_id(0);
  out[i] = work_group_scan_inclusive_add(t[i]);
}
kernel void both(global const float *x, global float *out, long n) {
  size_t i = get_global_id(0);
  float t = x[i] - work_group_reduce_add(x[i]) * (1.0f / 256);
  out[i] = work_group_scan_inclusive_add(t);
}
"""
"""No guards: all extents are whole work-groups."""


@fq.kernel
def group_deviations(item: fq.NdItem, x: Array, out: Array) -> None:
    """``out = x`` less the mean of the work-group's ``x``; float32 arrays of the range's shape
    (n,), in work-groups of 256."""
    i = item.get_global_id(0)
    out[i] = x[i] - fq.reduce_over_group(item.get_group(), x[i], "add") * np.float32(1 / GROUP)


@fq.kernel
def group_running_sums(item: fq.NdItem, x: Array, out: Array) -> None:
    """``out[i]`` = the sum of the work-group's ``x`` up to ``x[i]``; float32 arrays of the range's
    shape (n,)."""
    i = item.get_global_id(0)
    out[i] = fq.inclusive_scan_over_group(item.get_group(), x[i], "add")


def with_numpy(arrays: HostArrays) -> None:
    """By rows of one group each."""
    rows, out = arrays["x"].reshape(-1, GROUP), arrays["out"].reshape(-1, GROUP)
    deviations = arrays["deviations"].reshape(-1, GROUP)
    np.subtract(rows, rows.mean(axis=1, keepdims=True), out=deviations)
    np.cumsum(deviations, axis=1, out=out)


CASE = Case(
    name="group_functions",
    description=f"a reduction, then a scan of the deviations, over work-groups of {GROUP}",
    sizes=(1 << 24, 1 << 16),
    extents=lambda size: (-(-size // GROUP) * GROUP,),
    arrays=(
        ArraySpec("x", "input", between=(-1.0, 3.0)),
        ArraySpec("deviations", "temporary"),
        ArraySpec("out", "output"),
    ),
    steps=(
        Step(group_deviations, ("x", "deviations")),
        Step(group_running_sums, ("deviations", "out")),
    ),
    numpy=with_numpy,
    local_range=(GROUP,),
    tolerance=1e-4,
    baselines=(
        numpy_baseline(),
        opencl_baseline(
            "raw OpenCL, the device's functions",
            "unfused",
            DEVICE_FUNCTIONS,
            (("deviations", ("x", "deviations")), ("running_sums", ("deviations", "out"))),
            is_portable=False,
        ),
        opencl_baseline(
            HAND_FUSED,
            "promoted",
            DEVICE_FUNCTIONS,
            (("both", ("x", "out")),),
            is_portable=False,
        ),
    ),
)
