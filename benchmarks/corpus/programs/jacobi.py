"""Jacobi stencils in one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Size, in_groups

POLYBENCH = "PolyBench/C 4.2 (Pouchet and Yuki, 2016)"
TILE = 256


# ------------------------------------------------------------------------------ one dimension
@fq.kernel
def guarded_1d(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    if 0 < i < a.shape[0] - 1:
        b[i] = 0.33333 * (a[i - 1] + a[i] + a[i + 1])


@fq.kernel
def interior_1d(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0) + 1
    b[i] = 0.33333 * (a[i - 1] + a[i] + a[i + 1])


@fq.kernel
def local_1d(item: fq.NdItem, a: Array, tile: fq.LocalAccessor, b: Array) -> None:
    i = item.get_global_id(0)
    k = item.get_local_id(0) + 1
    n = a.shape[0]
    if i < n:
        tile[k] = a[i]
    if k == 1 and i > 0:
        tile[0] = a[i - 1]
    if k == item.get_local_range(0) and i + 1 < n:
        tile[k + 1] = a[i + 1]
    fq.group_barrier(item.get_group())
    if 0 < i < n - 1:
        b[i] = 0.33333 * (tile[k - 1] + tile[k] + tile[k + 1])


def submit_guarded_1d(queue: fq.FusionQueue, size: Size, a: fq.Buffer, b: fq.Buffer) -> None:
    n, steps = size
    for _ in range(steps):
        queue.submit(guarded_1d, n, a, b)
        queue.submit(guarded_1d, n, b, a)


def submit_interior_1d(queue: fq.FusionQueue, size: Size, a: fq.Buffer, b: fq.Buffer) -> None:
    n, steps = size
    for _ in range(steps):
        queue.submit(interior_1d, n - 2, a, b)
        queue.submit(interior_1d, n - 2, b, a)


def submit_local_1d(queue: fq.FusionQueue, size: Size, a: fq.Buffer, b: fq.Buffer) -> None:
    n, steps = size
    groups = in_groups((n,), (TILE,))
    for _ in range(steps):
        queue.submit(local_1d, groups, a, fq.LocalAccessor(TILE + 2, np.float64), b)
        queue.submit(local_1d, groups, b, fq.LocalAccessor(TILE + 2, np.float64), a)


def arrays_1d(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    a = (np.arange(size[0]) + 2.0) / size[0] + rng.random(size[0])
    return {"a": a, "b": a.copy()}


def numpy_1d(size: Size, a: Array, b: Array) -> None:
    for _ in range(size[1]):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])


def loop_1d(numba: Any) -> Callable[..., None]:
    def loop(n: int, steps: int, a: Array, b: Array) -> None:
        for _ in range(steps):
            for i in numba.prange(1, n - 1):
                b[i] = 0.33333 * (a[i - 1] + a[i] + a[i + 1])
            for i in numba.prange(1, n - 1):
                a[i] = 0.33333 * (b[i - 1] + b[i] + b[i + 1])

    return loop


# ----------------------------------------------------------------------------- two dimensions
@fq.kernel
def guarded_2d(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if 0 < i < a.shape[0] - 1 and 0 < j < a.shape[1] - 1:
        b[i, j] = 0.2 * (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j] + a[i - 1, j])


@fq.kernel
def interior_2d(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    b[i, j] = 0.2 * (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j] + a[i - 1, j])


@fq.kernel
def linear_2d(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_linear_id() // a.shape[1]
    j = item.get_linear_id() % a.shape[1]
    if i > 0 and i < a.shape[0] - 1 and j > 0 and j < a.shape[1] - 1:
        b[i, j] = 0.2 * (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j] + a[i - 1, j])


@fq.kernel
def row_2d(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0) + 1
    for j in range(1, a.shape[1] - 1):
        b[i, j] = 0.2 * (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j] + a[i - 1, j])


@fq.kernel
def copy_2d(item: fq.Item, b: Array, a: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    a[i, j] = b[i, j]


def submit_guarded_2d(queue: fq.FusionQueue, size: Size, a: fq.Buffer, b: fq.Buffer) -> None:
    n, steps = size
    for _ in range(steps):
        queue.submit(guarded_2d, (n, n), a, b)
        queue.submit(guarded_2d, (n, n), b, a)


def submit_interior_2d(queue: fq.FusionQueue, size: Size, a: fq.Buffer, b: fq.Buffer) -> None:
    n, steps = size
    for _ in range(steps):
        queue.submit(interior_2d, (n - 2, n - 2), a, b)
        queue.submit(interior_2d, (n - 2, n - 2), b, a)


def submit_linear_2d(queue: fq.FusionQueue, size: Size, a: fq.Buffer, b: fq.Buffer) -> None:
    n, steps = size
    for _ in range(steps):
        queue.submit(linear_2d, n * n, a, b)
        queue.submit(linear_2d, n * n, b, a)


def submit_rows_2d(queue: fq.FusionQueue, size: Size, a: fq.Buffer, b: fq.Buffer) -> None:
    n, steps = size
    for _ in range(steps):
        queue.submit(row_2d, n - 2, a, b)
        queue.submit(row_2d, n - 2, b, a)


def submit_copied_2d(queue: fq.FusionQueue, size: Size, a: fq.Buffer, b: fq.Buffer) -> None:
    n, steps = size
    for _ in range(2 * steps):
        queue.submit(interior_2d, (n - 2, n - 2), a, b)
        queue.submit(copy_2d, (n, n), b, a)


def arrays_2d(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    a = rng.random((size[0], size[0])) + 1.0
    return {"a": a, "b": a.copy()}


def step_2d(a: Array, b: Array) -> None:
    inner = a[1:-1, 1:-1]
    b[1:-1, 1:-1] = 0.2 * (inner + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])


def numpy_2d(size: Size, a: Array, b: Array) -> None:
    for _ in range(size[1]):
        step_2d(a, b)
        step_2d(b, a)


def loop_2d(numba: Any) -> Callable[..., None]:
    def loop(n: int, steps: int, a: Array, b: Array) -> None:
        for _ in range(steps):
            for i in numba.prange(1, n - 1):
                for j in range(1, n - 1):
                    b[i, j] = 0.2 * (
                        a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j] + a[i - 1, j]
                    )
            for i in numba.prange(1, n - 1):
                for j in range(1, n - 1):
                    a[i, j] = 0.2 * (
                        b[i, j] + b[i, j - 1] + b[i, j + 1] + b[i + 1, j] + b[i - 1, j]
                    )

    return loop


# --------------------------------------------------------------------------- three dimensions
@fq.kernel
def guarded_3d(item: fq.Item, x: Array, y: Array) -> None:
    k = item.get_id(0)
    j = item.get_id(1)
    i = item.get_id(2)
    if k == 0 or j == 0 or i == 0:
        return
    if k == x.shape[0] - 1 or j == x.shape[1] - 1 or i == x.shape[2] - 1:
        return
    total = x[k - 1, j, i] + x[k + 1, j, i] + x[k, j - 1, i]
    total += x[k, j + 1, i] + x[k, j, i - 1] + x[k, j, i + 1]
    y[k, j, i] = 0.1 * total + 0.4 * x[k, j, i]


@fq.kernel
def interior_3d(item: fq.Item, x: Array, y: Array) -> None:
    k = item.get_id(0) + 1
    j = item.get_id(1) + 1
    i = item.get_id(2) + 1
    total = x[k - 1, j, i] + x[k + 1, j, i] + x[k, j - 1, i]
    total += x[k, j + 1, i] + x[k, j, i - 1] + x[k, j, i + 1]
    y[k, j, i] = 0.1 * total + 0.4 * x[k, j, i]


def submit_guarded_3d(queue: fq.FusionQueue, size: Size, x: fq.Buffer, y: fq.Buffer) -> None:
    n, steps = size
    for _ in range(steps):
        queue.submit(guarded_3d, (n, n, n), x, y)
        queue.submit(guarded_3d, (n, n, n), y, x)


def submit_interior_3d(queue: fq.FusionQueue, size: Size, x: fq.Buffer, y: fq.Buffer) -> None:
    n, steps = size
    for _ in range(steps):
        queue.submit(interior_3d, (n - 2, n - 2, n - 2), x, y)
        queue.submit(interior_3d, (n - 2, n - 2, n - 2), y, x)


def arrays_3d(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    x = rng.random((size[0],) * 3, dtype=np.float32) + np.float32(1)
    return {"x": x, "y": x.copy()}


def step_3d(x: Array, y: Array) -> None:
    total = x[:-2, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1] + x[1:-1, :-2, 1:-1]
    total += x[1:-1, 2:, 1:-1] + x[1:-1, 1:-1, :-2] + x[1:-1, 1:-1, 2:]
    y[1:-1, 1:-1, 1:-1] = 0.1 * total + 0.4 * x[1:-1, 1:-1, 1:-1]


def numpy_3d(size: Size, x: Array, y: Array) -> None:
    for _ in range(size[1]):
        step_3d(x, y)
        step_3d(y, x)


PROGRAMS = (
    CorpusProgram(
        name="jacobi_1d",
        description="3-point means over two arrays in turn, float64",
        source=f"{POLYBENCH}: jacobi-1d",
        axes=("n", "steps"),
        sizes={"tiny": (21, 2), "in cache": (1 << 15, 16), "out of cache": (1 << 23, 8)},
        arrays=arrays_1d,
        inputs=(),
        outputs=("a", "b"),
        forms=(
            Form("guarded", "full range, guarded", submit_guarded_1d),
            Form("interior", "interior range, id + 1", submit_interior_1d),
            Form("local", "NdRange, a tile with halo in local memory", submit_local_1d),
        ),
        reference=numpy_1d,
        loop=loop_1d,
    ),
    CorpusProgram(
        name="jacobi_2d",
        description="5-point means over two arrays in turn, float64",
        source=f"{POLYBENCH}: jacobi-2d",
        axes=("n", "steps"),
        sizes={"tiny": (9, 2), "in cache": (256, 16), "out of cache": (3072, 8)},
        arrays=arrays_2d,
        inputs=(),
        outputs=("a",),
        forms=(
            Form("guarded", "full range, guarded", submit_guarded_2d),
            Form("interior", "interior range, id + 1", submit_interior_2d),
            Form("linear", "one linear id, divided", submit_linear_2d),
            Form("rows", "a work-item a row", submit_rows_2d),
            Form("copied back", "interior range, then a copy", submit_copied_2d),
        ),
        reference=numpy_2d,
        loop=loop_2d,
    ),
    CorpusProgram(
        name="jacobi_3d",
        description="7-point weighted means over two arrays in turn, float32",
        source="Datta et al., Stencil computation optimization and auto-tuning, SC 2008",
        axes=("n", "steps"),
        sizes={"tiny": (5, 2), "in cache": (48, 16), "out of cache": (256, 8)},
        arrays=arrays_3d,
        inputs=(),
        outputs=("x", "y"),
        forms=(
            Form("guarded", "full range, early returns", submit_guarded_3d),
            Form("interior", "interior range, id + 1", submit_interior_3d),
        ),
        reference=numpy_3d,
    ),
)
