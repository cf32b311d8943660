"""Two stages in which work-items read their group's neighbours: local promotion's case."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.benchmarks.baselines.host import numpy_baseline
from fusionq.benchmarks.case import ArraySpec, Case, HostArrays, Step
from fusionq.kernels.library import Array

GROUP = 256


@fq.kernel
def scale_and_shift(item: fq.NdItem, x: Array, out: Array) -> None:
    """``out = 0.5 x + 1``; float32 arrays of the range's shape (n,)."""
    i = item.get_global_id(0)
    out[i] = x[i] * np.float32(0.5) + np.float32(1.0)


@fq.kernel
def add_group_neighbours(item: fq.NdItem, x: Array, out: Array) -> None:
    """``out[i] = x[i - 1] + x[i] + x[i + 1]`` with indices clamped to the work-group; float32
    arrays of the range's shape (n,)."""
    i = item.get_global_id(0)
    at = item.get_local_id(0)
    first = i - at
    last = first + item.get_local_range(0) - 1
    out[i] = x[max(i - 1, first)] + x[i] + x[min(i + 1, last)]


def with_numpy(arrays: HostArrays) -> None:
    """By rows of one group each."""
    t = arrays["scaled"]
    np.multiply(arrays["x"], np.float32(0.5), out=t)
    np.add(t, np.float32(1.0), out=t)
    rows, out = t.reshape(-1, GROUP), arrays["out"].reshape(-1, GROUP)
    out[:, 0] = rows[:, 0]
    out[:, 1:] = rows[:, :-1]
    np.add(out, rows, out=out)
    out[:, :-1] += rows[:, 1:]
    out[:, -1] += rows[:, -1]


CASE = Case(
    name="group_neighbours",
    description=f"neighbours inside work-groups of {GROUP}, after a scaling; one local temporary",
    sizes=(1 << 24,),
    extents=lambda size: (-(-size // GROUP) * GROUP,),
    arrays=(
        ArraySpec("x", "input"),
        ArraySpec("scaled", "temporary"),
        ArraySpec("out", "output"),
    ),
    steps=(
        Step(scale_and_shift, ("x", "scaled")),
        Step(add_group_neighbours, ("scaled", "out")),
    ),
    numpy=with_numpy,
    promotion="local",
    local_range=(GROUP,),
    baselines=(numpy_baseline(),),
)
