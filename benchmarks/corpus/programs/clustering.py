"""Distances between points, and what is made of them: k-means, Lloyd, pair counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Size

DPBENCH = "dpbench (Intel, 2023)"
GROUP = 128
BLOCKS = 64


# ------------------------------------------------------------------------------------ k-means
@fq.kernel
def assign(item: fq.Item, points: Array, centroids: Array, labels: Array) -> None:
    i = item.get_id(0)
    best = -1
    nearest = np.float32(1e30)
    for c in range(centroids.shape[0]):
        dx = points[i, 0] - centroids[c, 0]
        dy = points[i, 1] - centroids[c, 1]
        distance = dx * dx + dy * dy
        if distance < nearest:
            nearest = distance
            best = c
    labels[i] = best


@fq.kernel
def block_sums(
    item: fq.Item, points: Array, labels: Array, sums: Array, counts: Array
) -> None:
    block = item.get_id(0)
    c = item.get_id(1)
    length = points.shape[0] // sums.shape[0]
    x = np.float32(0)
    y = np.float32(0)
    count = 0
    for i in range(block * length, (block + 1) * length):
        if labels[i] == c:
            x += points[i, 0]
            y += points[i, 1]
            count += 1
    sums[block, c, 0] = x
    sums[block, c, 1] = y
    counts[block, c] = count


@fq.kernel
def new_centroids(item: fq.Item, sums: Array, counts: Array, centroids: Array) -> None:
    c = item.get_id(0)
    x = np.float32(0)
    y = np.float32(0)
    count = 0
    for block in range(sums.shape[0]):
        x += sums[block, c, 0]
        y += sums[block, c, 1]
        count += counts[block, c]
    if count > 0:
        centroids[c, 0] = x / np.float32(count)
        centroids[c, 1] = y / np.float32(count)


@fq.kernel
def group_sums(
    item: fq.NdItem, points: Array, labels: Array, sums: Array, counts: Array
) -> None:
    i = item.get_global_id(0)
    group = item.get_group()
    for c in range(sums.shape[1]):
        mine = labels[i] == c
        x = fq.reduce_over_group(group, points[i, 0] if mine else np.float32(0), "add")
        y = fq.reduce_over_group(group, points[i, 1] if mine else np.float32(0), "add")
        count = fq.reduce_over_group(group, 1 if mine else 0, "add")
        if group.leader:
            sums[group.get_group_id(0), c, 0] = x
            sums[group.get_group_id(0), c, 1] = y
            counts[group.get_group_id(0), c] = count


def submit_kmeans_blocks(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, k, steps = size
    points, centroids, labels, sums, counts, _, _ = arrays
    for _ in range(steps):
        queue.submit(assign, n, points, centroids, labels)
        queue.submit(block_sums, (BLOCKS, k), points, labels, sums, counts)
        queue.submit(new_centroids, k, sums, counts, centroids)


def submit_kmeans_groups(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, k, steps = size
    points, centroids, labels, _, _, sums, counts = arrays
    for _ in range(steps):
        queue.submit(assign, n, points, centroids, labels)
        queue.submit(group_sums, fq.NdRange(n, GROUP), points, labels, sums, counts)
        queue.submit(new_centroids, k, sums, counts, centroids)


def kmeans_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n, k, _ = size
    points = rng.random((n, 2), dtype=np.float32)
    return {
        "points": points,
        "centroids": points[:k].copy(),
        "labels": np.zeros(n, np.int64),
        "sums": np.zeros((BLOCKS, k, 2), np.float32),
        "counts": np.zeros((BLOCKS, k), np.int64),
        "group_sums": np.zeros((n // GROUP, k, 2), np.float32),
        "group_counts": np.zeros((n // GROUP, k), np.int64),
    }


def kmeans_numpy(size: Size, points: Array, centroids: Array, labels: Array, *_: Array) -> None:
    n, k, steps = size
    for _step in range(steps):
        nearest = np.full(n, np.float32(1e30))
        for c in range(k):
            dx, dy = points[:, 0] - centroids[c, 0], points[:, 1] - centroids[c, 1]
            distance = dx * dx + dy * dy
            labels[distance < nearest] = c
            np.minimum(nearest, distance, out=nearest)
        for c in range(k):
            if (mine := labels == c).any():
                centroids[c] = points[mine].mean(axis=0, dtype=np.float64)


def kmeans_loop(numba: Any) -> Callable[..., None]:
    def loop(
        n: int, k: int, steps: int, points: Array, centroids: Array, labels: Array, sums: Array,
        counts: Array, more_sums: Array, more_counts: Array,
    ) -> None:  # fmt: skip
        blocks = sums.shape[0]
        length = n // blocks
        for _ in range(steps):
            for i in numba.prange(n):
                best, nearest = -1, np.float32(1e30)
                for c in range(k):
                    dx = points[i, 0] - centroids[c, 0]
                    dy = points[i, 1] - centroids[c, 1]
                    distance = dx * dx + dy * dy
                    if distance < nearest:
                        best, nearest = c, distance
                labels[i] = best
            for block in numba.prange(blocks):
                sums[block] = 0
                counts[block] = 0
                for i in range(block * length, (block + 1) * length):
                    c = labels[i]
                    sums[block, c, 0] += points[i, 0]
                    sums[block, c, 1] += points[i, 1]
                    counts[block, c] += 1
            for c in range(k):
                count = counts[:, c].sum()
                if count > 0:
                    centroids[c, 0] = sums[:, c, 0].sum() / count
                    centroids[c, 1] = sums[:, c, 1].sum() / count

    return loop


# -------------------------------------------------------------------------------------- Lloyd
@fq.kernel
def distances(item: fq.Item, points: Array, codes: Array, squares: Array) -> None:
    i = item.get_id(0)
    c = item.get_id(1)
    total = 0.0
    for d in range(points.shape[1]):
        difference = points[i, d] - codes[c, d]
        total += difference * difference
    squares[i, c] = total


@fq.kernel
def distances_linear(item: fq.Item, points: Array, codes: Array, squares: Array) -> None:
    i = item.get_linear_id() // codes.shape[0]
    c = item.get_linear_id() % codes.shape[0]
    total = 0.0
    for d in range(points.shape[1]):
        total += (points[i, d] - codes[c, d]) * (points[i, d] - codes[c, d])
    squares[i, c] = total


@fq.kernel
def nearest_code(item: fq.Item, squares: Array, labels: Array) -> None:
    i = item.get_id(0)
    best = 0
    for c in range(1, squares.shape[1]):
        if squares[i, c] < squares[i, best]:
            best = c
    labels[i] = best


@fq.kernel
def clear_counts(item: fq.Item, counts: Array) -> None:
    counts[item.get_id(0)] = 0


@fq.kernel
def count_labels(item: fq.Item, labels: Array, counts: Array) -> None:
    fq.AtomicRef(counts, labels[item.get_id(0)]).fetch_add(1)


@fq.kernel
def code_sums(item: fq.Item, points: Array, labels: Array, partial: Array) -> None:
    block = item.get_id(0)
    c = item.get_id(1)
    d = item.get_id(2)
    length = points.shape[0] // partial.shape[0]
    total = 0.0
    for i in range(block * length, (block + 1) * length):
        if labels[i] == c:
            total += points[i, d]
    partial[block, c, d] = total


@fq.kernel
def move_codes(item: fq.Item, partial: Array, counts: Array, codes: Array) -> None:
    c = item.get_id(0)
    d = item.get_id(1)
    total = 0.0
    for block in range(partial.shape[0]):
        total += partial[block, c, d]
    if counts[c] > 0:
        codes[c, d] = total / float(counts[c])


def submit_lloyd_rows(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, k, dims, steps = size
    points, codes, squares, labels, counts, partial = arrays
    for _ in range(steps):
        queue.submit(distances, (n, k), points, codes, squares)
        queue.submit(nearest_code, n, squares, labels)
        queue.submit(clear_counts, k, counts)
        queue.submit(count_labels, n, labels, counts)
        queue.submit(code_sums, (BLOCKS, k, dims), points, labels, partial)
        queue.submit(move_codes, (k, dims), partial, counts, codes)


def submit_lloyd_linear(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, k, dims, steps = size
    points, codes, squares, labels, counts, partial = arrays
    for _ in range(steps):
        queue.submit(clear_counts, k, counts)
        queue.submit(distances_linear, n * k, points, codes, squares)
        queue.submit(nearest_code, n, squares, labels)
        queue.submit(code_sums, (BLOCKS, k, dims), points, labels, partial)
        queue.submit(count_labels, n, labels, counts)
        queue.submit(move_codes, (k, dims), partial, counts, codes)


def lloyd_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n, k, dims, _ = size
    points = rng.random((n, dims))
    return {
        "points": points,
        "codes": points[:k].copy(),
        "squares": np.zeros((n, k)),
        "labels": np.zeros(n, np.int64),
        "counts": np.zeros(k, np.int64),
        "partial": np.zeros((BLOCKS, k, dims)),
    }


def lloyd_numpy(
    size: Size, points: Array, codes: Array, squares: Array, labels: Array, *_: Array
) -> None:
    _n, k, dims, steps = size
    for _step in range(steps):
        squares[...] = 0
        for d in range(dims):
            squares += (points[:, d, np.newaxis] - codes[:, d]) ** 2
        np.argmin(squares, axis=1, out=labels)
        for c in range(k):
            if (mine := labels == c).any():
                codes[c] = points[mine].mean(axis=0)


PROGRAMS = (
    CorpusProgram(
        name="kmeans",
        description="assign points to the nearest centroid, average, repeat; float32",
        source=f"{DPBENCH}: kmeans",
        axes=("n", "k", "steps"),
        sizes={"tiny": (256, 3, 2), "in cache": (1 << 14, 10, 3), "out of cache": (1 << 22, 10, 2)},
        arrays=kmeans_arrays,
        inputs=("points",),
        outputs=("centroids",),
        forms=(
            Form("blocks", "plain ranges, partial sums by blocks", submit_kmeans_blocks),
            Form("groups", "NdRange, sums over work-groups", submit_kmeans_groups),
        ),
        reference=kmeans_numpy,
        tolerance=1e-4,
        loop=kmeans_loop,
    ),
    CorpusProgram(
        name="lloyd",
        description="vector quantisation by a matrix of distances, counts by atomics, float64",
        source="Lloyd, Least squares quantization in PCM, IEEE Trans. Inf. Theory 1982",
        axes=("n", "k", "dims", "steps"),
        sizes={
            "tiny": (64, 3, 2, 2),
            "in cache": (4096, 8, 4, 3),
            "out of cache": (1 << 20, 8, 4, 1),
        },
        arrays=lloyd_arrays,
        inputs=("points",),
        outputs=("codes",),
        forms=(
            Form("rows", "points and codes as ids", submit_lloyd_rows),
            Form("linear", "one linear id for distances, another order", submit_lloyd_linear),
        ),
        reference=lloyd_numpy,
        tolerance=1e-10,
    ),
)
