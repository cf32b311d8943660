"""A step of compressible hydrodynamics on a staggered grid, after CloverLeaf."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Size

DT = 0.01
GAMMA = 1.4


# Cells (n, n) hold density, energy, pressure; corners (n + 1, n + 1) hold velocities; faces hold
# fluxes, x (n, n + 1) and y (n + 1, n).
@fq.kernel
def ideal_gas(item: fq.Item, density: Array, energy: Array, p: Array, sound: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    p[i, j] = (GAMMA - 1.0) * density[i, j] * energy[i, j]
    sound[i, j] = np.sqrt(GAMMA * p[i, j] / density[i, j])


@fq.kernel
def viscosity(
    item: fq.Item, density: Array, sound: Array, xvel: Array, yvel: Array, q: Array
) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    across = xvel[i, j + 1] + xvel[i + 1, j + 1] - xvel[i, j] - xvel[i + 1, j]
    along = yvel[i + 1, j] + yvel[i + 1, j + 1] - yvel[i, j] - yvel[i, j + 1]
    divergence = 0.5 * (across + along)
    if divergence < 0.0:
        q[i, j] = density[i, j] * (2.0 * divergence * divergence - sound[i, j] * divergence * 0.5)
    else:
        q[i, j] = 0.0


@fq.kernel
def accelerate(
    item: fq.Item, density: Array, p: Array, q: Array, xvel: Array, yvel: Array
) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    mass = 0.25 * (density[i - 1, j - 1] + density[i, j - 1] + density[i, j] + density[i - 1, j])
    scale = 0.5 * DT / mass
    px = p[i, j] - p[i, j - 1] + p[i - 1, j] - p[i - 1, j - 1]
    py = p[i, j] - p[i - 1, j] + p[i, j - 1] - p[i - 1, j - 1]
    qx = q[i, j] - q[i, j - 1] + q[i - 1, j] - q[i - 1, j - 1]
    qy = q[i, j] - q[i - 1, j] + q[i, j - 1] - q[i - 1, j - 1]
    xvel[i, j] = xvel[i, j] - scale * (px + qx)
    yvel[i, j] = yvel[i, j] - scale * (py + qy)


@fq.kernel
def flux_x(item: fq.Item, xvel: Array, flux: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    flux[i, j] = 0.5 * DT * (xvel[i, j] + xvel[i + 1, j])


@fq.kernel
def flux_y(item: fq.Item, yvel: Array, flux: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    flux[i, j] = 0.5 * DT * (yvel[i, j] + yvel[i, j + 1])


@fq.kernel
def compress(
    item: fq.Item, fx: Array, fy: Array, p: Array, q: Array, density: Array, energy: Array
) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    change = fx[i, j + 1] - fx[i, j] + fy[i + 1, j] - fy[i, j]
    energy[i, j] = energy[i, j] - (p[i, j] + q[i, j]) * change / density[i, j]
    density[i, j] = density[i, j] / (1.0 + change)


@fq.kernel
def donor_x(item: fq.Item, fx: Array, density: Array, mass: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1) + 1
    upwind = density[i, j - 1] if fx[i, j] > 0.0 else density[i, j]
    mass[i, j] = fx[i, j] * upwind


@fq.kernel
def donor_y(item: fq.Item, fy: Array, density: Array, mass: Array) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1)
    upwind = density[i - 1, j] if fy[i, j] > 0.0 else density[i, j]
    mass[i, j] = fy[i, j] * upwind


@fq.kernel
def advect(item: fq.Item, mx: Array, my: Array, density: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    moved = mx[i, j] - mx[i, j + 1] + my[i, j] - my[i + 1, j]
    density[i, j] = density[i, j] + moved


# The same over one range for all, the corners'.
@fq.kernel
def gas_and_viscosity_guarded(
    item: fq.Item, density: Array, energy: Array, xvel: Array, yvel: Array, p: Array, q: Array
) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i < p.shape[0] and j < p.shape[1]:
        p[i, j] = (GAMMA - 1.0) * density[i, j] * energy[i, j]
        sound = np.sqrt(GAMMA * p[i, j] / density[i, j])
        across = xvel[i, j + 1] + xvel[i + 1, j + 1] - xvel[i, j] - xvel[i + 1, j]
        along = yvel[i + 1, j] + yvel[i + 1, j + 1] - yvel[i, j] - yvel[i, j + 1]
        div = 0.5 * (across + along)
        q[i, j] = density[i, j] * (2.0 * div * div - sound * div * 0.5) if div < 0.0 else 0.0


@fq.kernel
def accelerate_guarded(
    item: fq.Item, density: Array, p: Array, q: Array, xvel: Array, yvel: Array
) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i > 0 and j > 0 and i < p.shape[0] and j < p.shape[1]:
        north = i - 1
        west = j - 1
        mass = density[north, west] + density[i, west] + density[i, j] + density[north, j]
        scale = 0.5 * DT / (0.25 * mass)
        px = p[i, j] - p[i, west] + p[north, j] - p[north, west]
        py = p[i, j] - p[north, j] + p[i, west] - p[north, west]
        qx = q[i, j] - q[i, west] + q[north, j] - q[north, west]
        qy = q[i, j] - q[north, j] + q[i, west] - q[north, west]
        xvel[i, j] -= scale * (px + qx)
        yvel[i, j] -= scale * (py + qy)


@fq.kernel
def fluxes_guarded(item: fq.Item, xvel: Array, yvel: Array, fx: Array, fy: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i < fx.shape[0]:
        fx[i, j] = 0.5 * DT * (xvel[i, j] + xvel[i + 1, j])
    if j < fy.shape[1]:
        fy[i, j] = 0.5 * DT * (yvel[i, j] + yvel[i, j + 1])


@fq.kernel
def compress_guarded(
    item: fq.Item, fx: Array, fy: Array, p: Array, q: Array, density: Array, energy: Array
) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i < p.shape[0] and j < p.shape[1]:
        change = fx[i, j + 1] - fx[i, j] + fy[i + 1, j] - fy[i, j]
        energy[i, j] -= (p[i, j] + q[i, j]) * change / density[i, j]
        density[i, j] = density[i, j] / (1.0 + change)


@fq.kernel
def donors_guarded(
    item: fq.Item, fx: Array, fy: Array, density: Array, mx: Array, my: Array
) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    n = density.shape[0]
    if i < n and 0 < j < n:
        mx[i, j] = fx[i, j] * (density[i, j - 1] if fx[i, j] > 0.0 else density[i, j])
    if 0 < i < n and j < n:
        my[i, j] = fy[i, j] * (density[i - 1, j] if fy[i, j] > 0.0 else density[i, j])


@fq.kernel
def advect_guarded(item: fq.Item, mx: Array, my: Array, density: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i < density.shape[0] and j < density.shape[1]:
        density[i, j] += mx[i, j] - mx[i, j + 1] + my[i, j] - my[i + 1, j]


def submit_hydro_ranges(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    density, energy, xvel, yvel, p, sound, q, fx, fy, mx, my = arrays
    for _ in range(steps):
        queue.submit(ideal_gas, (n, n), density, energy, p, sound)
        queue.submit(viscosity, (n, n), density, sound, xvel, yvel, q)
        queue.submit(accelerate, (n - 1, n - 1), density, p, q, xvel, yvel)
        queue.submit(flux_x, (n, n + 1), xvel, fx)
        queue.submit(flux_y, (n + 1, n), yvel, fy)
        queue.submit(compress, (n, n), fx, fy, p, q, density, energy)
        queue.submit(donor_x, (n, n - 1), fx, density, mx)
        queue.submit(donor_y, (n - 1, n), fy, density, my)
        queue.submit(advect, (n, n), mx, my, density)


def submit_hydro_guarded(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    density, energy, xvel, yvel, p, _, q, fx, fy, mx, my = arrays
    whole = (n + 1, n + 1)
    for _ in range(steps):
        queue.submit(gas_and_viscosity_guarded, whole, density, energy, xvel, yvel, p, q)
        queue.submit(accelerate_guarded, whole, density, p, q, xvel, yvel)
        queue.submit(fluxes_guarded, whole, xvel, yvel, fx, fy)
        queue.submit(compress_guarded, whole, fx, fy, p, q, density, energy)
        queue.submit(donors_guarded, whole, fx, fy, density, mx, my)
        queue.submit(advect_guarded, whole, mx, my, density)


def hydro_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n, _ = size
    cells, corners, x_faces, y_faces = (n, n), (n + 1, n + 1), (n, n + 1), (n + 1, n)
    return {
        "density": 1.0 + 0.2 * rng.random(cells),
        "energy": 1.0 + 0.2 * rng.random(cells),
        "xvel": 0.1 * rng.random(corners),
        "yvel": 0.1 * rng.random(corners),
        **{name: np.zeros(cells) for name in ("p", "sound", "q")},
        "fx": np.zeros(x_faces),
        "fy": np.zeros(y_faces),
        "mx": np.zeros(x_faces),
        "my": np.zeros(y_faces),
    }


def hydro_numpy(size: Size, *arrays: Array) -> None:
    density, energy, xvel, yvel, p, sound, q, fx, fy, mx, my = arrays
    c, w, n, nw = np.s_[1:, 1:], np.s_[1:, :-1], np.s_[:-1, 1:], np.s_[:-1, :-1]
    for _ in range(size[1]):
        p[...] = (GAMMA - 1.0) * density * energy
        sound[...] = np.sqrt(GAMMA * p / density)
        across = xvel[n] + xvel[c] - xvel[nw] - xvel[w]
        along = yvel[w] + yvel[c] - yvel[nw] - yvel[n]
        div = 0.5 * (across + along)
        q[...] = np.where(div < 0.0, density * (2.0 * div * div - sound * div * 0.5), 0.0)
        mass = 0.25 * (density[nw] + density[w] + density[c] + density[n])
        scale = 0.5 * DT / mass
        px, qx = (f[c] - f[w] + f[n] - f[nw] for f in (p, q))
        py, qy = (f[c] - f[n] + f[w] - f[nw] for f in (p, q))
        xvel[1:-1, 1:-1] -= scale * (px + qx)
        yvel[1:-1, 1:-1] -= scale * (py + qy)
        fx[...] = 0.5 * DT * (xvel[:-1] + xvel[1:])
        fy[...] = 0.5 * DT * (yvel[:, :-1] + yvel[:, 1:])
        change = fx[:, 1:] - fx[:, :-1] + fy[1:] - fy[:-1]
        energy -= (p + q) * change / density
        density /= 1.0 + change
        inner = fx[:, 1:-1]
        mx[:, 1:-1] = inner * np.where(inner > 0.0, density[:, :-1], density[:, 1:])
        inner = fy[1:-1]
        my[1:-1] = inner * np.where(inner > 0.0, density[:-1], density[1:])
        density += mx[:, :-1] - mx[:, 1:] + my[:-1] - my[1:]


PROGRAMS = (
    CorpusProgram(
        name="cloverleaf",
        description="a Lagrangian step and donor-cell advection of density, float64",
        source="Mallinson et al., CloverLeaf, CUG 2013: ideal_gas … advec_cell, first order",
        axes=("n", "steps"),
        sizes={"tiny": (5, 2), "in cache": (96, 4), "out of cache": (1280, 2)},
        arrays=hydro_arrays,
        inputs=(),
        outputs=("density", "energy", "xvel", "yvel"),
        forms=(
            Form("ranges", "nine kernels a step over cells, corners, faces", submit_hydro_ranges),
            Form("guarded", "six kernels a step over one range, guarded", submit_hydro_guarded),
        ),
        reference=hydro_numpy,
    ),
)
