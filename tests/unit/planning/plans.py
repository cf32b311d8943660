"""Lists and their plans for a device, for the tests of planning."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.base.device_info import DeviceInfo
from fusionq.base.options import FusionOptions
from fusionq.base.target import target_of
from fusionq.ir.printer import print_kernel
from fusionq.planning.planner import make_plan
from tests.unit.lists import Flagged, submissions

TARGET = target_of(DeviceInfo(
    name="test", vendor="test", driver="1", filter_string="reference", kind="reference",
    compute_units=2, max_work_group_size=1024, local_memory_bytes=1 << 16, has_fp16=True,
    has_fp64=True, host_memory=True,
))  # fmt: skip
N = 100
BIG = 5000
"""More work-items than may run as one group."""


def vector(n=N, dtype=np.float32):
    return np.zeros(n, dtype)


def private(array):
    return Flagged(array, private=True)


def plan_of(*calls, **options):
    return make_plan(submissions(*calls), FusionOptions(**options), TARGET)


def decision(plan):
    (only,) = plan.promotions
    return only.scope, only.reason


@fq.kernel
def mul(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] * b[i]


@fq.kernel
def sub(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] - b[i]


@fq.kernel
def copy(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


@fq.kernel
def shifted(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i + 1]


def diamond(n, wrap=private):
    in1, in2, in3, in4, out = (vector(n) for _ in range(5))
    t1, t2, t3 = (wrap(vector(n)) for _ in range(3))
    return (
        (mul, n, in1, in2, t1),
        (sub, n, in1, in3, t2),
        (mul, n, t2, in4, t3),
        (sub, n, t1, t3, out),
    )


# ------------------------------------------------------------------------- barriers
def barriers_in(plan):
    return print_kernel(plan.stages[0].kernel).count("group_barrier(")
