"""Gravity between bodies: by matrices of distances, by tiles, and directly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Scalar, Size, in_groups

SOFTENING = 0.1
DT = 0.001
GROUP = 64


@fq.kernel
def separations(item: fq.Item, axis: Scalar, x: Array, d: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    d[i, j] = x[axis, j] - x[axis, i]


@fq.kernel
def inverse_cubes(item: fq.Item, dx: Array, dy: Array, dz: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    square = dx[i, j] * dx[i, j] + dy[i, j] * dy[i, j] + dz[i, j] * dz[i, j]
    square += SOFTENING * SOFTENING
    out[i, j] = 1.0 / (square * np.sqrt(square))


@fq.kernel
def pull(item: fq.Item, axis: Scalar, d: Array, inverse: Array, mass: Array, a: Array) -> None:
    i = item.get_id(0)
    total = 0.0
    for j in range(mass.shape[0]):
        total += d[i, j] * inverse[i, j] * mass[j]
    a[axis, i] = total


@fq.kernel
def kick(item: fq.Item, dt: Scalar, a: Array, v: Array) -> None:
    axis = item.get_id(0)
    i = item.get_id(1)
    v[axis, i] = v[axis, i] + a[axis, i] * dt


@fq.kernel
def drift(item: fq.Item, dt: Scalar, v: Array, x: Array) -> None:
    axis = item.get_id(0)
    i = item.get_id(1)
    x[axis, i] = x[axis, i] + v[axis, i] * dt


@fq.kernel
def pull_directly(item: fq.Item, x: Array, mass: Array, a: Array) -> None:
    i = item.get_id(0)
    ax = 0.0
    ay = 0.0
    az = 0.0
    for j in range(mass.shape[0]):
        dx = x[0, j] - x[0, i]
        dy = x[1, j] - x[1, i]
        dz = x[2, j] - x[2, i]
        square = dx * dx + dy * dy + dz * dz + SOFTENING * SOFTENING
        inverse = 1.0 / (square * np.sqrt(square))
        ax += dx * inverse * mass[j]
        ay += dy * inverse * mass[j]
        az += dz * inverse * mass[j]
    a[0, i] = ax
    a[1, i] = ay
    a[2, i] = az


@fq.kernel
def pull_by_tiles(
    item: fq.NdItem, x: Array, mass: Array, tile: fq.LocalAccessor, a: Array
) -> None:
    i = item.get_global_id(0)
    k = item.get_local_id(0)
    n = mass.shape[0]
    own = min(i, n - 1)
    ax = 0.0
    ay = 0.0
    az = 0.0
    for first in range(0, n, GROUP):
        other = min(first + k, n - 1)
        tile[0, k] = x[0, other]
        tile[1, k] = x[1, other]
        tile[2, k] = x[2, other]
        tile[3, k] = mass[other]
        fq.group_barrier(item.get_group())
        for j in range(min(GROUP, n - first)):
            dx = tile[0, j] - x[0, own]
            dy = tile[1, j] - x[1, own]
            dz = tile[2, j] - x[2, own]
            square = dx * dx + dy * dy + dz * dz + SOFTENING * SOFTENING
            inverse = 1.0 / (square * np.sqrt(square))
            ax += dx * inverse * tile[3, j]
            ay += dy * inverse * tile[3, j]
            az += dz * inverse * tile[3, j]
        fq.group_barrier(item.get_group())
    if i < n:
        a[0, i] = ax
        a[1, i] = ay
        a[2, i] = az


def submit_matrices(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    mass, x, v, a, dx, dy, dz, inverse = arrays
    for _ in range(steps):
        queue.submit(kick, (3, n), 0.5 * DT, a, v)
        queue.submit(drift, (3, n), DT, v, x)
        for axis, d in enumerate((dx, dy, dz)):
            queue.submit(separations, (n, n), axis, x, d)
        queue.submit(inverse_cubes, (n, n), dx, dy, dz, inverse)
        for axis, d in enumerate((dx, dy, dz)):
            queue.submit(pull, n, axis, d, inverse, mass, a)
        queue.submit(kick, (3, n), 0.5 * DT, a, v)


def submit_directly(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    mass, x, v, a, *_ = arrays
    for _ in range(steps):
        queue.submit(kick, (3, n), 0.5 * DT, a, v)
        queue.submit(drift, (3, n), DT, v, x)
        queue.submit(pull_directly, n, x, mass, a)
        queue.submit(kick, (3, n), 0.5 * DT, a, v)


def submit_tiles(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    mass, x, v, a, *_ = arrays
    for _ in range(steps):
        queue.submit(kick, (3, n), 0.5 * DT, a, v)
        queue.submit(drift, (3, n), DT, v, x)
        tile = fq.LocalAccessor((4, GROUP), np.float64)
        queue.submit(pull_by_tiles, in_groups((n,), (GROUP,)), x, mass, tile, a)
        queue.submit(kick, (3, n), 0.5 * DT, a, v)


def body_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n, _ = size
    bodies = {"mass": rng.random(n) / n, "x": rng.random((3, n)), "v": rng.random((3, n))}
    matrices = {name: np.zeros((n, n)) for name in ("dx", "dy", "dz", "inverse")}
    return {**bodies, "a": np.zeros((3, n)), **matrices}


def body_numpy(size: Size, mass: Array, x: Array, v: Array, a: Array, *_: Array) -> None:
    for _step in range(size[1]):
        v += a * (0.5 * DT)
        x += v * DT
        d = x[:, np.newaxis, :] - x[:, :, np.newaxis]
        square = (d * d).sum(axis=0) + SOFTENING**2
        a[...] = d / (square * np.sqrt(square)) @ mass
        v += a * (0.5 * DT)


def body_loop(numba: Any) -> Callable[..., None]:
    def loop(
        n: int, steps: int, mass: Array, x: Array, v: Array, a: Array, dx_: Array, dy_: Array,
        dz_: Array, inverse_: Array,
    ) -> None:  # fmt: skip
        for _ in range(steps):
            for axis in range(3):
                for i in range(n):
                    v[axis, i] += a[axis, i] * (0.5 * DT)
                    x[axis, i] += v[axis, i] * DT
            for i in numba.prange(n):
                ax, ay, az = 0.0, 0.0, 0.0
                for j in range(n):
                    dx, dy, dz = x[0, j] - x[0, i], x[1, j] - x[1, i], x[2, j] - x[2, i]
                    square = dx * dx + dy * dy + dz * dz + SOFTENING * SOFTENING
                    inverse = 1.0 / (square * np.sqrt(square))
                    ax += dx * inverse * mass[j]
                    ay += dy * inverse * mass[j]
                    az += dz * inverse * mass[j]
                a[0, i], a[1, i], a[2, i] = ax, ay, az
            for axis in range(3):
                for i in range(n):
                    v[axis, i] += a[axis, i] * (0.5 * DT)

    return loop


PROGRAMS = (
    CorpusProgram(
        name="nbody",
        description="gravity, leapfrog in kicks and drifts, float64",
        source="Aarseth, Gravitational N-Body Simulations, 2003; NPBench: nbody",
        axes=("n", "steps"),
        sizes={"tiny": (9, 2), "in cache": (160, 3), "out of cache": (2048, 1)},
        arrays=body_arrays,
        inputs=("mass",),
        outputs=("x", "v"),
        forms=(
            Form("matrices", "matrices of separations, as array expressions", submit_matrices),
            Form("direct", "a work-item a body", submit_directly),
            Form("tiles", "NdRange, tiles of bodies in local memory", submit_tiles),
        ),
        reference=body_numpy,
        tolerance=1e-10,
        loop=body_loop,
    ),
)
