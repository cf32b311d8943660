"""Lattice Boltzmann flow and the Gray-Scott reaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Size

# --------------------------------------------------------------------- lattice Boltzmann, D2Q9
OMEGA = 1.2
CX = (0, 1, 0, -1, 0, 1, -1, -1, 1)
CY = (0, 0, 1, 0, -1, 1, 1, -1, -1)
WEIGHTS = (4 / 9, *(1 / 9,) * 4, *(1 / 36,) * 4)


@fq.kernel
def moments(item: fq.Item, cx: Array, cy: Array, f: Array, rho: Array, u: Array) -> None:
    y = item.get_id(0)
    x = item.get_id(1)
    density = 0.0
    momentum_x = 0.0
    momentum_y = 0.0
    for q in range(9):
        density += f[q, y, x]
        momentum_x += cx[q] * f[q, y, x]
        momentum_y += cy[q] * f[q, y, x]
    rho[y, x] = density
    u[0, y, x] = momentum_x / density
    u[1, y, x] = momentum_y / density


@fq.kernel
def collide(
    item: fq.Item, cx: Array, cy: Array, w: Array, rho: Array, u: Array, f: Array, g: Array
) -> None:
    y = item.get_id(0)
    x = item.get_id(1)
    square = 1.5 * (u[0, y, x] * u[0, y, x] + u[1, y, x] * u[1, y, x])
    for q in range(9):
        cu = 3.0 * (cx[q] * u[0, y, x] + cy[q] * u[1, y, x])
        equilibrium = w[q] * rho[y, x] * (1.0 + cu + 0.5 * cu * cu - square)
        g[q, y, x] = f[q, y, x] + OMEGA * (equilibrium - f[q, y, x])


@fq.kernel
def stream_pushed(item: fq.Item, cx: Array, cy: Array, g: Array, f: Array) -> None:
    y = item.get_id(0)
    x = item.get_id(1)
    for q in range(9):
        to_y = (y + int(cy[q])) % f.shape[1]
        to_x = (x + int(cx[q])) % f.shape[2]
        f[q, to_y, to_x] = g[q, y, x]


@fq.kernel
def stream_pulled(item: fq.Item, g: Array, f: Array) -> None:
    y = item.get_id(0)
    x = item.get_id(1)
    n = f.shape[1]
    m = f.shape[2]
    up = y + 1 if y < n - 1 else 0
    down = y - 1 if y > 0 else n - 1
    right = x + 1 if x < m - 1 else 0
    left = x - 1 if x > 0 else m - 1
    f[0, y, x] = g[0, y, x]
    f[1, y, x] = g[1, y, left]
    f[2, y, x] = g[2, down, x]
    f[3, y, x] = g[3, y, right]
    f[4, y, x] = g[4, up, x]
    f[5, y, x] = g[5, down, left]
    f[6, y, x] = g[6, down, right]
    f[7, y, x] = g[7, up, right]
    f[8, y, x] = g[8, up, left]


def submit_lbm_pushed(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, m, steps = size
    cx, cy, w, f, g, rho, u = arrays
    for _ in range(steps):
        queue.submit(moments, (n, m), cx, cy, f, rho, u)
        queue.submit(collide, (n, m), cx, cy, w, rho, u, f, g)
        queue.submit(stream_pushed, (n, m), cx, cy, g, f)


def submit_lbm_pulled(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, m, steps = size
    cx, cy, w, f, g, rho, u = arrays
    for _ in range(steps):
        queue.submit(moments, (n, m), cx, cy, f, rho, u)
        queue.submit(collide, (n, m), cx, cy, w, rho, u, f, g)
        queue.submit(stream_pulled, (n, m), g, f)


def lbm_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n, m, _ = size
    w = np.array(WEIGHTS)
    f = w[:, np.newaxis, np.newaxis] * (1.0 + 0.1 * rng.random((9, n, m)))
    return {
        "cx": np.array(CX, np.float64),
        "cy": np.array(CY, np.float64),
        "w": w,
        "f": f,
        "g": np.zeros_like(f),
        "rho": np.zeros((n, m)),
        "u": np.zeros((2, n, m)),
    }


def lbm_numpy(size: Size, *arrays: Array) -> None:
    _, _, w, f, g, rho, u = arrays
    for _ in range(size[2]):
        rho[...], u[...] = 0.0, 0.0
        for q in range(9):
            rho += f[q]
            u[0] += CX[q] * f[q]
            u[1] += CY[q] * f[q]
        u /= rho
        square = 1.5 * (u[0] * u[0] + u[1] * u[1])
        for q in range(9):
            cu = 3.0 * (CX[q] * u[0] + CY[q] * u[1])
            g[q] = f[q] + OMEGA * (w[q] * rho * (1.0 + cu + 0.5 * cu * cu - square) - f[q])
            f[q] = np.roll(g[q], (CY[q], CX[q]), axis=(0, 1))


# --------------------------------------------------------------------------------- Gray-Scott
FEED, KILL, DU, DV = 0.04, 0.06, 0.16, 0.08


@fq.kernel
def react_modulo(item: fq.Item, u: Array, v: Array, u2: Array, v2: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    n = u.shape[0]
    up = (i - 1) % n
    down = (i + 1) % n
    left = (j - 1) % n
    right = (j + 1) % n
    lap_u = u[up, j] + u[down, j] + u[i, left] + u[i, right] - 4.0 * u[i, j]
    lap_v = v[up, j] + v[down, j] + v[i, left] + v[i, right] - 4.0 * v[i, j]
    uvv = u[i, j] * v[i, j] * v[i, j]
    u2[i, j] = u[i, j] + (DU * lap_u - uvv + FEED * (1.0 - u[i, j]))
    v2[i, j] = v[i, j] + (DV * lap_v + uvv - (FEED + KILL) * v[i, j])


@fq.kernel
def periodic_laplacian(item: fq.Item, u: Array, lap: Array) -> None:
    n = u.shape[0]
    i = item.get_linear_id() // n
    j = item.get_linear_id() % n
    up = i - 1 if i > 0 else n - 1
    down = i + 1 if i < n - 1 else 0
    left = j - 1 if j > 0 else n - 1
    right = j + 1 if j < n - 1 else 0
    lap[i, j] = u[up, j] + u[down, j] + u[i, left] + u[i, right] - 4.0 * u[i, j]


@fq.kernel
def react_linear(item: fq.Item, lap_u: Array, lap_v: Array, u: Array, v: Array) -> None:
    n = u.shape[0]
    i = item.get_linear_id() // n
    j = item.get_linear_id() % n
    here_u = u[i, j]
    here_v = v[i, j]
    uvv = here_u * here_v * here_v
    u[i, j] = here_u + (DU * lap_u[i, j] - uvv + FEED * (1.0 - here_u))
    v[i, j] = here_v + (DV * lap_v[i, j] + uvv - (FEED + KILL) * here_v)


def submit_react_in_turn(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    u, v, u2, v2 = arrays
    for _ in range(steps):
        queue.submit(react_modulo, (n, n), u, v, u2, v2)
        queue.submit(react_modulo, (n, n), u2, v2, u, v)


def submit_react_split(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    u, v, lap_u, lap_v = arrays
    for _ in range(2 * steps):
        queue.submit(periodic_laplacian, n * n, u, lap_u)
        queue.submit(periodic_laplacian, n * n, v, lap_v)
        queue.submit(react_linear, n * n, lap_u, lap_v, u, v)


def react_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    shape = (size[0], size[0])
    u = np.float32(0.5) + np.float32(0.5) * rng.random(shape, dtype=np.float32)
    v = np.float32(0.25) * rng.random(shape, dtype=np.float32)
    return {"u": u, "v": v, "u2": np.zeros_like(u), "v2": np.zeros_like(v)}


def around(u: Array) -> Array:
    total = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
    return total - 4.0 * u


def react_numpy(size: Size, u: Array, v: Array, u2: Array, v2: Array) -> None:
    for _ in range(2 * size[1]):
        lap_u, lap_v, uvv = around(u), around(v), u * v * v
        u[...] = u + (DU * lap_u - uvv + FEED * (1.0 - u))
        v[...] = v + (DV * lap_v + uvv - (FEED + KILL) * v)


def react_loop(numba: Any) -> Callable[..., None]:
    feed, both, du, dv, one, four = map(np.float32, (FEED, FEED + KILL, DU, DV, 1, 4))

    def loop(n: int, steps: int, u: Array, v: Array, u2: Array, v2: Array) -> None:
        for _ in range(2 * steps):
            for i in numba.prange(n):
                up, down = (i - 1) % n, (i + 1) % n
                for j in range(n):
                    left, right = (j - 1) % n, (j + 1) % n
                    lap_u = u[up, j] + u[down, j] + u[i, left] + u[i, right] - four * u[i, j]
                    lap_v = v[up, j] + v[down, j] + v[i, left] + v[i, right] - four * v[i, j]
                    uvv = u[i, j] * v[i, j] * v[i, j]
                    u2[i, j] = u[i, j] + (du * lap_u - uvv + feed * (one - u[i, j]))
                    v2[i, j] = v[i, j] + (dv * lap_v + uvv - both * v[i, j])
            u, v, u2, v2 = u2, v2, u, v

    return loop


PROGRAMS = (
    CorpusProgram(
        name="lattice_boltzmann",
        description="moments, collision, streaming on a periodic D2Q9 lattice, float64",
        source="Qian, d'Humières and Lallemand, Europhys. Lett. 1992",
        axes=("n", "m", "steps"),
        sizes={"tiny": (5, 6, 2), "in cache": (64, 80, 6), "out of cache": (1024, 1024, 3)},
        arrays=lbm_arrays,
        inputs=("cx", "cy", "w"),
        outputs=("f",),
        forms=(
            Form("pushed", "streaming to places from direction tables", submit_lbm_pushed),
            Form("pulled", "streaming from neighbours written out", submit_lbm_pulled),
        ),
        reference=lbm_numpy,
    ),
    CorpusProgram(
        name="gray_scott",
        description="reaction and diffusion of two substances, periodic, float32",
        source="Pearson, Complex patterns in a simple system, Science 1993",
        axes=("n", "steps"),
        sizes={"tiny": (6, 2), "in cache": (256, 8), "out of cache": (2560, 4)},
        arrays=react_arrays,
        inputs=(),
        outputs=("u", "v"),
        forms=(
            Form("in turn", "one kernel, four arrays in turn, modulo", submit_react_in_turn),
            Form("split", "Laplacians apart, in place, one linear id", submit_react_split),
        ),
        reference=react_numpy,
        loop=react_loop,
    ),
)
