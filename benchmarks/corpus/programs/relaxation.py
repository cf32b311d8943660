"""Heat in three dimensions, red-black Gauss-Seidel, and the two-dimensional wave equation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Scalar, Size


# -------------------------------------------------------------------------------- heat in 3-D
@fq.kernel
def heat_guarded(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    k = item.get_id(2)
    n = a.shape[0]
    if 0 < i < n - 1 and 0 < j < n - 1 and 0 < k < n - 1:
        x = 0.125 * (a[i + 1, j, k] - 2.0 * a[i, j, k] + a[i - 1, j, k])
        y = 0.125 * (a[i, j + 1, k] - 2.0 * a[i, j, k] + a[i, j - 1, k])
        z = 0.125 * (a[i, j, k + 1] - 2.0 * a[i, j, k] + a[i, j, k - 1])
        b[i, j, k] = x + y + z + a[i, j, k]


@fq.kernel
def heat_interior(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    k = item.get_id(2) + 1
    x = 0.125 * (a[i + 1, j, k] - 2.0 * a[i, j, k] + a[i - 1, j, k])
    y = 0.125 * (a[i, j + 1, k] - 2.0 * a[i, j, k] + a[i, j - 1, k])
    z = 0.125 * (a[i, j, k + 1] - 2.0 * a[i, j, k] + a[i, j, k - 1])
    b[i, j, k] = x + y + z + a[i, j, k]


@fq.kernel
def heat_linear(item: fq.Item, a: Array, b: Array) -> None:
    n = a.shape[0]
    index = item.get_linear_id()
    i = index // (n * n)
    j = index // n % n
    k = index % n
    if 0 < i < n - 1 and 0 < j < n - 1 and 0 < k < n - 1:
        x = 0.125 * (a[i + 1, j, k] - 2.0 * a[i, j, k] + a[i - 1, j, k])
        y = 0.125 * (a[i, j + 1, k] - 2.0 * a[i, j, k] + a[i, j - 1, k])
        z = 0.125 * (a[i, j, k + 1] - 2.0 * a[i, j, k] + a[i, j, k - 1])
        b[i, j, k] = x + y + z + a[i, j, k]


def submit_heat_guarded(queue: fq.FusionQueue, size: Size, a: fq.Buffer, b: fq.Buffer) -> None:
    n, steps = size
    for _ in range(steps):
        queue.submit(heat_guarded, (n, n, n), a, b)
        queue.submit(heat_guarded, (n, n, n), b, a)


def submit_heat_interior(queue: fq.FusionQueue, size: Size, a: fq.Buffer, b: fq.Buffer) -> None:
    n, steps = size
    for _ in range(steps):
        queue.submit(heat_interior, (n - 2, n - 2, n - 2), a, b)
        queue.submit(heat_interior, (n - 2, n - 2, n - 2), b, a)


def submit_heat_linear(queue: fq.FusionQueue, size: Size, a: fq.Buffer, b: fq.Buffer) -> None:
    n, steps = size
    for _ in range(steps):
        queue.submit(heat_linear, n * n * n, a, b)
        queue.submit(heat_linear, n * n * n, b, a)


def heat_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    a = rng.random((size[0],) * 3) + 1.0
    return {"a": a, "b": a.copy()}


def heat_step(a: Array, b: Array) -> None:
    here = a[1:-1, 1:-1, 1:-1]
    x = 0.125 * (a[2:, 1:-1, 1:-1] - 2.0 * here + a[:-2, 1:-1, 1:-1])
    y = 0.125 * (a[1:-1, 2:, 1:-1] - 2.0 * here + a[1:-1, :-2, 1:-1])
    z = 0.125 * (a[1:-1, 1:-1, 2:] - 2.0 * here + a[1:-1, 1:-1, :-2])
    b[1:-1, 1:-1, 1:-1] = x + y + z + here


def heat_numpy(size: Size, a: Array, b: Array) -> None:
    for _ in range(size[1]):
        heat_step(a, b)
        heat_step(b, a)


# ---------------------------------------------------------------------- Gauss-Seidel, red-black
@fq.kernel
def colour_guarded(item: fq.Item, colour: Scalar, f: Array, u: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    n = u.shape[0]
    inside = 0 < i < n - 1 and 0 < j < n - 1
    if inside and (i + j) % 2 == colour:
        u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i, j])


@fq.kernel
def colour_halved(item: fq.Item, colour: Scalar, f: Array, u: Array) -> None:
    i = item.get_id(0) + 1
    j = 2 * item.get_id(1) + 1 + (i + 1 + colour) % 2
    if j < u.shape[1] - 1:
        u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i, j])


@fq.kernel
def red(item: fq.Item, f: Array, u: Array) -> None:
    i = item.get_id(0) + 1
    for j in range(1 + (i + 1) % 2, u.shape[1] - 1, 2):
        u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i, j])


@fq.kernel
def black(item: fq.Item, f: Array, u: Array) -> None:
    i = item.get_id(0) + 1
    for j in range(1 + i % 2, u.shape[1] - 1, 2):
        u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i, j])


def submit_colour_guarded(queue: fq.FusionQueue, size: Size, f: fq.Buffer, u: fq.Buffer) -> None:
    n, steps = size
    for _ in range(steps):
        for colour in (0, 1):
            queue.submit(colour_guarded, (n, n), colour, f, u)


def submit_colour_halved(queue: fq.FusionQueue, size: Size, f: fq.Buffer, u: fq.Buffer) -> None:
    n, steps = size
    for _ in range(steps):
        for colour in (0, 1):
            queue.submit(colour_halved, (n - 2, (n - 1) // 2), colour, f, u)


def submit_colour_rows(queue: fq.FusionQueue, size: Size, f: fq.Buffer, u: fq.Buffer) -> None:
    n, steps = size
    for _ in range(steps):
        queue.submit(red, n - 2, f, u)
        queue.submit(black, n - 2, f, u)


def colour_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    shape = (size[0], size[0])
    f = rng.random(shape, dtype=np.float32)
    return {"f": f, "u": rng.random(shape, dtype=np.float32)}


def colour_numpy(size: Size, f: Array, u: Array) -> None:
    n, steps = size
    for _ in range(steps):
        for colour in (0, 1):
            for parity in (0, 1):  # of the row
                i, j = 1 + parity, 1 + (parity + colour) % 2
                rows, columns = slice(i, n - 1, 2), slice(j, n - 1, 2)
                up, down = slice(i - 1, n - 2, 2), slice(i + 1, n, 2)
                left, right = slice(j - 1, n - 2, 2), slice(j + 1, n, 2)
                around = u[up, columns] + u[down, columns] + u[rows, left] + u[rows, right]
                u[rows, columns] = 0.25 * (around + f[rows, columns])


def colour_loop(numba: Any) -> Callable[..., None]:
    def loop(n: int, steps: int, f: Array, u: Array) -> None:
        for _ in range(steps):
            for colour in range(2):
                for i in numba.prange(1, n - 1):
                    for j in range(1 + (i + 1 + colour) % 2, n - 1, 2):
                        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                        u[i, j] = np.float32(0.25) * (around + f[i, j])

    return loop


# -------------------------------------------------------------------------------- waves in 2-D
RATE = 0.25


@fq.kernel
def laplacian_guarded(item: fq.Item, u: Array, lap: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    n = u.shape[0]
    if 0 < i < n - 1 and 0 < j < n - 1:
        lap[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]


@fq.kernel
def laplacian_interior(item: fq.Item, u: Array, lap: Array) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    lap[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]


@fq.kernel
def laplacian_linear(item: fq.Item, u: Array, lap: Array) -> None:
    n = u.shape[0]
    i = item.get_id(0) // n
    j = item.get_id(0) % n
    if 0 < i < n - 1 and 0 < j < n - 1:
        lap[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]


@fq.kernel
def accelerate(item: fq.Item, rate: Scalar, lap: Array, v: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    v[i, j] = v[i, j] + rate * lap[i, j]


@fq.kernel
def accelerate_interior(item: fq.Item, rate: Scalar, lap: Array, v: Array) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    v[i, j] = v[i, j] + rate * lap[i, j]


@fq.kernel
def accelerate_linear(item: fq.Item, rate: Scalar, lap: Array, v: Array) -> None:
    n = v.shape[0]
    i = item.get_id(0) // n
    j = item.get_id(0) % n
    v[i, j] = v[i, j] + rate * lap[i, j]


@fq.kernel
def move(item: fq.Item, v: Array, u: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    u[i, j] = u[i, j] + v[i, j]


@fq.kernel
def move_interior(item: fq.Item, v: Array, u: Array) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    u[i, j] = u[i, j] + v[i, j]


@fq.kernel
def move_linear(item: fq.Item, v: Array, u: Array) -> None:
    n = u.shape[0]
    i = item.get_id(0) // n
    j = item.get_id(0) % n
    u[i, j] = u[i, j] + v[i, j]


def submit_waves(
    laplacian: Any, kick: Any, drift: Any, range_of: Callable[[int], Any]
) -> Callable[..., None]:
    """Three kernels a step."""

    def submit(
        queue: fq.FusionQueue, size: Size, u: fq.Buffer, v: fq.Buffer, lap: fq.Buffer
    ) -> None:
        n, steps = size
        for _ in range(steps):
            queue.submit(laplacian, range_of(n), u, lap)
            queue.submit(kick, range_of(n), RATE, lap, v)
            queue.submit(drift, range_of(n), v, u)

    return submit


def wave_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    shape = (size[0], size[0])
    zeros = np.zeros(shape, np.float32)
    return {"u": rng.random(shape, dtype=np.float32), "v": zeros, "lap": zeros.copy()}


def wave_numpy(size: Size, u: Array, v: Array, lap: Array) -> None:
    for _ in range(size[1]):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        lap[1:-1, 1:-1] = around - 4.0 * u[1:-1, 1:-1]
        v += RATE * lap
        u += v


def wave_loop(numba: Any) -> Callable[..., None]:
    def loop(n: int, steps: int, u: Array, v: Array, lap: Array) -> None:
        rate, four = np.float32(RATE), np.float32(4)
        for _ in range(steps):
            for i in numba.prange(1, n - 1):
                for j in range(1, n - 1):
                    around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                    v[i, j] += rate * (around - four * u[i, j])
            for i in numba.prange(1, n - 1):
                for j in range(1, n - 1):
                    u[i, j] += v[i, j]

    return loop


PROGRAMS = (
    CorpusProgram(
        name="heat_3d",
        description="the heat equation in 3-D over two arrays in turn, float64",
        source="PolyBench/C 4.2 (Pouchet and Yuki, 2016): heat-3d",
        axes=("n", "steps"),
        sizes={"tiny": (5, 2), "in cache": (40, 8), "out of cache": (200, 4)},
        arrays=heat_arrays,
        inputs=(),
        outputs=("a", "b"),
        forms=(
            Form("guarded", "full range, guarded", submit_heat_guarded),
            Form("interior", "interior range, id + 1", submit_heat_interior),
            Form("linear", "one linear id, divided", submit_heat_linear),
        ),
        reference=heat_numpy,
    ),
    CorpusProgram(
        name="gauss_seidel_red_black",
        description="red points, then black points, in place, float32",
        source="Saad, Iterative Methods for Sparse Linear Systems, 2003, section 12.4",
        axes=("n", "steps"),
        sizes={"tiny": (8, 2), "in cache": (384, 8), "out of cache": (4096, 6)},
        arrays=colour_arrays,
        inputs=("f",),
        outputs=("u",),
        forms=(
            Form("guarded", "full range, the colour is a condition", submit_colour_guarded),
            Form("halved", "a range of half the columns, id · 2 + 1", submit_colour_halved),
            Form("rows", "a work-item a row, a kernel a colour", submit_colour_rows),
        ),
        reference=colour_numpy,
        loop=colour_loop,
    ),
    CorpusProgram(
        name="wave_2d",
        description="acceleration, velocity, displacement: three kernels a step, float32",
        source="LeVeque, Finite Difference Methods, 2007, chapter 10; symplectic Euler",
        axes=("n", "steps"),
        sizes={"tiny": (7, 2), "in cache": (256, 10), "out of cache": (3072, 10)},
        arrays=wave_arrays,
        inputs=(),
        outputs=("u", "v"),
        forms=(
            Form(
                "guarded",
                "full ranges, the stencil guarded",
                submit_waves(laplacian_guarded, accelerate, move, lambda n: (n, n)),
            ),
            Form(
                "interior",
                "interior ranges, id + 1",
                submit_waves(
                    laplacian_interior,
                    accelerate_interior,
                    move_interior,
                    lambda n: (n - 2, n - 2),
                ),
            ),
            Form(
                "linear",
                "one linear id, divided",
                submit_waves(laplacian_linear, accelerate_linear, move_linear, lambda n: n * n),
            ),
        ),
        reference=wave_numpy,
        loop=wave_loop,
    ),
)
