"""Image pipelines: separable blur, unsharp mask, Harris corners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Scalar, Size, in_groups

POLYMAGE = "Mullapudi et al., PolyMage, ASPLOS 2015"
ROWS, COLUMNS = 8, 32
"""A tile of the work-groups."""


def binomial(a: Scalar, b: Scalar, c: Scalar, d: Scalar, e: Scalar) -> Scalar:
    return 0.0625 * (a + e) + 0.25 * (b + d) + 0.375 * c


# ----------------------------------------------------------------------------- separable blur
@fq.kernel
def blur_columns_clamped(item: fq.Item, x: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    last = x.shape[0] - 1
    out[i, j] = binomial(
        x[max(i - 2, 0), j], x[max(i - 1, 0), j], x[i, j], x[min(i + 1, last), j],
        x[min(i + 2, last), j],
    )  # fmt: skip


@fq.kernel
def blur_rows_clamped(item: fq.Item, x: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    last = x.shape[1] - 1
    out[i, j] = binomial(
        x[i, max(j - 2, 0)], x[i, max(j - 1, 0)], x[i, j], x[i, min(j + 1, last)],
        x[i, min(j + 2, last)],
    )  # fmt: skip


@fq.kernel
def blur_columns_local(item: fq.NdItem, x: Array, tile: fq.LocalAccessor, out: Array) -> None:
    i = item.get_global_id(0)
    j = item.get_global_id(1)
    y = item.get_local_id(0)
    k = item.get_local_id(1)
    last = x.shape[0] - 1
    column = min(j, x.shape[1] - 1)
    for row in range(y, ROWS + 4, ROWS):
        tile[row, k] = x[min(max(i - y + row - 2, 0), last), column]
    fq.group_barrier(item.get_group())
    if i <= last and j < x.shape[1]:
        out[i, j] = binomial(
            tile[y, k], tile[y + 1, k], tile[y + 2, k], tile[y + 3, k], tile[y + 4, k]
        )


@fq.kernel
def blur_rows_local(item: fq.NdItem, x: Array, tile: fq.LocalAccessor, out: Array) -> None:
    i = item.get_global_id(0)
    j = item.get_global_id(1)
    y = item.get_local_id(0)
    k = item.get_local_id(1)
    last = x.shape[1] - 1
    row = min(i, x.shape[0] - 1)
    for column in range(k, COLUMNS + 4, COLUMNS):
        tile[y, column] = x[row, min(max(j - k + column - 2, 0), last)]
    fq.group_barrier(item.get_group())
    if i < x.shape[0] and j <= last:
        out[i, j] = binomial(
            tile[y, k], tile[y, k + 1], tile[y, k + 2], tile[y, k + 3], tile[y, k + 4]
        )


@fq.kernel
def blur_rows_linear(item: fq.Item, x: Array, out: Array) -> None:
    m = x.shape[1]
    i = item.get_linear_id() // m
    j = item.get_linear_id() % m
    a = x[i, j - 2] if j >= 2 else x[i, 0]
    b = x[i, j - 1] if j >= 1 else x[i, 0]
    d = x[i, j + 1] if j + 1 < m else x[i, m - 1]
    e = x[i, j + 2] if j + 2 < m else x[i, m - 1]
    out[i, j] = binomial(a, b, x[i, j], d, e)


@fq.kernel
def blur_columns_linear(item: fq.Item, x: Array, out: Array) -> None:
    n = x.shape[0]
    i = item.get_linear_id() // x.shape[1]
    j = item.get_linear_id() % x.shape[1]
    a = x[i - 2, j] if i >= 2 else x[0, j]
    b = x[i - 1, j] if i >= 1 else x[0, j]
    d = x[i + 1, j] if i + 1 < n else x[n - 1, j]
    e = x[i + 2, j] if i + 2 < n else x[n - 1, j]
    out[i, j] = binomial(a, b, x[i, j], d, e)


def submit_blur_clamped(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    x, across, out = arrays
    queue.submit(blur_rows_clamped, size, x, across)
    queue.submit(blur_columns_clamped, size, across, out)


def submit_blur_local(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    x, across, out = arrays
    groups = in_groups(size, (ROWS, COLUMNS))
    wide = fq.LocalAccessor((ROWS, COLUMNS + 4), np.float32)
    queue.submit(blur_rows_local, groups, x, wide, across)
    high = fq.LocalAccessor((ROWS + 4, COLUMNS), np.float32)
    queue.submit(blur_columns_local, groups, across, high, out)


def submit_blur_linear(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    x, across, out = arrays
    queue.submit(blur_rows_linear, size[0] * size[1], x, across)
    queue.submit(blur_columns_linear, size[0] * size[1], across, out)


def image(size: Size, rng: np.random.Generator) -> Array:
    found: Array = rng.random(size, dtype=np.float32)
    return found


def blur_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    x = image(size, rng)
    return {"x": x, "across": np.zeros_like(x), "out": np.zeros_like(x)}


def blurred_rows(x: Array) -> Array:
    p = np.pad(x, ((0, 0), (2, 2)), mode="edge")
    found: Array = binomial(p[:, :-4], p[:, 1:-3], p[:, 2:-2], p[:, 3:-1], p[:, 4:])
    return found


def blurred(x: Array) -> Array:
    p = np.pad(blurred_rows(x), ((2, 2), (0, 0)), mode="edge")
    found: Array = binomial(p[:-4], p[1:-3], p[2:-2], p[3:-1], p[4:])
    return found


def blur_numpy(size: Size, x: Array, across: Array, out: Array) -> None:
    out[...] = blurred(x)


def blur_loop(numba: Any) -> Callable[..., None]:
    outer, inner, centre = map(np.float32, (0.0625, 0.25, 0.375))

    def loop(n: int, m: int, x: Array, across: Array, out: Array) -> None:
        for i in numba.prange(n):
            for j in range(m):
                ends = x[i, max(j - 2, 0)] + x[i, min(j + 2, m - 1)]
                near = x[i, max(j - 1, 0)] + x[i, min(j + 1, m - 1)]
                across[i, j] = outer * ends + inner * near + centre * x[i, j]
        for i in numba.prange(n):
            for j in range(m):
                ends = across[max(i - 2, 0), j] + across[min(i + 2, n - 1), j]
                near = across[max(i - 1, 0), j] + across[min(i + 1, n - 1), j]
                out[i, j] = outer * ends + inner * near + centre * across[i, j]

    return loop


# --------------------------------------------------------------------------------- unsharp mask
WEIGHT, THRESHOLD = 3.0, 0.01


@fq.kernel
def sharpen(item: fq.Item, x: Array, soft: Array, sharp: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    sharp[i, j] = x[i, j] * (1.0 + WEIGHT) - soft[i, j] * WEIGHT


@fq.kernel
def mask(item: fq.Item, x: Array, soft: Array, sharp: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if 2 <= i < x.shape[0] - 2 and 2 <= j < x.shape[1] - 2:
        out[i, j] = x[i, j] if abs(x[i, j] - soft[i, j]) < THRESHOLD else sharp[i, j]


@fq.kernel
def blur_rows_inside(item: fq.Item, x: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1) + 2
    out[i, j] = binomial(x[i, j - 2], x[i, j - 1], x[i, j], x[i, j + 1], x[i, j + 2])


@fq.kernel
def blur_columns_inside(item: fq.Item, x: Array, out: Array) -> None:
    i = item.get_id(0) + 2
    j = item.get_id(1) + 2
    out[i, j] = binomial(x[i - 2, j], x[i - 1, j], x[i, j], x[i + 1, j], x[i + 2, j])


@fq.kernel
def sharpen_inside(item: fq.Item, x: Array, soft: Array, sharp: Array) -> None:
    i = item.get_id(0) + 2
    j = item.get_id(1) + 2
    sharp[i, j] = x[i, j] * (1.0 + WEIGHT) - soft[i, j] * WEIGHT


@fq.kernel
def mask_inside(item: fq.Item, x: Array, soft: Array, sharp: Array, out: Array) -> None:
    i = item.get_id(0) + 2
    j = item.get_id(1) + 2
    out[i, j] = x[i, j] if abs(x[i, j] - soft[i, j]) < THRESHOLD else sharp[i, j]


@fq.kernel
def blur_rows_guarded(item: fq.Item, x: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if j >= 2 and j < x.shape[1] - 2:
        out[i, j] = binomial(x[i, j - 2], x[i, j - 1], x[i, j], x[i, j + 1], x[i, j + 2])


@fq.kernel
def blur_columns_guarded(item: fq.Item, x: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i >= 2 and i < x.shape[0] - 2:
        out[i, j] = binomial(x[i - 2, j], x[i - 1, j], x[i, j], x[i + 1, j], x[i + 2, j])


def submit_unsharp_guarded(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    x, across, soft, sharp, out = arrays
    queue.submit(blur_rows_guarded, size, x, across)
    queue.submit(blur_columns_guarded, size, across, soft)
    queue.submit(sharpen, size, x, soft, sharp)
    queue.submit(mask, size, x, soft, sharp, out)


def submit_unsharp_inside(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    x, across, soft, sharp, out = arrays
    n, m = size
    queue.submit(blur_rows_inside, (n, m - 4), x, across)
    queue.submit(blur_columns_inside, (n - 4, m - 4), across, soft)
    queue.submit(sharpen_inside, (n - 4, m - 4), x, soft, sharp)
    queue.submit(mask_inside, (n - 4, m - 4), x, soft, sharp, out)


def unsharp_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    zeros = {name: np.zeros(size, np.float32) for name in ("across", "soft", "sharp")}
    return {"x": image(size, rng), **zeros, "out": np.zeros(size, np.float32)}


def unsharp_numpy(size: Size, *arrays: Array) -> None:
    x, *_, out = arrays
    soft = blurred(x)
    sharp = x * (1.0 + WEIGHT) - soft * WEIGHT
    found = np.where(np.abs(x - soft) < THRESHOLD, x, sharp)
    out[2:-2, 2:-2] = found[2:-2, 2:-2]


PHOTO = (2160, 3840)

PROGRAMS = (
    CorpusProgram(
        name="separable_blur",
        description="a binomial filter of five taps by rows, then by columns, float32",
        source="Ragan-Kelley et al., Halide, PLDI 2013; Burt, CGIP 1981",
        axes=("rows", "columns"),
        sizes={"tiny": (9, 37), "in cache": (256, 320), "out of cache": (4096, 4096)},
        arrays=blur_arrays,
        inputs=("x",),
        outputs=("out",),
        forms=(
            Form("clamped", "rows and columns as ids, indices clamped", submit_blur_clamped),
            Form("linear", "one linear id, divided; conditions", submit_blur_linear),
            Form("local", "NdRange, tiles with halo in local memory", submit_blur_local),
        ),
        reference=blur_numpy,
        loop=blur_loop,
    ),
    CorpusProgram(
        name="unsharp_mask",
        description="blur by rows and columns, sharpen, mask, float32",
        source=f"{POLYMAGE}: unsharp mask",
        axes=("rows", "columns"),
        sizes={"tiny": (9, 11), "in cache": (200, 240), "out of cache": PHOTO},
        arrays=unsharp_arrays,
        inputs=("x",),
        outputs=("out",),
        forms=(
            Form("interior", "interior ranges that differ, id + 2", submit_unsharp_inside),
            Form("guarded", "full ranges, guarded", submit_unsharp_guarded),
        ),
        reference=unsharp_numpy,
    ),
)
