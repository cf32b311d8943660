"""Two kernels of the COSMO weather model: horizontal diffusion and vertical advection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Scalar, Size

NPBENCH = "NPBench (Ziogas et al., ICS 2021)"


# ------------------------------------------------------------------------ horizontal diffusion
@fq.kernel
def laplacian(item: fq.Item, f: Array, lap: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    around = f[i + 2, j + 1] + f[i, j + 1] + f[i + 1, j + 2] + f[i + 1, j]
    lap[i, j] = 4.0 * f[i + 1, j + 1] - around


@fq.kernel
def flux_x(item: fq.Item, f: Array, lap: Array, flx: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    slope = lap[i + 1, j + 1] - lap[i, j + 1]
    flx[i, j] = 0.0 if slope * (f[i + 2, j + 2] - f[i + 1, j + 2]) > 0.0 else slope


@fq.kernel
def flux_y(item: fq.Item, f: Array, lap: Array, fly: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    slope = lap[i + 1, j + 1] - lap[i + 1, j]
    fly[i, j] = 0.0 if slope * (f[i + 2, j + 2] - f[i + 2, j + 1]) > 0.0 else slope


@fq.kernel
def diffuse(item: fq.Item, f: Array, coeff: Array, flx: Array, fly: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    divergence = flx[i + 1, j] - flx[i, j] + fly[i, j + 1] - fly[i, j]
    out[i, j] = f[i + 2, j + 2] - coeff[i, j] * divergence


@fq.kernel
def laplacian_guarded(item: fq.Item, f: Array, lap: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i < lap.shape[0] and j < lap.shape[1]:
        around = f[i + 2, j + 1] + f[i, j + 1] + f[i + 1, j + 2] + f[i + 1, j]
        lap[i, j] = 4.0 * f[i + 1, j + 1] - around


@fq.kernel
def flux_x_guarded(item: fq.Item, f: Array, lap: Array, flx: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i < flx.shape[0] and j < flx.shape[1]:
        slope = lap[i + 1, j + 1] - lap[i, j + 1]
        if slope * (f[i + 2, j + 2] - f[i + 1, j + 2]) > 0.0:
            slope = 0.0
        flx[i, j] = slope


@fq.kernel
def flux_y_guarded(item: fq.Item, f: Array, lap: Array, fly: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i < fly.shape[0] and j < fly.shape[1]:
        slope = lap[i + 1, j + 1] - lap[i + 1, j]
        if slope * (f[i + 2, j + 2] - f[i + 2, j + 1]) > 0.0:
            slope = 0.0
        fly[i, j] = slope


@fq.kernel
def diffuse_guarded(
    item: fq.Item, f: Array, coeff: Array, flx: Array, fly: Array, out: Array
) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i < out.shape[0] and j < out.shape[1]:
        divergence = flx[i + 1, j] - flx[i, j] + fly[i, j + 1] - fly[i, j]
        out[i, j] = f[i + 2, j + 2] - coeff[i, j] * divergence


def submit_hdiff_interior(
    queue: fq.FusionQueue,
    size: Size,
    f: fq.Buffer,
    coeff: fq.Buffer,
    lap: fq.Buffer,
    flx: fq.Buffer,
    fly: fq.Buffer,
    out: fq.Buffer,
) -> None:
    n, m = size
    queue.submit(laplacian, (n + 2, m + 2), f, lap)
    queue.submit(flux_x, (n + 1, m), f, lap, flx)
    queue.submit(flux_y, (n, m + 1), f, lap, fly)
    queue.submit(diffuse, (n, m), f, coeff, flx, fly, out)


def submit_hdiff_guarded(
    queue: fq.FusionQueue,
    size: Size,
    f: fq.Buffer,
    coeff: fq.Buffer,
    lap: fq.Buffer,
    flx: fq.Buffer,
    fly: fq.Buffer,
    out: fq.Buffer,
) -> None:
    n, m = size
    whole = (n + 4, m + 4)
    queue.submit(laplacian_guarded, whole, f, lap)
    queue.submit(flux_x_guarded, whole, f, lap, flx)
    queue.submit(flux_y_guarded, whole, f, lap, fly)
    queue.submit(diffuse_guarded, whole, f, coeff, flx, fly, out)


def hdiff_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n, m = size
    return {
        "f": rng.random((n + 4, m + 4)),
        "coeff": rng.random((n, m)),
        "lap": np.zeros((n + 2, m + 2)),
        "flx": np.zeros((n + 1, m)),
        "fly": np.zeros((n, m + 1)),
        "out": np.zeros((n, m)),
    }


def hdiff_numpy(
    size: Size, f: Array, coeff: Array, lap: Array, flx: Array, fly: Array, out: Array
) -> None:
    around = f[2:, 1:-1] + f[:-2, 1:-1] + f[1:-1, 2:] + f[1:-1, :-2]
    lap[...] = 4.0 * f[1:-1, 1:-1] - around
    slope = lap[1:, 1:-1] - lap[:-1, 1:-1]
    flx[...] = np.where(slope * (f[2:-1, 2:-2] - f[1:-2, 2:-2]) > 0.0, 0.0, slope)
    slope = lap[1:-1, 1:] - lap[1:-1, :-1]
    fly[...] = np.where(slope * (f[2:-2, 2:-1] - f[2:-2, 1:-2]) > 0.0, 0.0, slope)
    out[...] = f[2:-2, 2:-2] - coeff * (flx[1:] - flx[:-1] + fly[:, 1:] - fly[:, :-1])


def hdiff_loop(numba: Any) -> Callable[..., None]:
    def loop(
        n: int, m: int, f: Array, coeff: Array, lap: Array, flx: Array, fly: Array, out: Array
    ) -> None:
        for i in numba.prange(n + 2):
            for j in range(m + 2):
                around = f[i + 2, j + 1] + f[i, j + 1] + f[i + 1, j + 2] + f[i + 1, j]
                lap[i, j] = 4.0 * f[i + 1, j + 1] - around
        for i in numba.prange(n + 1):
            for j in range(m):
                slope = lap[i + 1, j + 1] - lap[i, j + 1]
                up = slope * (f[i + 2, j + 2] - f[i + 1, j + 2]) > 0.0
                flx[i, j] = 0.0 if up else slope
        for i in numba.prange(n):
            for j in range(m + 1):
                slope = lap[i + 1, j + 1] - lap[i + 1, j]
                up = slope * (f[i + 2, j + 2] - f[i + 2, j + 1]) > 0.0
                fly[i, j] = 0.0 if up else slope
            for j in range(m):
                divergence = flx[i + 1, j] - flx[i, j] + fly[i, j + 1] - fly[i, j]
                out[i, j] = f[i + 2, j + 2] - coeff[i, j] * divergence

    return loop


# -------------------------------------------------------------------------- vertical advection
DTR = 3.0 / 20.0
BET_M = 0.5 * (1.0 - 0.0)
BET_P = 0.5 * (1.0 + 0.0)


def forward_level(
    k: Scalar, levels: Scalar, i: Scalar, j: Scalar, u: Array, wcon: Array, tend: Array,
    ccol: Array, dcol: Array,
) -> None:  # fmt: skip
    below = 0.0
    above = 0.0
    correction = 0.0
    if k > 0:
        below = -0.25 * (wcon[k, i + 1, j] + wcon[k, i, j])
        correction = -(below * BET_M) * (u[k - 1, i, j] - u[k, i, j])
    if k < levels - 1:
        above = 0.25 * (wcon[k + 1, i + 1, j] + wcon[k + 1, i, j])
        correction = correction - above * BET_M * (u[k + 1, i, j] - u[k, i, j])
    a = below * BET_P
    c = above * BET_P
    b = DTR - a - c
    d = DTR * u[k, i, j] + tend[k, i, j] + correction
    if k > 0:
        divided = 1.0 / (b - ccol[k - 1, i, j] * a)
        dcol[k, i, j] = (d - dcol[k - 1, i, j] * a) * divided
        ccol[k, i, j] = c * divided
    else:
        divided = 1.0 / b
        dcol[k, i, j] = d * divided
        ccol[k, i, j] = c * divided


def backward_level(
    k: Scalar, levels: Scalar, i: Scalar, j: Scalar, u: Array, ccol: Array, dcol: Array,
    data: Array, tend: Array,
) -> None:  # fmt: skip
    value = dcol[k, i, j]
    if k < levels - 1:
        value = value - ccol[k, i, j] * data[i, j]
    data[i, j] = value
    tend[k, i, j] = DTR * (value - u[k, i, j])


@fq.kernel
def forward_at(
    item: fq.Item, k: Scalar, u: Array, wcon: Array, tend: Array, ccol: Array, dcol: Array
) -> None:
    forward_level(
        k, u.shape[0], item.get_id(0), item.get_id(1), u, wcon, tend, ccol, dcol
    )


@fq.kernel
def backward_at(
    item: fq.Item, k: Scalar, u: Array, ccol: Array, dcol: Array, data: Array, tend: Array
) -> None:
    backward_level(
        k, u.shape[0], item.get_id(0), item.get_id(1), u, ccol, dcol, data, tend
    )


@fq.kernel
def forward_column(
    item: fq.Item, u: Array, wcon: Array, tend: Array, ccol: Array, dcol: Array
) -> None:
    for k in range(u.shape[0]):
        forward_level(
            k, u.shape[0], item.get_id(0), item.get_id(1), u, wcon, tend, ccol, dcol
        )


@fq.kernel
def backward_column(
    item: fq.Item, u: Array, ccol: Array, dcol: Array, data: Array, tend: Array
) -> None:
    for step in range(u.shape[0]):
        k = u.shape[0] - 1 - step
        backward_level(
            k, u.shape[0], item.get_id(0), item.get_id(1), u, ccol, dcol, data, tend
        )


def submit_vadv_levels(
    queue: fq.FusionQueue,
    size: Size,
    u: fq.Buffer,
    wcon: fq.Buffer,
    tend: fq.Buffer,
    ccol: fq.Buffer,
    dcol: fq.Buffer,
    data: fq.Buffer,
) -> None:
    levels, n, m = size
    for k in range(levels):
        queue.submit(forward_at, (n, m), k, u, wcon, tend, ccol, dcol)
    for k in reversed(range(levels)):
        queue.submit(backward_at, (n, m), k, u, ccol, dcol, data, tend)


def submit_vadv_columns(
    queue: fq.FusionQueue,
    size: Size,
    u: fq.Buffer,
    wcon: fq.Buffer,
    tend: fq.Buffer,
    ccol: fq.Buffer,
    dcol: fq.Buffer,
    data: fq.Buffer,
) -> None:
    _, n, m = size
    queue.submit(forward_column, (n, m), u, wcon, tend, ccol, dcol)
    queue.submit(backward_column, (n, m), u, ccol, dcol, data, tend)


def vadv_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    levels, n, m = size
    return {
        "u": rng.random((levels, n, m)),
        "wcon": 0.05 * rng.random((levels, n + 1, m)),
        "tend": rng.random((levels, n, m)),
        "ccol": np.zeros((levels, n, m)),
        "dcol": np.zeros((levels, n, m)),
        "data": np.zeros((n, m)),
    }


def vadv_numpy(
    size: Size, u: Array, wcon: Array, tend: Array, ccol: Array, dcol: Array, data: Array
) -> None:
    levels, *_ = size
    for k in range(levels):
        below = above = np.zeros_like(data)
        correction = np.zeros_like(data)
        if k > 0:
            below = -0.25 * (wcon[k, 1:] + wcon[k, :-1])
            correction = -(below * BET_M) * (u[k - 1] - u[k])
        if k < levels - 1:
            above = 0.25 * (wcon[k + 1, 1:] + wcon[k + 1, :-1])
            correction = correction - above * BET_M * (u[k + 1] - u[k])
        a, c = below * BET_P, above * BET_P
        b = DTR - a - c
        d = DTR * u[k] + tend[k] + correction
        if k > 0:
            divided = 1.0 / (b - ccol[k - 1] * a)
            dcol[k] = (d - dcol[k - 1] * a) * divided
        else:
            divided = 1.0 / b
            dcol[k] = d * divided
        ccol[k] = c * divided
    for k in reversed(range(levels)):
        data[...] = dcol[k] - ccol[k] * data if k < levels - 1 else dcol[k]
        tend[k] = DTR * (data - u[k])


PROGRAMS = (
    CorpusProgram(
        name="horizontal_diffusion",
        description="Laplacian, two limited fluxes, their divergence: four kernels, float64",
        source=f"{NPBENCH}: hdiff; Gysi et al., STELLA, SC 2015",
        axes=("n", "m"),
        sizes={"tiny": (5, 6), "in cache": (160, 160), "out of cache": (2048, 2048)},
        arrays=hdiff_arrays,
        inputs=("f", "coeff"),
        outputs=("out",),
        forms=(
            Form("interior", "four ranges that differ by one or two", submit_hdiff_interior),
            Form("guarded", "full ranges, guarded by the results' shapes", submit_hdiff_guarded),
        ),
        reference=hdiff_numpy,
        loop=hdiff_loop,
    ),
    CorpusProgram(
        name="vertical_advection",
        description="a tridiagonal solve in each column of the atmosphere, float64",
        source=f"{NPBENCH}: vadv; Gysi et al., STELLA, SC 2015",
        axes=("levels", "n", "m"),
        sizes={"tiny": (4, 3, 5), "in cache": (16, 48, 64), "out of cache": (24, 448, 512)},
        arrays=vadv_arrays,
        inputs=("u", "wcon"),
        outputs=("tend",),
        forms=(
            Form("levels", "a kernel a level, up and then down", submit_vadv_levels),
            Form("columns", "a work-item a column, loops over the levels", submit_vadv_columns),
        ),
        reference=vadv_numpy,
    ),
)
