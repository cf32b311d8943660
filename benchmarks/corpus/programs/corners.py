"""Harris corners: many small kernels over an image."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Scalar, Size

PHOTO = (2160, 3840)


# -------------------------------------------------------------------------------- Harris corners
def sobel(a: Scalar, b: Scalar, c: Scalar, d: Scalar, e: Scalar, f: Scalar) -> Scalar:
    return (d - a) * 0.25 + (e - b) * 0.5 + (f - c) * 0.25


@fq.kernel
def gradient_x(item: fq.Item, x: Array, ix: Array) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    ix[i, j] = sobel(
        x[i - 1, j - 1], x[i, j - 1], x[i + 1, j - 1], x[i - 1, j + 1], x[i, j + 1], x[i + 1, j + 1]
    )


@fq.kernel
def gradient_y(item: fq.Item, x: Array, iy: Array) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    iy[i, j] = sobel(
        x[i - 1, j - 1], x[i - 1, j], x[i - 1, j + 1], x[i + 1, j - 1], x[i + 1, j], x[i + 1, j + 1]
    )


@fq.kernel
def times(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    out[i, j] = a[i, j] * b[i, j]


@fq.kernel
def box_sum(item: fq.Item, x: Array, out: Array) -> None:
    i = item.get_id(0) + 2
    j = item.get_id(1) + 2
    total = x[i - 1, j - 1] + x[i - 1, j] + x[i - 1, j + 1]
    total += x[i, j - 1] + x[i, j] + x[i, j + 1]
    total += x[i + 1, j - 1] + x[i + 1, j] + x[i + 1, j + 1]
    out[i, j] = total


@fq.kernel
def response(item: fq.Item, sxx: Array, sxy: Array, syy: Array, out: Array) -> None:
    i = item.get_id(0) + 2
    j = item.get_id(1) + 2
    trace = sxx[i, j] + syy[i, j]
    out[i, j] = sxx[i, j] * syy[i, j] - sxy[i, j] * sxy[i, j] - 0.04 * trace * trace


@fq.kernel
def gradients_guarded(
    item: fq.Item, x: Array, ixx: Array, ixy: Array, iyy: Array
) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i < 1 or j < 1 or i >= x.shape[0] - 1 or j >= x.shape[1] - 1:
        return
    ix = sobel(
        x[i - 1, j - 1], x[i, j - 1], x[i + 1, j - 1], x[i - 1, j + 1], x[i, j + 1], x[i + 1, j + 1]
    )
    iy = sobel(
        x[i - 1, j - 1], x[i - 1, j], x[i - 1, j + 1], x[i + 1, j - 1], x[i + 1, j], x[i + 1, j + 1]
    )
    ixx[i, j] = ix * ix
    ixy[i, j] = ix * iy
    iyy[i, j] = iy * iy


@fq.kernel
def box_guarded(item: fq.Item, x: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if 2 <= i < x.shape[0] - 2 and 2 <= j < x.shape[1] - 2:
        total = x[i - 1, j - 1] + x[i - 1, j] + x[i - 1, j + 1]
        total += x[i, j - 1] + x[i, j] + x[i, j + 1]
        total += x[i + 1, j - 1] + x[i + 1, j] + x[i + 1, j + 1]
        out[i, j] = total


@fq.kernel
def response_guarded(item: fq.Item, sxx: Array, sxy: Array, syy: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    trace = sxx[i, j] + syy[i, j]
    out[i, j] = sxx[i, j] * syy[i, j] - sxy[i, j] * sxy[i, j] - 0.04 * trace * trace


def submit_harris_inside(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    x, ix, iy, ixx, ixy, iyy, sxx, sxy, syy, out = arrays
    n, m = size
    queue.submit(gradient_x, (n - 2, m - 2), x, ix)
    queue.submit(gradient_y, (n - 2, m - 2), x, iy)
    queue.submit(times, (n - 2, m - 2), ix, ix, ixx)
    queue.submit(times, (n - 2, m - 2), ix, iy, ixy)
    queue.submit(times, (n - 2, m - 2), iy, iy, iyy)
    queue.submit(box_sum, (n - 4, m - 4), ixx, sxx)
    queue.submit(box_sum, (n - 4, m - 4), ixy, sxy)
    queue.submit(box_sum, (n - 4, m - 4), iyy, syy)
    queue.submit(response, (n - 4, m - 4), sxx, sxy, syy, out)


def submit_harris_guarded(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    x, _, _, ixx, ixy, iyy, sxx, sxy, syy, out = arrays
    queue.submit(gradients_guarded, size, x, ixx, ixy, iyy)
    queue.submit(box_guarded, size, ixx, sxx)
    queue.submit(box_guarded, size, ixy, sxy)
    queue.submit(box_guarded, size, iyy, syy)
    queue.submit(response_guarded, size, sxx, sxy, syy, out)


HARRIS = ("ix", "iy", "ixx", "ixy", "iyy", "sxx", "sxy", "syy", "out")


def harris_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    x = rng.random(size, dtype=np.float32)
    return {"x": x, **{name: np.zeros(size, np.float32) for name in HARRIS}}


def harris_numpy(size: Size, *arrays: Array) -> None:
    x, *_, out = arrays
    a, b, c = x[:-2], x[1:-1], x[2:]
    ix = sobel(a[:, :-2], b[:, :-2], c[:, :-2], a[:, 2:], b[:, 2:], c[:, 2:])
    iy = sobel(a[:, :-2], a[:, 1:-1], a[:, 2:], c[:, :-2], c[:, 1:-1], c[:, 2:])
    sums = []
    for product in (ix * ix, ix * iy, iy * iy):
        across = product[:, :-2] + product[:, 1:-1] + product[:, 2:]
        sums.append(across[:-2] + across[1:-1] + across[2:])
    sxx, sxy, syy = sums
    trace = sxx + syy
    out[2:-2, 2:-2] = sxx * syy - sxy * sxy - 0.04 * trace * trace


PROGRAMS = (
    CorpusProgram(
        name="harris",
        description="gradients, products, box sums, corner response, float32",
        source="Harris and Stephens, Alvey 1988; Mullapudi et al., PolyMage, ASPLOS 2015",
        axes=("rows", "columns"),
        sizes={"tiny": (8, 9), "in cache": (160, 200), "out of cache": PHOTO},
        arrays=harris_arrays,
        inputs=("x",),
        outputs=("out",),
        forms=(
            Form("interior", "nine kernels over interior ranges, id + 1", submit_harris_inside),
            Form("guarded", "five kernels over the full range", submit_harris_guarded),
        ),
        reference=harris_numpy,
    ),
)
