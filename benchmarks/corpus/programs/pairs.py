"""All pairs of points: distances, and weighted counts within radii."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Size

DPBENCH = "dpbench (Intel, 2023)"


# -------------------------------------------------------------------------- pairwise distance
@fq.kernel
def squared_norms(item: fq.Item, x: Array, norms: Array) -> None:
    i = item.get_id(0)
    total = 0.0
    for d in range(x.shape[1]):
        total += x[i, d] * x[i, d]
    norms[i] = total


@fq.kernel
def products(item: fq.Item, x: Array, y: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    total = 0.0
    for d in range(x.shape[1]):
        total += x[i, d] * y[j, d]
    out[i, j] = -2.0 * total


@fq.kernel
def add_rows(item: fq.Item, norms: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] += norms[i]


@fq.kernel
def add_columns(item: fq.Item, norms: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] += norms[j]


@fq.kernel
def roots(item: fq.Item, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = np.sqrt(out[i, j])


@fq.kernel
def squares_between(item: fq.Item, x: Array, y: Array, out: Array) -> None:
    i = item.get_linear_id() // y.shape[0]
    j = item.get_linear_id() % y.shape[0]
    total = 0.0
    for d in range(x.shape[1]):
        total += (x[i, d] - y[j, d]) * (x[i, d] - y[j, d])
    out[i, j] = total


@fq.kernel
def roots_linear(item: fq.Item, out: Array) -> None:
    i = item.get_linear_id() // out.shape[1]
    j = item.get_linear_id() % out.shape[1]
    out[i, j] = np.sqrt(out[i, j])


def submit_pairwise_norms(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, _ = size
    x, y, x_norms, y_norms, out = arrays
    queue.submit(squared_norms, n, x, x_norms)
    queue.submit(squared_norms, n, y, y_norms)
    queue.submit(products, (n, n), x, y, out)
    queue.submit(add_rows, (n, n), x_norms, out)
    queue.submit(add_columns, (n, n), y_norms, out)
    queue.submit(roots, (n, n), out)


def submit_pairwise_linear(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, _ = size
    x, y, _, _, out = arrays
    queue.submit(squares_between, n * n, x, y, out)
    queue.submit(roots_linear, n * n, out)


def pairwise_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n, dims = size
    norms = {name: np.zeros(n) for name in ("x_norms", "y_norms")}
    x, y = rng.random((n, dims)), 1.0 + rng.random((n, dims))
    return {"x": x, "y": y, **norms, "out": np.zeros((n, n))}


def pairwise_numpy(size: Size, x: Array, y: Array, *arrays: Array) -> None:
    out = arrays[-1]
    np.multiply(x @ y.T, -2.0, out=out)
    out += (x * x).sum(axis=1)[:, np.newaxis]
    out += (y * y).sum(axis=1)
    np.sqrt(out, out=out)


def pairwise_loop(numba: Any) -> Callable[..., None]:
    def loop(
        n: int, dims: int, x: Array, y: Array, x_norms: Array, y_norms: Array, out: Array
    ) -> None:
        for i in numba.prange(n):
            for j in range(n):
                total = 0.0
                for d in range(dims):
                    total += (x[i, d] - y[j, d]) * (x[i, d] - y[j, d])
                out[i, j] = np.sqrt(total)

    return loop


# ------------------------------------------------------------------------------------- gpairs
BINS = 10


@fq.kernel
def pair_squares(item: fq.Item, p: Array, q: Array, squares: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    dx = p[i, 0] - q[j, 0]
    dy = p[i, 1] - q[j, 1]
    dz = p[i, 2] - q[j, 2]
    squares[i, j] = dx * dx + dy * dy + dz * dz


@fq.kernel
def weigh_pairs(item: fq.Item, squares: Array, w: Array, edges: Array, rows: Array) -> None:
    i = item.get_id(0)
    k = item.get_id(1)
    total = 0.0
    for j in range(squares.shape[1]):
        if squares[i, j] <= edges[k]:
            total += w[i] * w[j]
    rows[i, k] = total


@fq.kernel
def weigh_directly(
    item: fq.Item, p: Array, q: Array, w: Array, edges: Array, rows: Array
) -> None:
    i = item.get_id(0)
    totals = fq.PrivateArray(BINS, np.float64, fill_zeros=True)
    for j in range(q.shape[0]):
        dx = p[i, 0] - q[j, 0]
        dy = p[i, 1] - q[j, 1]
        dz = p[i, 2] - q[j, 2]
        square = dx * dx + dy * dy + dz * dz
        for k in range(BINS):
            if square <= edges[k]:
                totals[k] += w[i] * w[j]
    for k in range(BINS):
        rows[i, k] = totals[k]


@fq.kernel
def add_up(item: fq.Item, rows: Array, counts: Array) -> None:
    k = item.get_id(0)
    total = 0.0
    for i in range(rows.shape[0]):
        total += rows[i, k]
    counts[k] = total / float(rows.shape[0])


def submit_gpairs_matrix(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n = size[0]
    p, q, w, edges, squares, rows, counts = arrays
    queue.submit(pair_squares, (n, n), p, q, squares)
    queue.submit(weigh_pairs, (n, BINS), squares, w, edges, rows)
    queue.submit(add_up, BINS, rows, counts)


def submit_gpairs_direct(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n = size[0]
    p, q, w, edges, _, rows, counts = arrays
    queue.submit(weigh_directly, n, p, q, w, edges, rows)
    queue.submit(add_up, BINS, rows, counts)


def gpairs_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n = size[0]
    return {
        "p": rng.random((n, 3)),
        "q": rng.random((n, 3)),
        "w": rng.random(n) / n,
        "edges": np.linspace(0.1, 1.0, BINS) ** 2,
        "squares": np.zeros((n, n)),
        "rows": np.zeros((n, BINS)),
        "counts": np.zeros(BINS),
    }


def gpairs_numpy(size: Size, *arrays: Array) -> None:
    p, q, w, edges, squares, rows, counts = arrays
    squares[...] = 0
    for axis in range(3):
        squares += (p[:, axis, np.newaxis] - q[:, axis]) ** 2
    for k in range(BINS):
        rows[:, k] = w * np.where(squares <= edges[k], w, 0.0).sum(axis=1)
    np.divide(rows.sum(axis=0), size[0], out=counts)


PROGRAMS = (
    CorpusProgram(
        name="pairwise_distance",
        description="distances between all pairs of two sets of points, float64",
        source=f"{DPBENCH}: pairwise_distance",
        axes=("n", "dims"),
        sizes={"tiny": (7, 3), "in cache": (256, 4), "out of cache": (3072, 4)},
        arrays=pairwise_arrays,
        inputs=("x", "y"),
        outputs=("out",),
        forms=(
            Form("norms", "norms, products, sums, roots: six kernels", submit_pairwise_norms),
            Form("linear", "one linear id, differences, then roots", submit_pairwise_linear),
        ),
        reference=pairwise_numpy,
        tolerance=1e-10,
        loop=pairwise_loop,
    ),
    CorpusProgram(
        name="gpairs",
        description="weighted pair counts within radii, as of galaxies, float64",
        source=f"{DPBENCH}: gpairs",
        axes=("n",),
        sizes={"tiny": (9,), "in cache": (256,), "out of cache": (3072,)},
        arrays=gpairs_arrays,
        inputs=("p", "q", "w", "edges"),
        outputs=("counts",),
        forms=(
            Form("matrix", "all squared distances first, then each bin", submit_gpairs_matrix),
            Form("direct", "a work-item a point, private counts", submit_gpairs_direct),
        ),
        reference=gpairs_numpy,
        tolerance=1e-10,
    ),
)
