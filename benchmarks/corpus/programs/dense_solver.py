"""Jacobi's method for a dense matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Size

GROUP = 64


# -------------------------------------------------------------------- Jacobi, a dense matrix
@fq.kernel
def jacobi_row(item: fq.Item, a: Array, b: Array, x: Array, out: Array) -> None:
    i = item.get_id(0)
    total = np.float32(0)
    for j in range(a.shape[1]):
        if j != i:
            total += a[i, j] * x[j]
    out[i] = (b[i] - total) / a[i, i]


@fq.kernel
def jacobi_group(item: fq.NdItem, a: Array, b: Array, x: Array, out: Array) -> None:
    i = item.get_global_id(0)
    k = item.get_local_id(1)
    own = np.float32(0)
    for j in range(k, a.shape[1], GROUP):
        own += a[i, j] * x[j]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    if k == 0:
        out[i] = (b[i] - (total - a[i, i] * x[i])) / a[i, i]


@fq.kernel
def copy_vector(item: fq.Item, x: Array, y: Array) -> None:
    y[item.get_id(0)] = x[item.get_id(0)]


def submit_jacobi_in_turn(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    a, b, x, y = arrays
    for _ in range(steps):
        queue.submit(jacobi_row, n, a, b, x, y)
        queue.submit(jacobi_row, n, a, b, y, x)


def submit_jacobi_groups(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    a, b, x, y = arrays
    for _ in range(2 * steps):
        queue.submit(jacobi_group, fq.NdRange((n, GROUP), (1, GROUP)), a, b, x, y)
        queue.submit(copy_vector, n, y, x)


def jacobi_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n, _ = size
    a = rng.random((n, n), dtype=np.float32)
    np.fill_diagonal(a, np.float32(n))
    x = np.zeros(n, np.float32)
    return {"a": a, "b": rng.random(n, dtype=np.float32), "x": x, "y": x.copy()}


def jacobi_numpy(size: Size, a: Array, b: Array, x: Array, y: Array) -> None:
    diagonal = a.diagonal()
    for _ in range(2 * size[1]):
        x[...] = (b - (a @ x - diagonal * x)) / diagonal


def jacobi_loop(numba: Any) -> Callable[..., None]:
    def loop(n: int, steps: int, a: Array, b: Array, x: Array, y: Array) -> None:
        for _ in range(2 * steps):
            for i in numba.prange(n):
                total = np.float32(0)
                for j in range(n):
                    if j != i:
                        total += a[i, j] * x[j]
                y[i] = (b[i] - total) / a[i, i]
            for i in range(n):
                x[i] = y[i]

    return loop


PROGRAMS = (
    CorpusProgram(
        name="jacobi_solver",
        description="Jacobi's method for a dense, diagonally dominant matrix; float32",
        source="Saad, Iterative Methods, 2003, section 4.1; HeCBench: jacobi",
        axes=("n", "steps"),
        sizes={"tiny": (9, 2), "in cache": (512, 4), "out of cache": (5120, 2)},
        arrays=jacobi_arrays,
        inputs=("a", "b"),
        outputs=("x",),
        forms=(
            Form("in turn", "a work-item a row, two vectors in turn", submit_jacobi_in_turn),
            Form("groups", "a work-group a row, copied back", submit_jacobi_groups),
        ),
        reference=jacobi_numpy,
        tolerance=1e-4,
        loop=jacobi_loop,
    ),
)
