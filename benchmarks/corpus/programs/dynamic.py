"""Dynamic programming and elimination, one step a launch: PathFinder, Gaussian, Floyd-Warshall."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Scalar, Size, in_groups

RODINIA = "Rodinia 3.1 (Che et al., IISWC 2009)"
GROUP = 128


# --------------------------------------------------------------------------------- pathfinder
@fq.kernel
def path_clamped(item: fq.Item, t: Scalar, wall: Array, source: Array, out: Array) -> None:
    j = item.get_id(0)
    left = source[max(j - 1, 0)]
    right = source[min(j + 1, source.shape[0] - 1)]
    out[j] = wall[t, j] + min(min(left, source[j]), right)


@fq.kernel
def path_guarded(item: fq.Item, t: Scalar, wall: Array, source: Array, out: Array) -> None:
    j = item.get_id(0)
    best = source[j]
    if j > 0:
        best = min(source[j - 1], best)
    if j < source.shape[0] - 1:
        best = min(best, source[j + 1])
    out[j] = wall[t, j] + best


@fq.kernel
def path_local(
    item: fq.NdItem, t: Scalar, wall: Array, source: Array, tile: fq.LocalAccessor, out: Array
) -> None:
    j = item.get_global_id(0)
    k = item.get_local_id(0) + 1
    last = source.shape[0] - 1
    tile[k] = source[min(j, last)]
    if k == 1:
        tile[0] = source[max(min(j, last) - 1, 0)]
    if k == item.get_local_range(0):
        tile[k + 1] = source[min(j + 1, last)]
    fq.group_barrier(item.get_group())
    if j <= last:
        out[j] = wall[t, j] + min(min(tile[k - 1], tile[k]), tile[k + 1])


def submit_path(kernel: Any) -> Callable[..., None]:
    """A kernel a row."""

    def submit(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
        n, rows = size
        wall, source, out = arrays
        for t in range(rows):
            queue.submit(kernel, n, t, wall, source, out)
            source, out = out, source

    return submit


def submit_path_local(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, rows = size
    wall, source, out = arrays
    for t in range(rows):
        tile = fq.LocalAccessor(GROUP + 2, np.int32)
        queue.submit(path_local, in_groups((n,), (GROUP,)), t, wall, source, tile, out)
        source, out = out, source


def path_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n, rows = size
    zeros = np.zeros(n, np.int32)
    wall = rng.integers(0, 10, (rows, n), dtype=np.int32)
    return {"wall": wall, "source": rng.integers(0, 10, n, dtype=np.int32), "out": zeros}


def path_numpy(size: Size, wall: Array, source: Array, out: Array) -> None:
    for t in range(size[1]):
        wide = np.pad(source, 1, mode="edge")
        out[...] = wall[t] + np.minimum(np.minimum(wide[:-2], source), wide[2:])
        source, out = out, source


def path_loop(numba: Any) -> Callable[..., None]:
    def loop(n: int, rows: int, wall: Array, source: Array, out: Array) -> None:
        for t in range(rows):
            for j in numba.prange(n):
                best = min(source[max(j - 1, 0)], source[j])
                out[j] = wall[t, j] + min(best, source[min(j + 1, n - 1)])
            source, out = out, source

    return loop


# ----------------------------------------------------------------------------------- gaussian
@fq.kernel
def multipliers_guarded(item: fq.Item, t: Scalar, a: Array, m: Array) -> None:
    i = item.get_id(0)
    if i > t:
        m[i, t] = a[i, t] / a[t, t]


@fq.kernel
def eliminate_guarded(item: fq.Item, t: Scalar, m: Array, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i > t and j >= t:
        a[i, j] -= m[i, t] * a[t, j]
        if j == t:
            b[i] -= m[i, t] * b[t]


@fq.kernel
def multipliers_shrinking(item: fq.Item, t: Scalar, a: Array, m: Array) -> None:
    i = item.get_id(0) + t + 1
    m[i, t] = a[i, t] / a[t, t]


@fq.kernel
def eliminate_shrinking(item: fq.Item, t: Scalar, m: Array, a: Array) -> None:
    i = item.get_id(0) + t + 1
    j = item.get_id(1) + t
    a[i, j] = a[i, j] - m[i, t] * a[t, j]


@fq.kernel
def right_side(item: fq.Item, t: Scalar, m: Array, b: Array) -> None:
    i = item.get_id(0) + t + 1
    b[i] = b[i] - m[i, t] * b[t]


def submit_gaussian_guarded(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, pivots = size
    a, b, m = arrays
    for t in range(pivots):
        queue.submit(multipliers_guarded, n, t, a, m)
        queue.submit(eliminate_guarded, (n, n), t, m, a, b)


def submit_gaussian_shrinking(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, pivots = size
    a, b, m = arrays
    for t in range(pivots):
        queue.submit(multipliers_shrinking, n - 1 - t, t, a, m)
        queue.submit(eliminate_shrinking, (n - 1 - t, n - t), t, m, a)
        queue.submit(right_side, n - 1 - t, t, m, b)


def gaussian_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n, _ = size
    a = rng.random((n, n), dtype=np.float32) + np.float32(n) * np.eye(n, dtype=np.float32)
    return {"a": a, "b": rng.random(n, dtype=np.float32), "m": np.zeros((n, n), np.float32)}


def gaussian_numpy(size: Size, a: Array, b: Array, m: Array) -> None:
    for t in range(size[1]):
        m[t + 1 :, t] = a[t + 1 :, t] / a[t, t]
        a[t + 1 :, t:] -= m[t + 1 :, t, np.newaxis] * a[t, t:]
        b[t + 1 :] -= m[t + 1 :, t] * b[t]


# ----------------------------------------------------------------------------- Floyd-Warshall
@fq.kernel
def relax(item: fq.Item, k: Scalar, d: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    d[i, j] = min(d[i, j], d[i, k] + d[k, j])


@fq.kernel
def relax_linear(item: fq.Item, k: Scalar, d: Array) -> None:
    n = d.shape[0]
    i = item.get_id(0) // n
    j = item.get_id(0) % n
    through = d[i, k] + d[k, j]
    if through < d[i, j]:
        d[i, j] = through


@fq.kernel
def relax_into(item: fq.Item, k: Scalar, d: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = min(d[i, j], d[i, k] + d[k, j])


def submit_floyd_in_place(queue: fq.FusionQueue, size: Size, d: fq.Buffer, e: fq.Buffer) -> None:
    n, pivots = size
    for k in range(pivots):
        queue.submit(relax, (n, n), k, d)


def submit_floyd_linear(queue: fq.FusionQueue, size: Size, d: fq.Buffer, e: fq.Buffer) -> None:
    n, pivots = size
    for k in range(pivots):
        queue.submit(relax_linear, n * n, k, d)


def submit_floyd_in_turn(queue: fq.FusionQueue, size: Size, d: fq.Buffer, e: fq.Buffer) -> None:
    n, pivots = size
    for k in range(0, pivots, 2):
        queue.submit(relax_into, (n, n), k, d, e)
        queue.submit(relax_into, (n, n), k + 1, e, d)


def floyd_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n, _ = size
    d = rng.integers(1, 1000, (n, n), dtype=np.int32)
    np.fill_diagonal(d, 0)
    return {"d": d, "e": np.zeros_like(d)}


def floyd_numpy(size: Size, d: Array, e: Array) -> None:
    for k in range(size[1]):
        np.minimum(d, d[:, k, np.newaxis] + d[k], out=d)


def floyd_loop(numba: Any) -> Callable[..., None]:
    def loop(n: int, pivots: int, d: Array, e: Array) -> None:
        for k in range(pivots):
            for i in numba.prange(n):
                for j in range(n):
                    d[i, j] = min(d[i, j], d[i, k] + d[k, j])

    return loop


PROGRAMS = (
    CorpusProgram(
        name="pathfinder",
        description="the cheapest way down a grid, a row a launch, int32",
        source=f"{RODINIA}: pathfinder",
        axes=("n", "rows"),
        sizes={"tiny": (19, 3), "in cache": (8192, 20), "out of cache": (2_000_000, 20)},
        arrays=path_arrays,
        inputs=("wall",),
        outputs=("source", "out"),
        forms=(
            Form("clamped", "full range, indices clamped", submit_path(path_clamped)),
            Form("guarded", "full range, neighbours behind conditions", submit_path(path_guarded)),
            Form("local", "NdRange, a tile with halo in local memory", submit_path_local),
        ),
        reference=path_numpy,
        loop=path_loop,
    ),
    CorpusProgram(
        name="gaussian",
        description="Gaussian elimination without pivoting, the first pivots, float32",
        source=f"{RODINIA}: gaussian",
        axes=("n", "pivots"),
        sizes={"tiny": (6, 5), "in cache": (192, 24), "out of cache": (3072, 8)},
        arrays=gaussian_arrays,
        inputs=(),
        outputs=("a", "b", "m"),
        forms=(
            Form("guarded", "two kernels a pivot over the full range", submit_gaussian_guarded),
            Form(
                "shrinking",
                "three kernels a pivot over what is left, id + t + 1",
                submit_gaussian_shrinking,
            ),
        ),
        reference=gaussian_numpy,
    ),
    CorpusProgram(
        name="floyd_warshall",
        description="all shortest paths, the first pivots, int32",
        source="Floyd, Algorithm 97, CACM 1962; PolyBench/C 4.2: floyd-warshall",
        axes=("n", "pivots"),
        sizes={"tiny": (7, 4), "in cache": (256, 24), "out of cache": (4096, 6)},
        arrays=floyd_arrays,
        inputs=(),
        outputs=("d",),
        forms=(
            Form("in place", "rows and columns as ids, in place", submit_floyd_in_place),
            Form("linear", "one linear id, in place, a conditional store", submit_floyd_linear),
            Form("in turn", "two arrays in turn", submit_floyd_in_turn),
        ),
        reference=floyd_numpy,
        loop=floyd_loop,
    ),
)
