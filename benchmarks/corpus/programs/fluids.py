"""Fluids: shallow water, a cavity, and a hydrodynamics step."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Scalar, Size

# ------------------------------------------------------------------------------ shallow water
RATIO = 0.02
"""Time step over grid spacing."""
G = 9.8


@fq.kernel
def reflect_columns(item: fq.Item, h: Array, u: Array, v: Array) -> None:
    i = item.get_id(0)
    last = h.shape[1] - 1
    h[i, 0] = h[i, 1]
    u[i, 0] = u[i, 1]
    v[i, 0] = -v[i, 1]
    h[i, last] = h[i, last - 1]
    u[i, last] = u[i, last - 1]
    v[i, last] = -v[i, last - 1]


@fq.kernel
def reflect_rows(item: fq.Item, h: Array, u: Array, v: Array) -> None:
    j = item.get_id(0)
    last = h.shape[0] - 1
    h[0, j] = h[1, j]
    u[0, j] = -u[1, j]
    v[0, j] = v[1, j]
    h[last, j] = h[last - 1, j]
    u[last, j] = -u[last - 1, j]
    v[last, j] = v[last - 1, j]


def momentum(u: Scalar, h: Scalar) -> Scalar:
    return u * u / h + 0.5 * G * (h * h)


@fq.kernel
def half_x(item: fq.Item, h: Array, u: Array, v: Array, hx: Array, ux: Array, vx: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    hx[i, j] = 0.5 * (h[i + 1, j + 1] + h[i, j + 1]) - 0.5 * RATIO * (u[i + 1, j + 1] - u[i, j + 1])
    flux = momentum(u[i + 1, j + 1], h[i + 1, j + 1]) - momentum(u[i, j + 1], h[i, j + 1])
    ux[i, j] = 0.5 * (u[i + 1, j + 1] + u[i, j + 1]) - 0.5 * RATIO * flux
    cross = u[i + 1, j + 1] * v[i + 1, j + 1] / h[i + 1, j + 1] - u[i, j + 1] * v[i, j + 1] / h[
        i, j + 1
    ]
    vx[i, j] = 0.5 * (v[i + 1, j + 1] + v[i, j + 1]) - 0.5 * RATIO * cross


@fq.kernel
def half_y(item: fq.Item, h: Array, u: Array, v: Array, hy: Array, uy: Array, vy: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    hy[i, j] = 0.5 * (h[i + 1, j + 1] + h[i + 1, j]) - 0.5 * RATIO * (v[i + 1, j + 1] - v[i + 1, j])
    cross = v[i + 1, j + 1] * u[i + 1, j + 1] / h[i + 1, j + 1] - v[i + 1, j] * u[i + 1, j] / h[
        i + 1, j
    ]
    uy[i, j] = 0.5 * (u[i + 1, j + 1] + u[i + 1, j]) - 0.5 * RATIO * cross
    flux = momentum(v[i + 1, j + 1], h[i + 1, j + 1]) - momentum(v[i + 1, j], h[i + 1, j])
    vy[i, j] = 0.5 * (v[i + 1, j + 1] + v[i + 1, j]) - 0.5 * RATIO * flux


@fq.kernel
def full_step(
    item: fq.Item, hx: Array, ux: Array, vx: Array, hy: Array, uy: Array, vy: Array, h: Array,
    u: Array, v: Array,
) -> None:  # fmt: skip
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    h[i, j] -= RATIO * (ux[i, j - 1] - ux[i - 1, j - 1]) + RATIO * (vy[i - 1, j] - vy[i - 1, j - 1])
    along = momentum(ux[i, j - 1], hx[i, j - 1]) - momentum(ux[i - 1, j - 1], hx[i - 1, j - 1])
    across = vy[i - 1, j] * uy[i - 1, j] / hy[i - 1, j]
    across = across - vy[i - 1, j - 1] * uy[i - 1, j - 1] / hy[i - 1, j - 1]
    u[i, j] -= RATIO * along + RATIO * across
    across = ux[i, j - 1] * vx[i, j - 1] / hx[i, j - 1]
    across = across - ux[i - 1, j - 1] * vx[i - 1, j - 1] / hx[i - 1, j - 1]
    along = momentum(vy[i - 1, j], hy[i - 1, j]) - momentum(vy[i - 1, j - 1], hy[i - 1, j - 1])
    v[i, j] -= RATIO * across + RATIO * along


@fq.kernel
def half_x_guarded(
    item: fq.Item, h: Array, u: Array, v: Array, hx: Array, ux: Array, vx: Array
) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i >= hx.shape[0] or j >= hx.shape[1]:
        return
    e = j + 1
    hx[i, j] = 0.5 * (h[i + 1, e] + h[i, e]) - 0.5 * RATIO * (u[i + 1, e] - u[i, e])
    flux = momentum(u[i + 1, e], h[i + 1, e]) - momentum(u[i, e], h[i, e])
    ux[i, j] = 0.5 * (u[i + 1, e] + u[i, e]) - 0.5 * RATIO * flux
    cross = u[i + 1, e] * v[i + 1, e] / h[i + 1, e] - u[i, e] * v[i, e] / h[i, e]
    vx[i, j] = 0.5 * (v[i + 1, e] + v[i, e]) - 0.5 * RATIO * cross


@fq.kernel
def half_y_guarded(
    item: fq.Item, h: Array, u: Array, v: Array, hy: Array, uy: Array, vy: Array
) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i >= hy.shape[0] or j >= hy.shape[1]:
        return
    e = i + 1
    hy[i, j] = 0.5 * (h[e, j + 1] + h[e, j]) - 0.5 * RATIO * (v[e, j + 1] - v[e, j])
    cross = v[e, j + 1] * u[e, j + 1] / h[e, j + 1] - v[e, j] * u[e, j] / h[e, j]
    uy[i, j] = 0.5 * (u[e, j + 1] + u[e, j]) - 0.5 * RATIO * cross
    flux = momentum(v[e, j + 1], h[e, j + 1]) - momentum(v[e, j], h[e, j])
    vy[i, j] = 0.5 * (v[e, j + 1] + v[e, j]) - 0.5 * RATIO * flux


@fq.kernel
def full_step_guarded(
    item: fq.Item, hx: Array, ux: Array, vx: Array, hy: Array, uy: Array, vy: Array, h: Array,
    u: Array, v: Array,
) -> None:  # fmt: skip
    i = item.get_id(0)
    j = item.get_id(1)
    if i > 0 and i < h.shape[0] - 1 and j > 0 and j < h.shape[1] - 1:
        a = i - 1
        b = j - 1
        h[i, j] -= RATIO * (ux[i, b] - ux[a, b]) + RATIO * (vy[a, j] - vy[a, b])
        along = momentum(ux[i, b], hx[i, b]) - momentum(ux[a, b], hx[a, b])
        across = vy[a, j] * uy[a, j] / hy[a, j] - vy[a, b] * uy[a, b] / hy[a, b]
        u[i, j] -= RATIO * along + RATIO * across
        across = ux[i, b] * vx[i, b] / hx[i, b] - ux[a, b] * vx[a, b] / hx[a, b]
        along = momentum(vy[a, j], hy[a, j]) - momentum(vy[a, b], hy[a, b])
        v[i, j] -= RATIO * across + RATIO * along


def submit_water_interior(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    h, u, v, hx, ux, vx, hy, uy, vy = arrays
    for _ in range(steps):
        queue.submit(reflect_columns, n + 2, h, u, v)
        queue.submit(reflect_rows, n + 2, h, u, v)
        queue.submit(half_x, (n + 1, n), h, u, v, hx, ux, vx)
        queue.submit(half_y, (n, n + 1), h, u, v, hy, uy, vy)
        queue.submit(full_step, (n, n), hx, ux, vx, hy, uy, vy, h, u, v)


def submit_water_guarded(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    h, u, v, hx, ux, vx, hy, uy, vy = arrays
    whole = (n + 2, n + 2)
    for _ in range(steps):
        queue.submit(reflect_columns, n + 2, h, u, v)
        queue.submit(reflect_rows, n + 2, h, u, v)
        queue.submit(half_x_guarded, whole, h, u, v, hx, ux, vx)
        queue.submit(half_y_guarded, whole, h, u, v, hy, uy, vy)
        queue.submit(full_step_guarded, whole, hx, ux, vx, hy, uy, vy, h, u, v)


def water_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n, _ = size
    h = 1.0 + 0.2 * rng.random((n + 2, n + 2))
    state = {"h": h, "u": np.zeros_like(h), "v": np.zeros_like(h)}
    halves = {name: np.zeros((n + 1, n)) for name in ("hx", "ux", "vx")}
    return state | halves | {name: np.zeros((n, n + 1)) for name in ("hy", "uy", "vy")}


def water_numpy(size: Size, *arrays: Array) -> None:
    h, u, v, hx, ux, vx, hy, uy, vy = arrays
    for _ in range(size[1]):
        for edge, inner in ((0, 1), (-1, -2)):
            h[:, edge], u[:, edge], v[:, edge] = h[:, inner], u[:, inner], -v[:, inner]
        for edge, inner in ((0, 1), (-1, -2)):
            h[edge], u[edge], v[edge] = h[inner], -u[inner], v[inner]
        a, b = np.s_[1:, 1:-1], np.s_[:-1, 1:-1]
        hx[...] = 0.5 * (h[a] + h[b]) - 0.5 * RATIO * (u[a] - u[b])
        flux = momentum(u[a], h[a]) - momentum(u[b], h[b])
        ux[...] = 0.5 * (u[a] + u[b]) - 0.5 * RATIO * flux
        cross = u[a] * v[a] / h[a] - u[b] * v[b] / h[b]
        vx[...] = 0.5 * (v[a] + v[b]) - 0.5 * RATIO * cross
        c, d = np.s_[1:-1, 1:], np.s_[1:-1, :-1]
        hy[...] = 0.5 * (h[c] + h[d]) - 0.5 * RATIO * (v[c] - v[d])
        cross = v[c] * u[c] / h[c] - v[d] * u[d] / h[d]
        uy[...] = 0.5 * (u[c] + u[d]) - 0.5 * RATIO * cross
        flux = momentum(v[c], h[c]) - momentum(v[d], h[d])
        vy[...] = 0.5 * (v[c] + v[d]) - 0.5 * RATIO * flux
        inside = np.s_[1:-1, 1:-1]
        h[inside] -= RATIO * (ux[1:] - ux[:-1]) + RATIO * (vy[:, 1:] - vy[:, :-1])
        fx, cx = momentum(ux, hx), ux * vx / hx
        fy, cy = momentum(vy, hy), vy * uy / hy
        u[inside] -= RATIO * (fx[1:] - fx[:-1]) + RATIO * (cy[:, 1:] - cy[:, :-1])
        v[inside] -= RATIO * (cx[1:] - cx[:-1]) + RATIO * (fy[:, 1:] - fy[:, :-1])


# -------------------------------------------------------------------------------- cavity flow
RHO, NU, DT = 1.0, 0.1, 0.0005
SWEEPS = 6
"""Sweeps of the pressure's Poisson equation in a step."""


@fq.kernel
def source_term(item: fq.Item, dx: Scalar, u: Array, v: Array, b: Array) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    ux = (u[i, j + 1] - u[i, j - 1]) / (2.0 * dx)
    vy = (v[i + 1, j] - v[i - 1, j]) / (2.0 * dx)
    uy = (u[i + 1, j] - u[i - 1, j]) / (2.0 * dx)
    vx = (v[i, j + 1] - v[i, j - 1]) / (2.0 * dx)
    b[i, j] = RHO * ((ux + vy) / DT - ux * ux - 2.0 * (uy * vx) - vy * vy)


@fq.kernel
def copy_field(item: fq.Item, p: Array, pn: Array) -> None:
    pn[item.get_id(0), item.get_id(1)] = p[item.get_id(0), item.get_id(1)]


@fq.kernel
def pressure(item: fq.Item, dx: Scalar, b: Array, pn: Array, p: Array) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    around = pn[i, j + 1] + pn[i, j - 1] + pn[i + 1, j] + pn[i - 1, j]
    p[i, j] = 0.25 * around - 0.25 * dx * dx * b[i, j]


@fq.kernel
def pressure_sides(item: fq.Item, p: Array) -> None:
    i = item.get_id(0)
    last = p.shape[1] - 1
    p[i, last] = p[i, last - 1]
    p[i, 0] = p[i, 1]


@fq.kernel
def pressure_ends(item: fq.Item, p: Array) -> None:
    j = item.get_id(0)
    p[0, j] = p[1, j]
    p[p.shape[0] - 1, j] = 0.0


@fq.kernel
def velocity(
    item: fq.Item, dx: Scalar, p: Array, un: Array, vn: Array, u: Array, v: Array
) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    rate = DT / dx
    spread = NU * DT / (dx * dx)
    here = un[i, j]
    move = here * rate * (here - un[i, j - 1]) + vn[i, j] * rate * (here - un[i - 1, j])
    push = DT / (2.0 * RHO * dx) * (p[i, j + 1] - p[i, j - 1])
    around = un[i, j + 1] + un[i, j - 1] + un[i + 1, j] + un[i - 1, j]
    u[i, j] = here - move - push + spread * (around - 4.0 * here)
    there = vn[i, j]
    move = un[i, j] * rate * (there - vn[i, j - 1]) + there * rate * (there - vn[i - 1, j])
    push = DT / (2.0 * RHO * dx) * (p[i + 1, j] - p[i - 1, j])
    around = vn[i, j + 1] + vn[i, j - 1] + vn[i + 1, j] + vn[i - 1, j]
    v[i, j] = there - move - push + spread * (around - 4.0 * there)


@fq.kernel
def source_term_guarded(item: fq.Item, dx: Scalar, u: Array, v: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1:
        ux = (u[i, j + 1] - u[i, j - 1]) / (2.0 * dx)
        vy = (v[i + 1, j] - v[i - 1, j]) / (2.0 * dx)
        uy = (u[i + 1, j] - u[i - 1, j]) / (2.0 * dx)
        vx = (v[i, j + 1] - v[i, j - 1]) / (2.0 * dx)
        b[i, j] = RHO * ((ux + vy) / DT - ux * ux - 2.0 * (uy * vx) - vy * vy)


@fq.kernel
def pressure_guarded(item: fq.Item, dx: Scalar, b: Array, pn: Array, p: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if 0 < i < p.shape[0] - 1 and 0 < j < p.shape[1] - 1:
        around = pn[i, j + 1] + pn[i, j - 1] + pn[i + 1, j] + pn[i - 1, j]
        p[i, j] = 0.25 * around - 0.25 * dx * dx * b[i, j]


def submit_cavity_copied(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    u, v, p, b, pn, un, vn = arrays
    dx = 2.0 / (n - 1)
    inner = (n - 2, n - 2)
    for _ in range(steps):
        queue.submit(copy_field, (n, n), u, un)
        queue.submit(copy_field, (n, n), v, vn)
        queue.submit(source_term, inner, dx, u, v, b)
        for _ in range(SWEEPS):
            queue.submit(copy_field, (n, n), p, pn)
            queue.submit(pressure, inner, dx, b, pn, p)
            queue.submit(pressure_sides, n, p)
            queue.submit(pressure_ends, n, p)
        queue.submit(velocity, inner, dx, p, un, vn, u, v)


def submit_cavity_in_turn(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    u, v, p, b, pn, un, vn = arrays
    dx = 2.0 / (n - 1)
    for _ in range(steps):
        queue.submit(source_term_guarded, (n, n), dx, u, v, b)
        for _ in range(SWEEPS // 2):
            queue.submit(pressure_guarded, (n, n), dx, b, p, pn)
            queue.submit(pressure_sides, n, pn)
            queue.submit(pressure_ends, n, pn)
            queue.submit(pressure_guarded, (n, n), dx, b, pn, p)
            queue.submit(pressure_sides, n, p)
            queue.submit(pressure_ends, n, p)
        queue.submit(copy_field, (n, n), u, un)
        queue.submit(copy_field, (n, n), v, vn)
        queue.submit(velocity, (n - 2, n - 2), dx, p, un, vn, u, v)


def cavity_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    shape = (size[0], size[0])
    fields = {name: 0.001 * rng.random(shape) for name in ("u", "v", "p")}
    fields["u"][-1] = 1.0  # the lid
    return fields | {name: np.zeros(shape) for name in ("b", "pn", "un", "vn")}


def cavity_numpy(size: Size, *arrays: Array) -> None:
    u, v, p, b, _, un, vn = arrays
    n, steps = size
    dx = 2.0 / (n - 1)
    c, e, w = np.s_[1:-1, 1:-1], np.s_[1:-1, 2:], np.s_[1:-1, :-2]
    s, t = np.s_[2:, 1:-1], np.s_[:-2, 1:-1]
    for _ in range(steps):
        un[...], vn[...] = u, v
        ux, vy = (u[e] - u[w]) / (2.0 * dx), (v[s] - v[t]) / (2.0 * dx)
        uy, vx = (u[s] - u[t]) / (2.0 * dx), (v[e] - v[w]) / (2.0 * dx)
        b[c] = RHO * ((ux + vy) / DT - ux * ux - 2.0 * (uy * vx) - vy * vy)
        for _ in range(SWEEPS):
            p[c] = 0.25 * (p[e] + p[w] + p[s] + p[t]) - 0.25 * dx * dx * b[c]
            p[:, -1], p[:, 0] = p[:, -2], p[:, 1]
            p[0], p[-1] = p[1], 0.0
        rate, spread, half = DT / dx, NU * DT / (dx * dx), DT / (2.0 * RHO * dx)
        move = un[c] * rate * (un[c] - un[w]) + vn[c] * rate * (un[c] - un[t])
        around = un[e] + un[w] + un[s] + un[t] - 4.0 * un[c]
        u[c] = un[c] - move - half * (p[e] - p[w]) + spread * around
        move = un[c] * rate * (vn[c] - vn[w]) + vn[c] * rate * (vn[c] - vn[t])
        around = vn[e] + vn[w] + vn[s] + vn[t] - 4.0 * vn[c]
        v[c] = vn[c] - move - half * (p[s] - p[t]) + spread * around


PROGRAMS: tuple[CorpusProgram, ...] = (
    CorpusProgram(
        name="shallow_water",
        description="Lax-Wendroff: reflecting edges, two half steps, a full step; float64",
        source="Moler, Experiments with MATLAB, 2011, chapter 18; Lax and Wendroff 1960",
        axes=("n", "steps"),
        sizes={"tiny": (5, 2), "in cache": (96, 8), "out of cache": (1280, 4)},
        arrays=water_arrays,
        inputs=(),
        outputs=("h", "u", "v"),
        forms=(
            Form("interior", "ranges that differ by one, id + 1", submit_water_interior),
            Form("guarded", "full ranges, guarded, early returns", submit_water_guarded),
        ),
        reference=water_numpy,
    ),
    CorpusProgram(
        name="cavity_flow",
        description="Navier-Stokes in a lid-driven cavity: pressure sweeps, velocities; float64",
        source="Barba and Forsyth, CFD Python, JOSE 2018, step 11; NPBench: cavity_flow",
        axes=("n", "steps"),
        sizes={"tiny": (6, 1), "in cache": (96, 2), "out of cache": (1408, 1)},
        arrays=cavity_arrays,
        inputs=(),
        outputs=("u", "v", "p"),
        forms=(
            Form("copied", "fields are copied first, interior ranges", submit_cavity_copied),
            Form("in turn", "two pressures in turn, guarded", submit_cavity_in_turn),
        ),
        reference=cavity_numpy,
        tolerance=1e-12,
    ),
)
