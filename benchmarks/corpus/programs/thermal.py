"""Rodinia's HotSpot and SRAD: steps on a grid whose edges are clamped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Scalar, Size, in_groups

RODINIA = "Rodinia 3.1 (Che et al., IISWC 2009)"
TILE = 16


# ------------------------------------------------------------------------------------ hotspot
CAP, RX, RY, RZ, AMBIENT = 0.5, 0.1, 0.1, 0.05, 80.0


def heated(
    here: Scalar, power: Scalar, north: Scalar, south: Scalar, west: Scalar, east: Scalar
) -> Scalar:
    vertical = (south + north - 2.0 * here) * RY
    horizontal = (east + west - 2.0 * here) * RX
    return here + CAP * (power + vertical + horizontal + (AMBIENT - here) * RZ)


@fq.kernel
def hotspot_clamped(item: fq.Item, power: Array, t: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    north = t[max(i - 1, 0), j]
    south = t[min(i + 1, t.shape[0] - 1), j]
    west = t[i, max(j - 1, 0)]
    east = t[i, min(j + 1, t.shape[1] - 1)]
    out[i, j] = heated(t[i, j], power[i, j], north, south, west, east)


@fq.kernel
def hotspot_linear(item: fq.Item, power: Array, t: Array, out: Array) -> None:
    n = t.shape[1]
    i = item.get_linear_id() // n
    j = item.get_linear_id() % n
    north = t[i - 1, j] if i > 0 else t[i, j]
    south = t[i + 1, j] if i < t.shape[0] - 1 else t[i, j]
    west = t[i, j - 1] if j > 0 else t[i, j]
    east = t[i, j + 1] if j < n - 1 else t[i, j]
    out[i, j] = heated(t[i, j], power[i, j], north, south, west, east)


@fq.kernel
def hotspot_local(
    item: fq.NdItem, power: Array, t: Array, tile: fq.LocalAccessor, out: Array
) -> None:
    i = item.get_global_id(0)
    j = item.get_global_id(1)
    y = item.get_local_id(0) + 1
    x = item.get_local_id(1) + 1
    last = t.shape[0] - 1
    row = min(i, last)
    column = min(j, last)
    tile[y, x] = t[row, column]
    if y == 1:
        tile[0, x] = t[max(row - 1, 0), column]
    if y == item.get_local_range(0):
        tile[y + 1, x] = t[min(row + 1, last), column]
    if x == 1:
        tile[y, 0] = t[row, max(column - 1, 0)]
    if x == item.get_local_range(1):
        tile[y, x + 1] = t[row, min(column + 1, last)]
    fq.group_barrier(item.get_group())
    if i <= last and j <= last:
        out[i, j] = heated(
            tile[y, x], power[i, j], tile[y - 1, x], tile[y + 1, x], tile[y, x - 1], tile[y, x + 1]
        )


def submit_hotspot_clamped(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    power, t, out = arrays
    for _ in range(steps):
        queue.submit(hotspot_clamped, (n, n), power, t, out)
        t, out = out, t


def submit_hotspot_linear(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    power, t, out = arrays
    for _ in range(steps):
        queue.submit(hotspot_linear, n * n, power, t, out)
        t, out = out, t


def submit_hotspot_local(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    power, t, out = arrays
    for _ in range(steps):
        tile = fq.LocalAccessor((TILE + 2, TILE + 2), np.float32)
        queue.submit(hotspot_local, in_groups((n, n), (TILE, TILE)), power, t, tile, out)
        t, out = out, t


def hotspot_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    shape = (size[0], size[0])
    t = np.float32(80) + np.float32(20) * rng.random(shape, dtype=np.float32)
    return {"power": rng.random(shape, dtype=np.float32), "t": t, "out": np.zeros_like(t)}


def hotspot_numpy(size: Size, power: Array, t: Array, out: Array) -> None:
    for _ in range(size[1]):
        wide = np.pad(t, 1, mode="edge")
        north, south = wide[:-2, 1:-1], wide[2:, 1:-1]
        west, east = wide[1:-1, :-2], wide[1:-1, 2:]
        out[...] = heated(t, power, north, south, west, east)
        t, out = out, t


def hotspot_loop(numba: Any) -> Callable[..., None]:
    cap, rx, ry, rz, ambient, two = map(np.float32, (CAP, RX, RY, RZ, AMBIENT, 2))

    def loop(n: int, steps: int, power: Array, t: Array, out: Array) -> None:
        for _ in range(steps):
            for i in numba.prange(n):
                for j in range(n):
                    here = t[i, j]
                    vertical = (t[min(i + 1, n - 1), j] + t[max(i - 1, 0), j] - two * here) * ry
                    flat = (t[i, min(j + 1, n - 1)] + t[i, max(j - 1, 0)] - two * here) * rx
                    out[i, j] = here + cap * (
                        power[i, j] + vertical + flat + (ambient - here) * rz
                    )
            t, out = out, t

    return loop


# --------------------------------------------------------------------------------------- srad
LAMBDA = 0.5


@fq.kernel
def row_moments(item: fq.Item, image: Array, sums: Array, squares: Array) -> None:
    i = item.get_id(0)
    total = 0.0
    total_squares = 0.0
    for j in range(image.shape[1]):
        total += image[i, j]
        total_squares += image[i, j] * image[i, j]
    sums[i] = total
    squares[i] = total_squares


@fq.kernel
def speckle(item: fq.Item, pixels: Scalar, sums: Array, squares: Array, q0: Array) -> None:
    total = 0.0
    total_squares = 0.0
    for i in range(sums.shape[0]):
        total += sums[i]
        total_squares += squares[i]
    mean = total / pixels
    q0[item.get_id(0)] = (total_squares / pixels - mean * mean) / (mean * mean)


def coefficient(here: Scalar, dn: Scalar, ds: Scalar, dw: Scalar, de: Scalar, q0: Scalar) -> Scalar:
    g2 = (dn * dn + ds * ds + dw * dw + de * de) / (here * here)
    lap = (dn + ds + dw + de) / here
    num = 0.5 * g2 - 0.0625 * (lap * lap)
    den = 1.0 + 0.25 * lap
    den = (num / (den * den) - q0) / (q0 * (1.0 + q0))
    return min(max(1.0 / (1.0 + den), 0.0), 1.0)


@fq.kernel
def srad_1_clamped(
    item: fq.Item, q0: Array, image: Array, dn: Array, ds: Array, dw: Array, de: Array, c: Array
) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    here = image[i, j]
    dn[i, j] = image[max(i - 1, 0), j] - here
    ds[i, j] = image[min(i + 1, image.shape[0] - 1), j] - here
    dw[i, j] = image[i, max(j - 1, 0)] - here
    de[i, j] = image[i, min(j + 1, image.shape[1] - 1)] - here
    c[i, j] = coefficient(here, dn[i, j], ds[i, j], dw[i, j], de[i, j], q0[0])


@fq.kernel
def srad_2_clamped(
    item: fq.Item, dn: Array, ds: Array, dw: Array, de: Array, c: Array, image: Array
) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    south = c[min(i + 1, image.shape[0] - 1), j]
    east = c[i, min(j + 1, image.shape[1] - 1)]
    d = c[i, j] * dn[i, j] + south * ds[i, j] + c[i, j] * dw[i, j] + east * de[i, j]
    image[i, j] = image[i, j] + 0.25 * LAMBDA * d


@fq.kernel
def srad_1_tables(
    item: fq.Item, before: Array, after: Array, q0: Array, image: Array, dn: Array, ds: Array,
    dw: Array, de: Array, c: Array,
) -> None:  # fmt: skip
    n = image.shape[1]
    i = item.get_linear_id() // n
    j = item.get_linear_id() % n
    here = image[i, j]
    dn[i, j] = image[before[i], j] - here
    ds[i, j] = image[after[i], j] - here
    dw[i, j] = image[i, before[j]] - here
    de[i, j] = image[i, after[j]] - here
    c[i, j] = coefficient(here, dn[i, j], ds[i, j], dw[i, j], de[i, j], q0[0])


@fq.kernel
def srad_2_tables(
    item: fq.Item, after: Array, dn: Array, ds: Array, dw: Array, de: Array, c: Array, image: Array
) -> None:
    n = image.shape[1]
    i = item.get_linear_id() // n
    j = item.get_linear_id() % n
    d = c[i, j] * dn[i, j] + c[after[i], j] * ds[i, j]
    d = d + c[i, j] * dw[i, j] + c[i, after[j]] * de[i, j]
    image[i, j] = image[i, j] + 0.25 * LAMBDA * d


def submit_srad_clamped(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    _, _, image, sums, squares, q0, dn, ds, dw, de, c = arrays
    for _ in range(steps):
        queue.submit(row_moments, n, image, sums, squares)
        queue.submit(speckle, 1, float(n * n), sums, squares, q0)
        queue.submit(srad_1_clamped, (n, n), q0, image, dn, ds, dw, de, c)
        queue.submit(srad_2_clamped, (n, n), dn, ds, dw, de, c, image)


def submit_srad_tables(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    before, after, image, sums, squares, q0, dn, ds, dw, de, c = arrays
    for _ in range(steps):
        queue.submit(row_moments, n, image, sums, squares)
        queue.submit(speckle, 1, float(n * n), sums, squares, q0)
        queue.submit(srad_1_tables, n * n, before, after, q0, image, dn, ds, dw, de, c)
        queue.submit(srad_2_tables, n * n, after, dn, ds, dw, de, c, image)


def srad_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n, _ = size
    image = np.exp(rng.random((n, n), dtype=np.float32))
    zeros = {name: np.zeros((n, n), np.float32) for name in ("dn", "ds", "dw", "de", "c")}
    return {
        "before": np.maximum(np.arange(n, dtype=np.int32) - 1, 0),
        "after": np.minimum(np.arange(n, dtype=np.int32) + 1, n - 1),
        "image": image,
        "sums": np.zeros(n),
        "squares": np.zeros(n),
        "q0": np.zeros(1),
        **zeros,
    }


def srad_numpy(size: Size, *arrays: Array) -> None:
    _, _, image, _, _, _, dn, ds, dw, de, c = arrays
    for _ in range(size[1]):
        mean = image.mean(dtype=np.float64)
        square = np.mean(image * image, dtype=np.float64)
        q0 = (square - mean * mean) / (mean * mean)
        wide = np.pad(image, 1, mode="edge")
        dn[...] = wide[:-2, 1:-1] - image
        ds[...] = wide[2:, 1:-1] - image
        dw[...] = wide[1:-1, :-2] - image
        de[...] = wide[1:-1, 2:] - image
        g2 = (dn * dn + ds * ds + dw * dw + de * de) / (image * image)
        lap = (dn + ds + dw + de) / image
        den = 1.0 + 0.25 * lap
        den = ((0.5 * g2 - 0.0625 * (lap * lap)) / (den * den) - q0) / (q0 * (1.0 + q0))
        c[...] = np.clip(1.0 / (1.0 + den), 0.0, 1.0)
        south = np.pad(c, ((0, 1), (0, 0)), mode="edge")[1:]
        east = np.pad(c, ((0, 0), (0, 1)), mode="edge")[:, 1:]
        image += 0.25 * LAMBDA * (c * dn + south * ds + c * dw + east * de)


PROGRAMS = (
    CorpusProgram(
        name="hotspot",
        description="the temperature of a chip over two arrays in turn, float32",
        source=f"{RODINIA}: hotspot",
        axes=("n", "steps"),
        sizes={"tiny": (9, 2), "in cache": (320, 20), "out of cache": (4096, 10)},
        arrays=hotspot_arrays,
        inputs=("power",),
        outputs=("t", "out"),
        forms=(
            Form("clamped", "rows and columns as ids, indices clamped", submit_hotspot_clamped),
            Form("linear", "one linear id, divided; conditions", submit_hotspot_linear),
            Form("local", "NdRange, a tile with halo in local memory", submit_hotspot_local),
        ),
        reference=hotspot_numpy,
        loop=hotspot_loop,
    ),
    CorpusProgram(
        name="srad",
        description="speckle-reducing anisotropic diffusion: statistics, then two stencils",
        source=f"{RODINIA}: srad_v1",
        axes=("n", "steps"),
        sizes={"tiny": (7, 2), "in cache": (200, 6), "out of cache": (2304, 3)},
        arrays=srad_arrays,
        inputs=("before", "after"),
        outputs=("image",),
        forms=(
            Form("clamped", "rows and columns as ids, indices clamped", submit_srad_clamped),
            Form("tables", "one linear id; neighbours from index arrays", submit_srad_tables),
        ),
        reference=srad_numpy,
        tolerance=1e-5,
    ),
)
