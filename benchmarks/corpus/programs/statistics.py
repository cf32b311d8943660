"""Statistics of tables: row sums, and principal components."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Scalar, Size

GROUP = 64


# ----------------------------------------------------------------------------------- row sums
@fq.kernel
def row_sums(item: fq.Item, x: Array, sums: Array) -> None:
    i = item.get_id(0)
    total = 0.0
    for j in range(x.shape[1]):
        total += x[i, j]
    sums[i] = total


@fq.kernel
def divide(item: fq.Item, sums: Array, x: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = x[i, j] / sums[i]


@fq.kernel
def logs(item: fq.Item, out: Array, terms: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    terms[i, j] = -out[i, j] * np.log(out[i, j])


@fq.kernel
def group_sums(item: fq.NdItem, x: Array, sums: Array) -> None:
    i = item.get_global_id(0)
    lane = item.get_local_id(1)
    own = 0.0
    for j in range(lane, x.shape[1], GROUP):
        own += x[i, j]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    if lane == 0:
        sums[i] = total


@fq.kernel
def divide_linear(item: fq.Item, sums: Array, x: Array, out: Array) -> None:
    i = item.get_linear_id() // x.shape[1]
    j = item.get_linear_id() % x.shape[1]
    out[i, j] = x[i, j] / sums[i]


@fq.kernel
def logs_linear(item: fq.Item, out: Array, terms: Array) -> None:
    i = item.get_linear_id() // out.shape[1]
    j = item.get_linear_id() % out.shape[1]
    terms[i, j] = -out[i, j] * np.log(out[i, j])


def submit_entropy_rows(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    rows, columns = size
    x, sums, out, terms, entropy = arrays
    queue.submit(row_sums, rows, x, sums)
    queue.submit(divide, (rows, columns), sums, x, out)
    queue.submit(logs, (rows, columns), out, terms)
    queue.submit(row_sums, rows, terms, entropy)


def submit_entropy_groups(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    rows, columns = size
    x, sums, out, terms, entropy = arrays
    groups = fq.NdRange((rows, GROUP), (1, GROUP))
    queue.submit(group_sums, groups, x, sums)
    queue.submit(divide_linear, rows * columns, sums, x, out)
    queue.submit(logs_linear, rows * columns, out, terms)
    queue.submit(group_sums, groups, terms, entropy)


def entropy_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    rows, _ = size
    x = rng.random(size) + 0.1
    vectors = {name: np.zeros(rows) for name in ("sums", "entropy")}
    return {
        "x": x,
        "sums": vectors["sums"],
        "out": np.zeros_like(x),
        "terms": np.zeros_like(x),
        "entropy": vectors["entropy"],
    }


def entropy_numpy(size: Size, x: Array, sums: Array, out: Array, terms: Array, h: Array) -> None:
    np.sum(x, axis=1, out=sums)
    np.divide(x, sums[:, np.newaxis], out=out)
    np.multiply(-out, np.log(out), out=terms)
    np.sum(terms, axis=1, out=h)


def entropy_loop(numba: Any) -> Callable[..., None]:
    def loop(
        rows: int, columns: int, x: Array, sums: Array, out: Array, terms: Array, entropy: Array
    ) -> None:
        for i in numba.prange(rows):
            total = 0.0
            for j in range(columns):
                total += x[i, j]
            sums[i] = total
            information = 0.0
            for j in range(columns):
                out[i, j] = x[i, j] / total
                information -= out[i, j] * np.log(out[i, j])
            entropy[i] = information

    return loop


# ----------------------------------------------------------------------- principal components
BLOCKS = 64


@fq.kernel
def column_means(item: fq.Item, x: Array, mean: Array) -> None:
    j = item.get_id(0)
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i, j]
    mean[j] = total / float(x.shape[0])


@fq.kernel
def centre(item: fq.Item, mean: Array, x: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    x[i, j] -= mean[j]


@fq.kernel
def covariance(item: fq.Item, x: Array, c: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    total = 0.0
    for k in range(x.shape[0]):
        total += x[k, i] * x[k, j]
    c[i, j] = total / float(x.shape[0] - 1)


@fq.kernel
def covariance_upper(item: fq.Item, x: Array, c: Array) -> None:
    i = item.get_id(0)
    for j in range(i, x.shape[1]):
        total = 0.0
        for k in range(x.shape[0]):
            total += x[k, i] * x[k, j]
        c[i, j] = total / float(x.shape[0] - 1)
        c[j, i] = c[i, j]


@fq.kernel
def times_vector(item: fq.Item, c: Array, v: Array, w: Array) -> None:
    i = item.get_id(0)
    total = 0.0
    for j in range(c.shape[1]):
        total += c[i, j] * v[j]
    w[i] = total


@fq.kernel
def square_length(item: fq.Item, w: Array, norm: Array) -> None:
    total = 0.0
    for j in range(w.shape[0]):
        total += w[j] * w[j]
    norm[item.get_id(0)] = np.sqrt(total)


@fq.kernel
def scale(item: fq.Item, norm: Array, w: Array, v: Array) -> None:
    i = item.get_id(0)
    v[i] = w[i] / norm[0]


@fq.kernel
def project(item: fq.Item, x: Array, v: Array, out: Array) -> None:
    i = item.get_id(0)
    total = 0.0
    for j in range(x.shape[1]):
        total += x[i, j] * v[j]
    out[i] = total


@fq.kernel
def block_means(item: fq.Item, x: Array, partial: Array) -> None:
    block = item.get_id(0)
    j = item.get_id(1)
    length = x.shape[0] // partial.shape[0]
    total = 0.0
    for i in range(block * length, (block + 1) * length):
        total += x[i, j]
    partial[block, j] = total


@fq.kernel
def finish_means(item: fq.Item, rows: Scalar, partial: Array, mean: Array) -> None:
    j = item.get_id(0)
    total = 0.0
    for block in range(partial.shape[0]):
        total += partial[block, j]
    mean[j] = total / rows


def power_steps(queue: fq.FusionQueue, dims: int, steps: int, *arrays: fq.Buffer) -> None:
    c, v, w, norm = arrays
    for _ in range(steps):
        queue.submit(times_vector, dims, c, v, w)
        queue.submit(square_length, 1, w, norm)
        queue.submit(scale, dims, norm, w, v)


def submit_pca_columns(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    rows, dims, steps = size
    x, mean, c, v, w, norm, out, _ = arrays
    queue.submit(column_means, dims, x, mean)
    queue.submit(centre, (rows, dims), mean, x)
    queue.submit(covariance, (dims, dims), x, c)
    power_steps(queue, dims, steps, c, v, w, norm)
    queue.submit(project, rows, x, v, out)


def submit_pca_blocks(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    rows, dims, steps = size
    x, mean, c, v, w, norm, out, partial = arrays
    queue.submit(block_means, (BLOCKS, dims), x, partial)
    queue.submit(finish_means, dims, float(rows), partial, mean)
    queue.submit(centre, (rows, dims), mean, x)
    queue.submit(covariance_upper, dims, x, c)
    power_steps(queue, dims, steps, c, v, w, norm)
    queue.submit(project, rows, x, v, out)


def pca_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    rows, dims, _ = size
    return {
        "x": rng.random((rows, dims)) * np.linspace(1.0, 2.0, dims),
        "mean": np.zeros(dims),
        "c": np.zeros((dims, dims)),
        "v": np.full(dims, dims**-0.5),
        "w": np.zeros(dims),
        "norm": np.zeros(1),
        "out": np.zeros(rows),
        "partial": np.zeros((BLOCKS, dims)),
    }


def pca_numpy(size: Size, *arrays: Array) -> None:
    x, _, _, v, *_, out, _ = arrays
    x -= x.mean(axis=0)
    c = x.T @ x / (size[0] - 1)
    for _ in range(size[2]):
        w = c @ v
        v[...] = w / np.sqrt(w @ w)
    np.matmul(x, v, out=out)


PROGRAMS = (
    CorpusProgram(
        name="row_entropy",
        description="row sums, shares, logarithms, row sums again; float64",
        source="Shannon 1948; the row sums of NumPy's and CuPy's tutorials",
        axes=("rows", "columns"),
        sizes={"tiny": (5, 70), "in cache": (128, 512), "out of cache": (4096, 2048)},
        arrays=entropy_arrays,
        inputs=("x",),
        outputs=("entropy",),
        forms=(
            Form("rows", "a work-item a row, a work-item an element", submit_entropy_rows),
            Form("groups", "NdRange, a work-group a row; a linear id", submit_entropy_groups),
        ),
        reference=entropy_numpy,
        tolerance=1e-10,
        loop=entropy_loop,
    ),
    CorpusProgram(
        name="principal_components",
        description="means, covariance, power iteration, projection; float64",
        source="Pearson 1901; dpbench (Intel, 2023): pca; PolyBench: covariance",
        axes=("rows", "dims", "steps"),
        sizes={"tiny": (64, 5, 2), "in cache": (2048, 16, 6), "out of cache": (1 << 20, 16, 4)},
        arrays=pca_arrays,
        inputs=(),
        outputs=("out", "v"),
        forms=(
            Form("columns", "a work-item a column, then whole matrices", submit_pca_columns),
            Form("blocks", "partial sums by blocks, half the covariance", submit_pca_blocks),
        ),
        reference=pca_numpy,
        tolerance=1e-8,
    ),
)
