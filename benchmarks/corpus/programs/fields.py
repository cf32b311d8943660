"""Maxwell's equations by finite differences in time, and alternating directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Scalar, Size

POLYBENCH = "PolyBench/C 4.2 (Pouchet and Yuki, 2016)"


# ------------------------------------------------------------------------------------ fdtd-2d
@fq.kernel
def ey_guarded(item: fq.Item, t: Scalar, fict: Array, hz: Array, ey: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i == 0:
        ey[i, j] = fict[t]
    else:
        ey[i, j] = ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])


@fq.kernel
def ex_guarded(item: fq.Item, hz: Array, ex: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if j > 0:
        ex[i, j] = ex[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])


@fq.kernel
def hz_guarded(item: fq.Item, ex: Array, ey: Array, hz: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i < hz.shape[0] - 1 and j < hz.shape[1] - 1:
        hz[i, j] = hz[i, j] - 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


@fq.kernel
def source_row(item: fq.Item, t: Scalar, fict: Array, ey: Array) -> None:
    ey[0, item.get_id(0)] = fict[t]


@fq.kernel
def ey_interior(item: fq.Item, hz: Array, ey: Array) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1)
    ey[i, j] -= 0.5 * (hz[i, j] - hz[i - 1, j])


@fq.kernel
def ex_interior(item: fq.Item, hz: Array, ex: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1) + 1
    ex[i, j] -= 0.5 * (hz[i, j] - hz[i, j - 1])


@fq.kernel
def hz_interior(item: fq.Item, ex: Array, ey: Array, hz: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    hz[i, j] -= 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


def submit_fdtd_guarded(
    queue: fq.FusionQueue,
    size: Size,
    fict: fq.Buffer,
    ex: fq.Buffer,
    ey: fq.Buffer,
    hz: fq.Buffer,
) -> None:
    n, m, steps = size
    for t in range(steps):
        queue.submit(ey_guarded, (n, m), t, fict, hz, ey)
        queue.submit(ex_guarded, (n, m), hz, ex)
        queue.submit(hz_guarded, (n, m), ex, ey, hz)


def submit_fdtd_interior(
    queue: fq.FusionQueue,
    size: Size,
    fict: fq.Buffer,
    ex: fq.Buffer,
    ey: fq.Buffer,
    hz: fq.Buffer,
) -> None:
    n, m, steps = size
    for t in range(steps):
        queue.submit(source_row, m, t, fict, ey)
        queue.submit(ey_interior, (n - 1, m), hz, ey)
        queue.submit(ex_interior, (n, m - 1), hz, ex)
        queue.submit(hz_interior, (n - 1, m - 1), ex, ey, hz)


def fdtd_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n, m, steps = size
    fields = {name: rng.random((n, m)) for name in ("ex", "ey", "hz")}
    return {"fict": np.arange(steps, dtype=np.float64), **fields}


def fdtd_numpy(size: Size, fict: Array, ex: Array, ey: Array, hz: Array) -> None:
    for t in range(size[2]):
        ey[0] = fict[t]
        ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def fdtd_loop(numba: Any) -> Callable[..., None]:
    def loop(
        n: int, m: int, steps: int, fict: Array, ex: Array, ey: Array, hz: Array
    ) -> None:
        for t in range(steps):
            for i in numba.prange(n):
                for j in range(m):
                    if i == 0:
                        ey[i, j] = fict[t]
                    else:
                        ey[i, j] -= 0.5 * (hz[i, j] - hz[i - 1, j])
                for j in range(1, m):
                    ex[i, j] -= 0.5 * (hz[i, j] - hz[i, j - 1])
            for i in numba.prange(n - 1):
                for j in range(m - 1):
                    hz[i, j] -= 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])

    return loop


# ---------------------------------------------------------------------------------------- adi
A, B, C = -0.75, 2.5, -0.75
D, E, F = -0.5, 2.0, -0.5
"""The coefficients of the two implicit directions, diagonally dominant."""


@fq.kernel
def column_sweep(item: fq.Item, u: Array, p: Array, q: Array, v: Array) -> None:
    i = item.get_id(0)
    n = u.shape[0]
    if i > 0 and i < n - 1:
        v[0, i] = 1.0
        p[i, 0] = 0.0
        q[i, 0] = v[0, i]
        for j in range(1, n - 1):
            p[i, j] = -C / (A * p[i, j - 1] + B)
            right = -D * u[j, i - 1] + (1.0 + 2.0 * D) * u[j, i] - F * u[j, i + 1]
            q[i, j] = (right - A * q[i, j - 1]) / (A * p[i, j - 1] + B)
        v[n - 1, i] = 1.0
        for k in range(1, n - 1):
            j = n - 1 - k
            v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]


@fq.kernel
def row_sweep(item: fq.Item, v: Array, p: Array, q: Array, u: Array) -> None:
    i = item.get_id(0)
    n = u.shape[0]
    if i > 0 and i < n - 1:
        u[i, 0] = 1.0
        p[i, 0] = 0.0
        q[i, 0] = u[i, 0]
        for j in range(1, n - 1):
            p[i, j] = -F / (D * p[i, j - 1] + E)
            right = -A * v[i - 1, j] + (1.0 + 2.0 * A) * v[i, j] - C * v[i + 1, j]
            q[i, j] = (right - D * q[i, j - 1]) / (D * p[i, j - 1] + E)
        u[i, n - 1] = 1.0
        for k in range(1, n - 1):
            j = n - 1 - k
            u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]


@fq.kernel
def forward_columns(item: fq.Item, u: Array, p: Array, q: Array) -> None:
    i = item.get_id(0) + 1
    p[i, 0] = 0.0
    q[i, 0] = 1.0
    for j in range(1, u.shape[0] - 1):
        p[i, j] = -C / (A * p[i, j - 1] + B)
        right = -D * u[j, i - 1] + (1.0 + 2.0 * D) * u[j, i] - F * u[j, i + 1]
        q[i, j] = (right - A * q[i, j - 1]) / (A * p[i, j - 1] + B)


@fq.kernel
def backward_columns(item: fq.Item, p: Array, q: Array, v: Array) -> None:
    i = item.get_id(0) + 1
    n = v.shape[0]
    v[0, i] = 1.0
    v[n - 1, i] = 1.0
    for k in range(1, n - 1):
        j = n - 1 - k
        v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]


@fq.kernel
def forward_rows(item: fq.Item, v: Array, p: Array, q: Array) -> None:
    i = item.get_id(0) + 1
    p[i, 0] = 0.0
    q[i, 0] = 1.0
    for j in range(1, v.shape[0] - 1):
        p[i, j] = -F / (D * p[i, j - 1] + E)
        right = -A * v[i - 1, j] + (1.0 + 2.0 * A) * v[i, j] - C * v[i + 1, j]
        q[i, j] = (right - D * q[i, j - 1]) / (D * p[i, j - 1] + E)


@fq.kernel
def backward_rows(item: fq.Item, p: Array, q: Array, u: Array) -> None:
    i = item.get_id(0) + 1
    n = u.shape[0]
    u[i, 0] = 1.0
    u[i, n - 1] = 1.0
    for k in range(1, n - 1):
        j = n - 1 - k
        u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]


def submit_adi_sweeps(
    queue: fq.FusionQueue, size: Size, u: fq.Buffer, v: fq.Buffer, p: fq.Buffer, q: fq.Buffer
) -> None:
    n, steps = size
    for _ in range(steps):
        queue.submit(column_sweep, n, u, p, q, v)
        queue.submit(row_sweep, n, v, p, q, u)


def submit_adi_split(
    queue: fq.FusionQueue, size: Size, u: fq.Buffer, v: fq.Buffer, p: fq.Buffer, q: fq.Buffer
) -> None:
    n, steps = size
    for _ in range(steps):
        queue.submit(forward_columns, n - 2, u, p, q)
        queue.submit(backward_columns, n - 2, p, q, v)
        queue.submit(forward_rows, n - 2, v, p, q)
        queue.submit(backward_rows, n - 2, p, q, u)


def adi_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n = size[0]
    u = rng.random((n, n)) + 0.5
    return {"u": u, **{name: np.zeros((n, n)) for name in "vpq"}}


def adi_numpy(size: Size, u: Array, v: Array, p: Array, q: Array) -> None:
    n, steps = size
    inner = slice(1, n - 1)
    for _ in range(steps):
        v[0, inner], v[n - 1, inner] = 1.0, 1.0
        p[inner, 0], q[inner, 0] = 0.0, 1.0
        for j in range(1, n - 1):
            p[inner, j] = -C / (A * p[inner, j - 1] + B)
            right = -D * u[j, :-2] + (1.0 + 2.0 * D) * u[j, inner] - F * u[j, 2:]
            q[inner, j] = (right - A * q[inner, j - 1]) / (A * p[inner, j - 1] + B)
        for j in range(n - 2, 0, -1):
            v[j, inner] = p[inner, j] * v[j + 1, inner] + q[inner, j]
        u[inner, 0], u[inner, n - 1] = 1.0, 1.0
        p[inner, 0], q[inner, 0] = 0.0, 1.0
        for j in range(1, n - 1):
            p[inner, j] = -F / (D * p[inner, j - 1] + E)
            right = -A * v[:-2, j] + (1.0 + 2.0 * A) * v[inner, j] - C * v[2:, j]
            q[inner, j] = (right - D * q[inner, j - 1]) / (D * p[inner, j - 1] + E)
        for j in range(n - 2, 0, -1):
            u[inner, j] = p[inner, j] * u[inner, j + 1] + q[inner, j]


PROGRAMS = (
    CorpusProgram(
        name="fdtd_2d",
        description="electric and magnetic fields on staggered grids, float64",
        source=f"{POLYBENCH}: fdtd-2d",
        axes=("n", "m", "steps"),
        sizes={"tiny": (6, 7, 2), "in cache": (200, 240, 10), "out of cache": (2048, 3000, 6)},
        arrays=fdtd_arrays,
        inputs=("fict",),
        outputs=("ex", "ey", "hz"),
        forms=(
            Form("guarded", "three kernels over the full range", submit_fdtd_guarded),
            Form("interior", "four kernels, ranges that differ, id + 1", submit_fdtd_interior),
        ),
        reference=fdtd_numpy,
        loop=fdtd_loop,
    ),
    CorpusProgram(
        name="adi",
        description="alternating directions implicit: tridiagonal solves, float64",
        source=f"{POLYBENCH}: adi",
        axes=("n", "steps"),
        sizes={"tiny": (6, 2), "in cache": (160, 6), "out of cache": (2048, 2)},
        arrays=adi_arrays,
        inputs=(),
        outputs=("u",),
        forms=(
            Form("sweeps", "a kernel a direction, full range, guarded", submit_adi_sweeps),
            Form("split", "elimination and substitution apart, id + 1", submit_adi_split),
        ),
        reference=adi_numpy,
    ),
)
