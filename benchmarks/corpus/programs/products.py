"""PolyBench's products of matrices and vectors: gemver, atax, 2mm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Size, in_groups

POLYBENCH = "PolyBench/C 4.2 (Pouchet and Yuki, 2016)"
ALPHA, BETA = 1.5, 1.2
GROUP = 64
TILE = 8


# ------------------------------------------------------------------------------------- gemver
@fq.kernel
def rank_two(
    item: fq.Item, u1: Array, v1: Array, u2: Array, v2: Array, a: Array
) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    a[i, j] = a[i, j] + u1[i] * v1[j] + u2[i] * v2[j]


@fq.kernel
def rank_two_rows(
    item: fq.Item, u1: Array, v1: Array, u2: Array, v2: Array, a: Array
) -> None:
    i = item.get_id(0)
    for j in range(a.shape[1]):
        a[i, j] = a[i, j] + u1[i] * v1[j] + u2[i] * v2[j]


@fq.kernel
def transposed_product(item: fq.Item, a: Array, y: Array, x: Array) -> None:
    i = item.get_id(0)
    for j in range(a.shape[0]):
        x[i] = x[i] + BETA * a[j, i] * y[j]


@fq.kernel
def add_vector(item: fq.Item, z: Array, x: Array) -> None:
    i = item.get_id(0)
    x[i] = x[i] + z[i]


@fq.kernel
def product(item: fq.Item, a: Array, x: Array, w: Array) -> None:
    i = item.get_id(0)
    for j in range(a.shape[1]):
        w[i] = w[i] + ALPHA * a[i, j] * x[j]


def submit_gemver_elements(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    (n,) = size
    u1, v1, u2, v2, y, z, a, x, w = arrays
    queue.submit(rank_two, (n, n), u1, v1, u2, v2, a)
    queue.submit(transposed_product, n, a, y, x)
    queue.submit(add_vector, n, z, x)
    queue.submit(product, n, a, x, w)


def submit_gemver_rows(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    (n,) = size
    u1, v1, u2, v2, y, z, a, x, w = arrays
    queue.submit(rank_two_rows, n, u1, v1, u2, v2, a)
    queue.submit(transposed_product, n, a, y, x)
    queue.submit(add_vector, n, z, x)
    queue.submit(product, n, a, x, w)


def gemver_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    (n,) = size
    vectors = {name: rng.random(n) / n for name in ("u1", "v1", "u2", "v2", "y", "z")}
    return {**vectors, "a": rng.random((n, n)), "x": np.zeros(n), "w": np.zeros(n)}


def gemver_numpy(size: Size, *arrays: Array) -> None:
    u1, v1, u2, v2, y, z, a, x, w = arrays
    a += np.outer(u1, v1)
    a += np.outer(u2, v2)
    x += BETA * (a.T @ y) + z
    w += ALPHA * (a @ x)


def gemver_loop(numba: Any) -> Callable[..., None]:
    def loop(
        n: int, u1: Array, v1: Array, u2: Array, v2: Array, y: Array, z: Array, a: Array, x: Array,
        w: Array,
    ) -> None:  # fmt: skip
        for i in numba.prange(n):
            for j in range(n):
                a[i, j] = a[i, j] + u1[i] * v1[j] + u2[i] * v2[j]
        for i in numba.prange(n):
            for j in range(n):
                x[i] += BETA * a[j, i] * y[j]
            x[i] += z[i]
        for i in numba.prange(n):
            for j in range(n):
                w[i] += ALPHA * a[i, j] * x[j]

    return loop


# --------------------------------------------------------------------------------------- atax
@fq.kernel
def times_x(item: fq.Item, a: Array, x: Array, tmp: Array) -> None:
    i = item.get_id(0)
    total = 0.0
    for j in range(a.shape[1]):
        total += a[i, j] * x[j]
    tmp[i] = total


@fq.kernel
def times_transpose(item: fq.Item, a: Array, tmp: Array, y: Array) -> None:
    j = item.get_id(0)
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i, j] * tmp[i]
    y[j] = total


@fq.kernel
def times_x_groups(item: fq.NdItem, a: Array, x: Array, tmp: Array) -> None:
    i = item.get_global_id(0)
    lane = item.get_local_id(1)
    own = 0.0
    for j in range(lane, a.shape[1], GROUP):
        own += a[i, j] * x[j]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    if lane == 0:
        tmp[i] = total


def submit_atax_rows(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, m = size
    a, x, tmp, y = arrays
    queue.submit(times_x, n, a, x, tmp)
    queue.submit(times_transpose, m, a, tmp, y)


def submit_atax_groups(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, m = size
    a, x, tmp, y = arrays
    queue.submit(times_x_groups, fq.NdRange((n, GROUP), (1, GROUP)), a, x, tmp)
    queue.submit(times_transpose, m, a, tmp, y)


def atax_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n, m = size
    a, x = rng.random((n, m)) / m, rng.random(m)
    return {"a": a, "x": x, "tmp": np.zeros(n), "y": np.zeros(m)}


def atax_numpy(size: Size, a: Array, x: Array, tmp: Array, y: Array) -> None:
    np.matmul(a, x, out=tmp)
    np.matmul(a.T, tmp, out=y)


# ---------------------------------------------------------------------------------------- 2mm
@fq.kernel
def scaled_product(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    total = 0.0
    for k in range(a.shape[1]):
        total += ALPHA * a[i, k] * b[k, j]
    out[i, j] = total


@fq.kernel
def scale_d(item: fq.Item, d: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    d[i, j] = d[i, j] * BETA


@fq.kernel
def add_product(item: fq.Item, a: Array, b: Array, d: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    total = d[i, j]
    for k in range(a.shape[1]):
        total += a[i, k] * b[k, j]
    d[i, j] = total


@fq.kernel
def product_by_tiles(
    item: fq.NdItem, a: Array, b: Array, left: fq.LocalAccessor, right: fq.LocalAccessor,
    out: Array,
) -> None:  # fmt: skip
    i = item.get_global_id(0)
    j = item.get_global_id(1)
    y = item.get_local_id(0)
    x = item.get_local_id(1)
    depth = a.shape[1]
    total = 0.0
    for first in range(0, depth, TILE):
        left[y, x] = 0.0
        right[y, x] = 0.0
        if i < a.shape[0] and first + x < depth:
            left[y, x] = a[i, first + x]
        if j < b.shape[1] and first + y < depth:
            right[y, x] = b[first + y, j]
        fq.group_barrier(item.get_group())
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        fq.group_barrier(item.get_group())
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = total


@fq.kernel
def combine(item: fq.Item, p: Array, d: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    d[i, j] = BETA * d[i, j] + ALPHA * p[i, j]


def submit_2mm_plain(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, depth = size
    a, b, c, tmp, _, d = arrays
    queue.submit(scaled_product, (n, n), a, b, tmp)
    queue.submit(scale_d, (n, depth), d)
    queue.submit(add_product, (n, depth), tmp, c, d)


def submit_2mm_tiles(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, depth = size
    a, b, c, tmp, p, d = arrays

    def tiles() -> tuple[fq.LocalAccessor, fq.LocalAccessor]:
        left, right = (fq.LocalAccessor((TILE, TILE), np.float64) for _ in range(2))
        return left, right

    group = (TILE, TILE)
    queue.submit(product_by_tiles, in_groups((n, n), group), a, b, *tiles(), tmp)
    queue.submit(product_by_tiles, in_groups((n, depth), group), tmp, c, *tiles(), p)
    queue.submit(combine, (n, depth), p, d)


def mm_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n, depth = size
    return {
        "a": rng.random((n, depth)) / depth,
        "b": rng.random((depth, n)),
        "c": rng.random((n, depth)) / n,
        "tmp": np.zeros((n, n)),
        "p": np.zeros((n, depth)),
        "d": rng.random((n, depth)),
    }


def mm_numpy(size: Size, a: Array, b: Array, c: Array, tmp: Array, p: Array, d: Array) -> None:
    d[...] = BETA * d + ALPHA * (a @ b) @ c


PROGRAMS = (
    CorpusProgram(
        name="gemver",
        description="a rank-two update, a transposed product, a product; float64",
        source=f"{POLYBENCH}: gemver",
        axes=("n",),
        sizes={"tiny": (9,), "in cache": (256,), "out of cache": (4096,)},
        arrays=gemver_arrays,
        inputs=("u1", "v1", "u2", "v2", "y", "z"),
        outputs=("a", "x", "w"),
        forms=(
            Form("elements", "the update over rows and columns", submit_gemver_elements),
            Form("rows", "the update with a work-item a row", submit_gemver_rows),
        ),
        reference=gemver_numpy,
        tolerance=1e-10,
        loop=gemver_loop,
    ),
    CorpusProgram(
        name="atax",
        description="a matrix times a vector, then the transpose times that; float64",
        source=f"{POLYBENCH}: atax",
        axes=("n", "m"),
        sizes={"tiny": (9, 70), "in cache": (256, 320), "out of cache": (4096, 4096)},
        arrays=atax_arrays,
        inputs=("a", "x"),
        outputs=("y",),
        forms=(
            Form("rows", "a work-item a row, then one a column", submit_atax_rows),
            Form("groups", "a work-group a row, then a work-item a column", submit_atax_groups),
        ),
        reference=atax_numpy,
        tolerance=1e-10,
    ),
    CorpusProgram(
        name="2mm",
        description="two products of matrices, scaled and added; float64",
        source=f"{POLYBENCH}: 2mm",
        axes=("n", "depth"),
        sizes={"tiny": (9, 5), "in cache": (128, 64), "out of cache": (3072, 8)},
        arrays=mm_arrays,
        inputs=("a", "b", "c"),
        outputs=("d",),
        forms=(
            Form("plain", "rows and columns as ids, loops over the depth", submit_2mm_plain),
            Form("tiles", "NdRange, tiles in local memory", submit_2mm_tiles),
        ),
        reference=mm_numpy,
        tolerance=1e-10,
    ),
)
