"""Many time steps of stencils: every step reads its neighbours' results of the step before."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from fusionq.benchmarks.baselines.host import numpy_baseline
from fusionq.benchmarks.case import ArraySpec, Case, Extents, HostArrays, Step
from fusionq.kernels import heat_1d, heat_2d, heat_3d, wave_1d
from fusionq.kernels.library import Array

RATE = 0.125
"""A power of two: 4 · RATE is exact."""
WAVE_STEPS = 64


def heat_step_1d(x: Array, out: Array) -> None:
    """As ``heat_1d``, to the bit, with ``out`` as scratch."""
    inner, new = x[1:-1], out[1:-1]
    np.multiply(inner, np.float32(2), out=new)
    np.subtract(x[:-2], new, out=new)
    np.add(new, x[2:], out=new)
    np.multiply(new, np.float32(RATE), out=new)
    np.add(inner, new, out=new)
    out[0], out[-1] = x[0], x[-1]


def heat_step_2d(x: Array, out: Array) -> None:
    """As ``heat_2d``, to the bit: ``around - 4 x`` is ``4 (around / 4 - x)``, as both factors are
    powers of two."""
    inner, new = x[1:-1, 1:-1], out[1:-1, 1:-1]
    np.add(x[:-2, 1:-1], x[2:, 1:-1], out=new)
    np.add(new, x[1:-1, :-2], out=new)
    np.add(new, x[1:-1, 2:], out=new)
    np.multiply(new, np.float32(0.25), out=new)
    np.subtract(new, inner, out=new)
    np.multiply(new, np.float32(4 * RATE), out=new)
    np.add(inner, new, out=new)
    for edge in (0, -1):
        out[edge], out[:, edge] = x[edge], x[:, edge]


def heat_step_3d(x: Array, out: Array) -> None:
    """``heat_3d`` as ``(1 - 6 RATE) x + RATE · around``, plane by plane to stay in the cache."""
    for k in range(1, x.shape[0] - 1):
        new = out[k, 1:-1, 1:-1]
        np.add(x[k - 1, 1:-1, 1:-1], x[k + 1, 1:-1, 1:-1], out=new)
        for neighbour in (x[k, :-2, 1:-1], x[k, 2:, 1:-1], x[k, 1:-1, :-2], x[k, 1:-1, 2:]):
            np.add(new, neighbour, out=new)
        np.multiply(new, np.float32(RATE), out=new)
        np.add(new, np.float32(1 - 6 * RATE) * x[k, 1:-1, 1:-1], out=new)
    for edge in (0, -1):
        out[edge], out[:, edge], out[:, :, edge] = x[edge], x[:, edge], x[:, :, edge]


def in_turn(steps: int) -> list[str]:
    """The arrays that ``steps`` steps go through: from x, in turn through two, to out."""
    return ["x", *(("ping", "pong")[step % 2] for step in range(steps - 1)), "out"]


def cube(ndim: int) -> Callable[[int], Extents]:
    """Extents of equal sides with about so many elements."""
    return lambda size: (max(1, round(size ** (1 / ndim))),) * ndim


def heat(
    name: str, kernel: Any, step: Callable[[Array, Array], None], extents: Extents, steps: int
) -> Case:
    """Steps of the heat equation; ``extents`` are the default ones."""

    def with_numpy(arrays: HostArrays) -> None:
        for source, target in pairwise(in_turn(steps)):
            step(arrays[source], arrays[target])

    points = 2 * len(extents) + 1
    return Case(
        name=name,
        description=f"{steps} steps of the {points}-point heat stencil in {len(extents)}-D",
        sizes=(prod(extents),),
        extents=cube(len(extents)),
        arrays=(
            ArraySpec("x", "input"),
            ArraySpec("ping", "temporary"),
            ArraySpec("pong", "temporary"),
            ArraySpec("out", "output"),
        ),
        steps=tuple(Step(kernel, (RATE, *arrays)) for arrays in pairwise(in_turn(steps))),
        numpy=with_numpy,
        compare="strategies",
        tolerance=1e-5 if len(extents) == 3 else 0.0,
        baselines=(numpy_baseline(),),
    )


def waves() -> list[str]:
    """The arrays that the wave goes through: two of the start, in turn through three, out."""
    middle = (("first", "second", "third")[step % 3] for step in range(WAVE_STEPS - 1))
    return ["start", "next", *middle, "out"]


def wave_with_numpy(arrays: HostArrays) -> None:
    """As ``wave_1d``, to the bit."""
    names = waves()
    for names_now in zip(names, names[1:], names[2:], strict=False):
        before, now, after = (arrays[name] for name in names_now)
        bend = now[:-2] - np.float32(2) * now[1:-1] + now[2:]
        new = after[1:-1]
        np.multiply(now[1:-1], np.float32(2), out=new)
        np.subtract(new, before[1:-1], out=new)
        np.add(new, np.float32(RATE) * bend, out=new)
        after[0], after[-1] = now[0], now[-1]


LAUNCH_BOUND = Case(
    name="launch_bound",
    description=f"{WAVE_STEPS} dependent steps of the wave equation in 1-D, all in the cache",
    sizes=(4096,),
    extents=lambda size: (size,),
    arrays=(
        *(ArraySpec(name, "input") for name in ("start", "next")),
        *(ArraySpec(name, "temporary") for name in ("first", "second", "third")),
        ArraySpec("out", "output"),
    ),
    steps=tuple(
        Step(wave_1d, (RATE, *arrays))
        for arrays in zip(waves(), waves()[1:], waves()[2:], strict=False)
    ),
    numpy=wave_with_numpy,
    compare="strategies",
    baselines=(numpy_baseline(),),
)

CASES = (
    heat("stencil_1d", heat_1d, heat_step_1d, (1 << 24,), 32),
    heat("stencil_1d_in_cache", heat_1d, heat_step_1d, (1 << 14,), 64),
    heat("stencil_2d", heat_2d, heat_step_2d, (4096, 4096), 32),
    heat("stencil_2d_in_cache", heat_2d, heat_step_2d, (1024, 1024), 64),
    heat("stencil_3d", heat_3d, heat_step_3d, (256, 256, 256), 32),
    heat("stencil_3d_in_cache", heat_3d, heat_step_3d, (64, 64, 64), 64),
    LAUNCH_BOUND,
)
